"""What is decided for a condemned node by its reason, its state, its VM and its past."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.reason import health_reason_of
from slurm_hooks.history.event import EventKind
from slurm_hooks.reconcile.actions import NoticeKind
from slurm_hooks.reconcile.repair_actions import RepairKind, RepairNode
from slurm_hooks.reconcile.repairs import Standing, log_of, standing_of
from slurm_hooks.reconcile.snapshot import System, Unavailable
from slurm_hooks.slurm.model import BaseState, JobState, Node, NodeFlag
from tests.unit.reconcile.builders import N0, NOW, World, job, node, vm
from tests.unit.reconcile.condemned import (
    GPUS_MISSING,
    after,
    drained,
    events_of,
    happened,
    kinds,
    reason,
    recorded,
    repair_of,
    repairs,
    world_of,
)


def skipped(world: World) -> list[str]:
    return [e.message for e in recorded(world.plan()) if e.kind is EventKind.REPAIR_SKIPPED]


@pytest.mark.parametrize(
    ("verdict", "repair"),
    [
        (Verdict.OK, RepairKind.RETURN),
        (Verdict.WARN, None),
        (Verdict.UNKNOWN, None),
        (Verdict.REQUEUE, RepairKind.RETURN),
        (Verdict.RESET, RepairKind.REBOOT),
        (Verdict.REBOOT, RepairKind.REBOOT),
        (Verdict.REPLACE, RepairKind.REPLACE),
        (Verdict.MANUAL, None),
    ],
)
def test_verdict_says_what_a_free_node_needs(verdict: Verdict, repair: RepairKind | None) -> None:
    assert repair_of(world_of(drained(reason(verdict)))) is repair


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        (Context.PROLOG, EventKind.VM_PROLOG_ERROR),
        (Context.EPILOG, EventKind.VM_EPILOG_ERROR),
        (Context.BACKGROUND, EventKind.VM_CONTINUOUS_GPU_ERROR),
        (None, EventKind.VM_CONTINUOUS_GPU_ERROR),
    ],
)
def test_new_reason_is_recorded_with_what_it_tells(
    context: Context | None, kind: EventKind
) -> None:
    node_ = drained(reason(Verdict.REBOOT, context=context))
    error, drain = recorded(world_of(node_).plan())
    assert (error.kind, drain.kind) == (kind, EventKind.VM_SLURM_DRAIN)
    assert error.time_utc == node_.reason_time_utc
    assert (error.node, error.pool, error.instance_id) == (N0, "a3u", vm(N0).instance_id)
    assert (error.check, error.verdict, error.job_id) == ("gpu_lost", "REBOOT", 7)
    assert error.message == "REBOOT gpu_lost: gpu 3 fell off the bus"


def test_requeue_condemns_no_node() -> None:
    plan = world_of(drained(reason(Verdict.REQUEUE))).plan()
    assert kinds(events_of(plan)) == [EventKind.VM_PROLOG_ERROR, EventKind.VM_RETURNED]


def test_node_that_fails_one_job_after_another_rests_in_between() -> None:
    first = world_of(drained(reason(Verdict.REQUEUE), given=NOW - timedelta(minutes=4)))
    past = [
        replace(event, time_utc=NOW - timedelta(minutes=4)) for event in events_of(first.plan())
    ]
    assert repair_of(replace(first, repairs=log_of(past))) is RepairKind.RETURN
    again = world_of(drained(reason(Verdict.REQUEUE)), past=past)
    assert repair_of(again) is None
    earlier = [replace(event, time_utc=NOW - timedelta(minutes=6)) for event in past]
    assert repair_of(replace(again, repairs=log_of(earlier))) is RepairKind.RETURN
    other = world_of(drained(reason(Verdict.REQUEUE, check="xids")), past=past)
    assert repair_of(other) is RepairKind.RETURN


def test_passed_run_is_no_error() -> None:
    plan = world_of(drained(reason(Verdict.OK))).plan()
    assert kinds(events_of(plan)) == [EventKind.VM_RETURNED]


def test_what_is_in_the_history_is_not_recorded_again() -> None:
    world = world_of(drained(reason()))
    world.repairs = after(world.plan())
    assert recorded(world.plan()) == []


def test_drain_by_the_same_finding_at_another_time_is_a_sighting_of_its_own() -> None:
    world = world_of(drained(reason()))
    log = after(world.plan())
    again = World([drained(reason(), given=NOW)], vms=[vm(N0)], repairs=log)
    assert len(recorded(again.plan())) >= 2


def test_replacement_is_recorded_before_it_is_asked_for() -> None:
    (action,) = world_of(drained(reason())).actions(RepairNode)
    assert isinstance(action, RepairNode)
    assert kinds(action.events) == [EventKind.VM_SLURM_POWER_DOWN, EventKind.VM_DELETION]
    assert {event.instance_id for event in action.events} == {vm(N0).instance_id}
    assert action.expected_reason == reason()


BUSY = [
    drained(reason(), base=BaseState.ALLOCATED),
    drained(reason(), base=BaseState.MIXED),
    drained(reason(), base=BaseState.DOWN),
    *(
        drained(reason(), flag)
        for flag in (
            NodeFlag.COMPLETING,
            NodeFlag.FAIL,
            NodeFlag.NOT_RESPONDING,
            NodeFlag.POWER_DOWN,
            NodeFlag.POWER_UP,
            NodeFlag.POWER_DRAIN,
            NodeFlag.POWERING_UP,
            NodeFlag.POWERING_DOWN,
            NodeFlag.REBOOT_ISSUED,
            NodeFlag.REBOOT_REQUESTED,
        )
    ),
    node(N0, reason=reason()),
]


@pytest.mark.parametrize("busy", BUSY, ids=lambda busy: "+".join(sorted(busy.state.flags)))
@pytest.mark.parametrize("verdict", [Verdict.OK, Verdict.REBOOT, Verdict.REPLACE])
def test_node_that_is_not_drained_and_free_is_not_touched(busy: Node, verdict: Verdict) -> None:
    assert repair_of(world_of(replace(busy, reason=reason(verdict)))) is None


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.COMPLETING])
def test_node_whose_job_we_see_is_not_touched_however_free_it_looks(state: JobState) -> None:
    jobs = [job(7, N0, state=state)]
    assert repair_of(world_of(drained(reason()), jobs=jobs)) is None


def test_word_that_we_do_not_know_is_no_licence() -> None:
    odd = drained(reason())
    odd = replace(odd, state=replace(odd.state, unknown=frozenset({"NEW"})))
    assert repair_of(world_of(odd)) is None


@pytest.mark.parametrize("status", [s for s in InstanceStatus if s.value != "RUNNING"])
def test_vm_that_does_not_run_is_not_repaired(status: InstanceStatus) -> None:
    assert repair_of(world_of(drained(reason()), vms=[vm(N0, status)])) is None


@pytest.mark.parametrize("text", ["fan is loud", "", "slurm-hooks: VM gone", f"x {reason()}"])
def test_reason_that_no_health_run_gave_is_nothing_of_ours(text: str) -> None:
    plan = world_of(drained(text)).plan()
    assert (repairs(plan), events_of(plan)) == ({}, ())


@pytest.mark.parametrize("verdict", Verdict)
def test_drain_that_outlived_its_vm_is_lifted(verdict: Verdict) -> None:
    assert repair_of(world_of(drained(reason(verdict, instance_id="1")))) is RepairKind.RETURN


def test_drain_about_an_unknown_vm_is_taken_for_one_about_the_present_vm() -> None:
    assert repair_of(world_of(drained(reason(instance_id="")))) is RepairKind.REPLACE


def test_drained_node_that_is_off_is_returned_without_its_vm() -> None:
    off = drained(reason(), NodeFlag.POWERED_DOWN)
    assert repair_of(world_of(off, vms=[])) is RepairKind.RETURN_OFF
    assert repair_of(world_of(off)) is None


def test_condemned_node_whose_slurmd_died_is_replaced() -> None:
    silent = drained(reason(Verdict.REBOOT), NodeFlag.NOT_RESPONDING, base=BaseState.DOWN)
    assert standing_of(silent) is Standing.SILENT
    assert repair_of(world_of(silent)) is RepairKind.REPLACE
    manual = replace(silent, reason=reason(Verdict.MANUAL))
    assert repair_of(world_of(manual)) is None


def test_unreadable_history_repairs_nothing_and_says_so_once() -> None:
    world = world_of(
        drained(reason()), drained(reason(Verdict.OK, "flexvm-a3u-1"), name="flexvm-a3u-1")
    )
    world.repairs = Unavailable(System.HISTORY, "disk full")
    plan = world.plan()
    assert plan.actions == ()
    assert [(n.kind, n.detail) for n in plan.notices] == [
        (NoticeKind.HISTORY_UNAVAILABLE, "disk full")
    ]


def test_lost_history_starts_anew() -> None:
    assert repair_of(world_of(drained(reason(Verdict.REBOOT)))) is RepairKind.REBOOT


@pytest.mark.parametrize("text", [GPUS_MISSING, "gres/gpu:h200 count too low (7 < 8)"])
def test_node_that_registers_with_too_few_gpus_is_rebooted(text: str) -> None:
    assert repair_of(world_of(drained(text, NodeFlag.INVALID_REG))) is RepairKind.REBOOT


def test_node_that_a_person_drained_stays_so_when_gpus_go_missing() -> None:
    text = f"fan is loud : {GPUS_MISSING}"
    assert health_reason_of(text) is None
    assert repair_of(world_of(drained(text, NodeFlag.INVALID_REG))) is None


def test_gpus_that_stay_away_from_new_vms_wait_for_a_person() -> None:
    short = drained(GPUS_MISSING, NodeFlag.INVALID_REG)
    past = [happened(EventKind.VM_DELETION, minutes_ago=n, instance_id="1") for n in (60, 90)]
    world = world_of(short, past=past)
    assert repair_of(world) is None
    assert "a person must look" in skipped(world)[0]


def test_words_of_slurm_after_a_health_runs_reason_are_no_part_of_it() -> None:
    own = health_reason_of(reason())
    assert own is not None
    assert health_reason_of(f"{reason()} : reboot issued : Kill task failed") == own
    assert health_reason_of(f"{reason()} : reboot issued : reboot complete") == own
    assert health_reason_of(f"{reason()} : fan is loud") is None


def drained_by_slurm(world: World) -> list[str]:
    return [n.detail for n in world.plan().notices if n.kind is NoticeKind.DRAINED_BY_SLURM]


@pytest.mark.parametrize("text", ["Prolog error", "Epilog error", "Kill task failed", "Low CPUs"])
def test_node_that_slurm_drained_itself_is_told(text: str) -> None:
    assert drained_by_slurm(world_of(drained(text))) == [text]
    no_history = Unavailable(System.HISTORY, "broken")
    assert drained_by_slurm(replace(world_of(drained(text)), repairs=no_history)) == [text]


@pytest.mark.parametrize(
    "one",
    [
        node(N0, reason="Prolog error"),
        drained("Prolog error", NodeFlag.POWERED_DOWN),
        drained("fan is loud"),
        drained(reason()),
        drained(GPUS_MISSING),
    ],
)
def test_other_drains_are_none_of_slurms_own(one: Node) -> None:
    assert drained_by_slurm(world_of(one)) == []
