"""Repairs as they are carried out: written down first, and only what is still as it was."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.health.model import Verdict
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.history.events import EventHistory, Filter, HistoryUnavailable
from slurm_hooks.reconcile.actions import Plan
from slurm_hooks.reconcile.repair_actions import RepairKind
from slurm_hooks.slurm.client import NodeUpdate, SlurmRefused, SlurmUnavailable
from slurm_hooks.slurm.model import BaseState, NodeFlag
from tests.fakes.slurm import Call
from tests.unit.reconcile.builders import N0, N1, example_cluster
from tests.unit.reconcile.condemned import LATER_BOOT, reason, repairs
from tests.unit.reconcile.scenario import Scenario


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """A pool whose first two nodes are up and idle."""
    made = Scenario(tmp_path)
    job_id = made.slurm.submit([N0, N1])
    made.settle()
    made.grant_all()
    made.settle_with_vms()
    made.slurm.complete(job_id)
    made.settle()
    made.slurm.calls.clear()
    return made


def condemn(scenario: Scenario, verdict: Verdict, name: str = N0, **changes: object) -> str:
    """A health run drains a node that is up."""
    (vm,) = (vm for (_, of), vm in scenario.compute.state.instances.items() if of == name)
    text = reason(verdict, name, **{"instance_id": vm.instance_id, **changes})
    scenario.slurm.set_state(name, BaseState.IDLE, NodeFlag.CLOUD, NodeFlag.DRAIN, reason=text)
    scenario.slurm.nodes[name] = replace(
        scenario.slurm.nodes[name], reason_time_utc=scenario.now - timedelta(seconds=5)
    )
    return text


def changes(scenario: Scenario) -> list[Call]:
    return [c for c in scenario.slurm.calls if c.method in ("update_nodes", "reboot_nodes")]


def recorded(history: EventHistory) -> list[EventKind]:
    return [recorded.event.kind for recorded in history.read(Filter())]


@pytest.mark.parametrize(
    ("verdict", "update"),
    [(Verdict.OK, NodeUpdate.RESUME), (Verdict.REPLACE, NodeUpdate.POWER_DOWN)],
)
def test_drain_is_lifted_or_the_node_powered_down_with_the_reason_it_has(
    scenario: Scenario, verdict: Verdict, update: NodeUpdate
) -> None:
    condemn(scenario, verdict)
    scenario.run()
    assert changes(scenario) == [Call("update_nodes", (N0,), update)]


def test_reboot_is_asked_for_with_the_reason_that_the_node_has(scenario: Scenario) -> None:
    text = condemn(scenario, Verdict.REBOOT)
    scenario.run()
    assert changes(scenario) == [Call("reboot_nodes", (N0,), reason=text)]
    assert recorded(scenario.history)[-1] is EventKind.VM_REBOOT


def test_node_that_is_off_is_returned_with_idle(scenario: Scenario) -> None:
    scenario.slurm.set_state(
        "flexvm-a3u-3",
        BaseState.IDLE,
        *(NodeFlag.CLOUD, NodeFlag.DRAIN, NodeFlag.POWERED_DOWN),
        reason=reason(),
    )
    scenario.run()
    assert changes(scenario) == [Call("update_nodes", ("flexvm-a3u-3",), NodeUpdate.IDLE)]


def test_all_events_are_in_the_history_when_slurm_is_asked(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    condemn(scenario, Verdict.REPLACE)
    seen: list[list[EventKind]] = []
    update = scenario.slurm.update_nodes

    def spy(names: list[str], state: NodeUpdate, text: str | None = None) -> None:
        seen.append(recorded(scenario.history))
        update(names, state, text)

    monkeypatch.setattr(scenario.slurm, "update_nodes", spy)
    scenario.run()
    assert seen == [
        [
            EventKind.VM_PROLOG_ERROR,
            EventKind.VM_SLURM_DRAIN,
            EventKind.VM_SLURM_POWER_DOWN,
            EventKind.VM_DELETION,
        ]
    ]


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ((NodeFlag.DRAIN,), "fan is loud"),
        ((), None),
        ((NodeFlag.DRAIN, NodeFlag.COMPLETING), None),
        ((NodeFlag.DRAIN, NodeFlag.POWER_DOWN), None),
    ],
)
@pytest.mark.parametrize("verdict", [Verdict.OK, Verdict.REBOOT, Verdict.REPLACE])
def test_node_that_changed_after_the_decision_is_left_alone(
    scenario: Scenario, verdict: Verdict, flags: tuple[NodeFlag, ...], text: str | None
) -> None:
    given = condemn(scenario, verdict)
    plan = scenario.passes.plan()
    assert repairs(plan)
    scenario.slurm.set_state(N0, BaseState.IDLE, NodeFlag.CLOUD, *flags, reason=text or given)
    scenario.passes.carry_out(plan)
    assert changes(scenario) == []
    assert not {EventKind.VM_REBOOT, EventKind.VM_DELETION} & set(recorded(scenario.history))


def test_node_that_got_a_job_after_the_decision_is_left_alone(scenario: Scenario) -> None:
    text = condemn(scenario, Verdict.REPLACE)
    plan = scenario.passes.plan()
    scenario.slurm.set_state(N0, BaseState.ALLOCATED, NodeFlag.CLOUD, NodeFlag.DRAIN, reason=text)
    scenario.passes.carry_out(plan)
    assert changes(scenario) == []


def test_graver_reason_than_the_one_decided_over_is_left_for_the_next_pass(
    scenario: Scenario,
) -> None:
    condemn(scenario, Verdict.REBOOT)
    plan = scenario.passes.plan()
    condemn(scenario, Verdict.REPLACE)
    scenario.passes.carry_out(plan)
    assert changes(scenario) == []


def unwritable(*_: object) -> None:
    raise HistoryUnavailable("disk full")


def test_what_cannot_be_written_down_is_not_done_and_told_once(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    condemn(scenario, Verdict.REPLACE)
    monkeypatch.setattr(scenario.history, "record", unwritable)
    with caplog.at_level(logging.INFO):
        scenario.run()
        scenario.run()
    assert changes(scenario) == []
    told = [r.fields["subject"] for r in caplog.records if r.msg == "%s" and "subject" in r.fields]  # type: ignore[attr-defined]
    assert sorted(told) == ["record events", f"repair node {N0}"]
    monkeypatch.undo()
    scenario.now += timedelta(minutes=2)
    scenario.run()
    assert len(changes(scenario)) == 1


def test_unreadable_history_leaves_nodes_drained(scenario: Scenario) -> None:
    condemn(scenario, Verdict.OK)
    scenario.history.path.write_bytes(b"garbage" * 1000)
    scenario.run()
    assert changes(scenario) == []
    scenario.history.path.unlink()
    scenario.run()
    assert len(changes(scenario)) == 1


def test_lost_history_never_loses_the_node(scenario: Scenario) -> None:
    condemn(scenario, Verdict.REBOOT)
    scenario.run()
    scenario.history.path.unlink()
    scenario.slurm.issue_reboots()
    scenario.run()
    scenario.now += timedelta(seconds=30)
    scenario.slurm.now_utc = scenario.now
    scenario.slurm.come_back([N0])
    condemn(scenario, Verdict.OK, boot=LATER_BOOT)
    scenario.settle()
    state = scenario.slurm.nodes[N0].state
    assert (state.base, state.has(NodeFlag.DRAIN)) == (BaseState.IDLE, False)
    assert len(changes(scenario)) == 2


def test_refused_repair_is_asked_for_again_and_recorded_once(scenario: Scenario) -> None:
    condemn(scenario, Verdict.REBOOT)
    scenario.slurm.fail_at("reboot_nodes", SlurmRefused("no RebootProgram"))
    scenario.run()
    scenario.now += timedelta(minutes=2)
    assert repairs(scenario.run()) == {N0: RepairKind.REBOOT}
    assert recorded(scenario.history).count(EventKind.VM_REBOOT) == 1
    assert scenario.slurm.nodes[N0].state.has(NodeFlag.REBOOT_REQUESTED)


def test_silent_slurmctld_is_not_asked_for_the_next_node(scenario: Scenario) -> None:
    condemn(scenario, Verdict.REPLACE)
    condemn(scenario, Verdict.REPLACE, N1)
    scenario.slurm.fail_at("update_nodes", SlurmUnavailable("no answer"))
    scenario.run()
    assert len(changes(scenario)) == 1


def test_pass_repairs_ten_nodes_at_most(tmp_path: Path) -> None:
    names = [f"flexvm-a3u-{index}" for index in range(12)]
    lenient = example_cluster(max_node_count=12)
    lenient = replace(lenient, policy=replace(lenient.policy, stop_repairs_least=100))
    scenario = Scenario(tmp_path, lenient)
    job_id = scenario.slurm.submit(names)
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    scenario.slurm.complete(job_id)
    for name in names:
        condemn(scenario, Verdict.REPLACE, name)
    scenario.slurm.calls.clear()
    scenario.run()
    assert len(changes(scenario)) == 10
    scenario.run()
    assert len(changes(scenario)) == 12


def test_stop_of_a_pool_is_an_error_once(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    stop = Event(scenario.now, EventKind.REPAIRS_STOPPED, "a3u", "stop", message="many")
    scenario.history.record([stop], scenario.now)
    condemn(scenario, Verdict.REPLACE)
    with caplog.at_level(logging.INFO):
        scenario.run()
        scenario.run()
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.fields["subject"] for record in errors] == ["pool a3u"]  # type: ignore[attr-defined]


def test_drained_node_keeps_its_reason_and_its_drain_until_it_is_repaired(
    scenario: Scenario,
) -> None:
    text = condemn(scenario, Verdict.MANUAL)
    plan: Plan = scenario.run()
    assert plan.actions[1:] == ()
    scenario.settle()
    assert changes(scenario) == []
    assert scenario.slurm.nodes[N0].reason == text


def test_reason_is_cleared_once_the_node_is_up_on_another_vm(scenario: Scenario) -> None:
    condemn(scenario, Verdict.REPLACE)
    scenario.settle_with_vms()
    scenario.slurm.slept([N0])
    assert scenario.vm_names() == [N1]
    assert scenario.slurm.nodes[N0].reason != ""
    scenario.slurm.update_nodes([N0], NodeUpdate.POWER_UP)
    scenario.slurm.pass_power_thread()
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    assert scenario.vm_names() == [N0, N1]
    assert scenario.slurm.nodes[N0].reason == ""
