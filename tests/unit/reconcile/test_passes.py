"""The life of a node over whole passes, with restarts and refusals in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import RequestState
from slurm_hooks.reconcile.actions import CancelRequest, NoticeKind
from slurm_hooks.reconcile.pace import Pace
from slurm_hooks.slurm.client import SlurmUnavailable
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.unit.reconcile.builders import N0, N1
from tests.unit.reconcile.scenario import Scenario


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path)


def is_off(scenario: Scenario, *names: str) -> bool:
    return all(
        scenario.slurm.nodes[name].state.has(NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN)
        for name in names
    )


def test_job_waits_runs_and_its_nodes_go(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0, N1])
    scenario.settle()
    (reference,) = scenario.waiting()
    scenario.compute.state.note_attempt(reference, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    scenario.settle()
    comment = scenario.slurm.jobs[job_id].admin_comment
    assert "waiting for capacity for 2 x a3-ultragpu-8g in us-central1-a since" in comment
    assert "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" in comment

    scenario.grant_all()
    scenario.settle_with_vms()
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    assert scenario.slurm.jobs[job_id].admin_comment == ""
    assert scenario.vm_names() == [N0, N1]

    scenario.slurm.complete(job_id)
    scenario.slurm.suspend([N0, N1])
    scenario.settle_with_vms()
    assert scenario.vm_names() == []
    scenario.settle_after_the_grace()
    assert scenario.requests() == []
    assert len(scenario.compute.state.groups) == 1
    assert len(scenario.compute.state.templates) == 1


def test_settled_cluster_is_read_and_left_alone(scenario: Scenario) -> None:
    scenario.settle()
    scenario.compute.calls.clear()
    scenario.run()
    assert [call.method for call in scenario.compute.calls] == ["read"]


def test_cancelled_job_frees_its_nodes_and_leaves_no_request(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0, N1])
    scenario.settle()
    scenario.slurm.cancel(job_id)
    scenario.settle()
    assert scenario.waiting() == []
    assert is_off(scenario, N0, N1)
    scenario.settle_after_the_grace()
    assert scenario.requests() == []


def test_cancellation_that_comes_too_late_leaves_no_vm(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    scenario.slurm.cancel(job_id)
    error = ComputeError(ErrorKind.CONFLICT, "conditionNotMet", "", 412)
    scenario.compute.fail_next(error, "cancel_resize_request")
    plan = scenario.run()
    assert any(isinstance(action, CancelRequest) for action in plan.actions)
    scenario.slurm.pass_power_thread()
    scenario.grant_all()
    scenario.settle_with_vms()
    assert scenario.vm_names() == []
    scenario.settle_after_the_grace()
    assert scenario.requests() == []


def test_failed_request_requeues_its_job_alone(scenario: Scenario) -> None:
    first, second = scenario.slurm.submit([N0]), scenario.slurm.submit([N1])
    scenario.settle()
    doomed = next(r for r in scenario.requests() if r.instances == (N0,))
    scenario.compute.state.fail(doomed.reference, "QUOTA_EXCEEDED", "GPUS in us-central1")
    scenario.settle()
    assert scenario.slurm.jobs[first].state is JobState.PENDING
    assert "QUOTA_EXCEEDED" in scenario.slurm.jobs[first].admin_comment
    assert "QUOTA_EXCEEDED" in scenario.slurm.nodes[N0].reason
    assert scenario.slurm.jobs[second].state is JobState.CONFIGURING
    scenario.settle_after_the_grace()
    assert [r.instances for r in scenario.requests()] == [(N1,)]


@pytest.mark.parametrize("method", ["insert_template", "insert_group", "insert_resize_request"])
def test_missing_permission_fails_the_job_in_a_pass(scenario: Scenario, method: str) -> None:
    job_id = scenario.slurm.submit([N0])
    error = ComputeError(ErrorKind.PERMISSION, "forbidden", "grant compute.x to y", 403)
    scenario.compute.fail_next(error, method)
    scenario.settle()
    assert scenario.slurm.jobs[job_id].state is JobState.PENDING
    assert "grant compute.x to y" in scenario.slurm.nodes[N0].reason


def test_operation_that_fails_fails_the_job(scenario: Scenario) -> None:
    scenario.slurm.submit([N0])
    scenario.run()
    scenario.run()
    scenario.compute.fail_next_operation("PERMISSIONS_ERROR", 403)
    scenario.settle()
    assert "PERMISSIONS_ERROR" in scenario.slurm.nodes[N0].reason


def test_passing_trouble_is_tried_again(scenario: Scenario) -> None:
    scenario.slurm.submit([N0])
    error = ComputeError(ErrorKind.TRANSIENT, "x", "", 503)
    scenario.compute.fail_next(error, "insert_resize_request")
    scenario.settle()
    assert len(scenario.waiting()) == 1


def test_dead_operation_is_not_replayed_for_ever(scenario: Scenario) -> None:
    """After a restart the first request id is used again and brings back the dead operation."""
    scenario.slurm.submit([N0])
    scenario.run()
    scenario.run()
    scenario.compute.fail_next_operation("INTERNAL_ERROR", 500)
    scenario.run()
    assert len(scenario.compute.calls_of("insert_resize_request")) == 1
    assert scenario.requests() == []
    scenario.restart()
    scenario.settle()
    assert len(scenario.waiting()) == 1


def test_unreadable_systems_cost_nothing(scenario: Scenario) -> None:
    scenario.slurm.submit([N0])
    scenario.settle_with_vms()
    before = scenario.picture()
    scenario.slurm.fail_next(SlurmUnavailable("no answer"))
    assert [n.kind for n in scenario.run().notices] == [NoticeKind.UNAVAILABLE]
    scenario.compute.fail_next(ComputeError(ErrorKind.TRANSIENT, "503", "", 503), "read")
    assert [n.kind for n in scenario.run().notices] == [NoticeKind.UNAVAILABLE]
    assert scenario.picture() == before


def test_node_wanted_again_waits_for_its_old_vm(scenario: Scenario) -> None:
    first = scenario.slurm.submit([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    scenario.slurm.complete(first)
    scenario.slurm.suspend([N0])
    scenario.run()
    scenario.slurm.slept([N0])
    second = scenario.slurm.submit([N0])
    scenario.run()
    assert "to go" in scenario.slurm.jobs[second].admin_comment
    assert scenario.waiting() == []
    scenario.settle_with_vms()
    assert len(scenario.waiting()) == 1


def test_node_after_resume_timeout_is_idle_again(scenario: Scenario) -> None:
    scenario.slurm.submit([N0])
    scenario.settle()
    scenario.slurm.resume_timeout([N0])
    scenario.settle_with_vms()
    assert scenario.waiting() == []
    assert is_off(scenario, N0)
    assert scenario.slurm.nodes[N0].state.base != "DOWN"


def test_vm_that_vanishes_under_a_job_requeues_it(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    scenario.compute.state.vanish(N0)
    scenario.wait_for_second_look(scenario.run())
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    scenario.run()
    assert scenario.slurm.jobs[job_id].state is JobState.PENDING
    assert "VM gone" in scenario.slurm.nodes[N0].reason


def test_vm_hidden_from_a_single_stale_list_costs_no_job(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    scenario.compute.state.hidden.add(N0)
    scenario.run()
    scenario.compute.state.hidden.clear()
    scenario.settle()
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING


def life_of_a_job(scenario: Scenario, restart_after_calls: int) -> tuple[object, ...]:
    """The whole path, with one restart when that many mutations have reached the service."""
    restarted = False

    def settle() -> None:
        nonlocal restarted
        for _ in range(40):
            plan = scenario.run()
            mutations = [c for c in scenario.compute.calls if c.request_id]
            if not restarted and len(mutations) >= restart_after_calls:
                restarted = True
                scenario.restart()
            scenario.slurm.pass_power_thread()
            scenario.compute.state.step()
            scenario.register_running()
            names = [name for _, name in scenario.compute.state.instances]
            assert len(names) == len(set(names)), "two VMs of one name"
            assert len(scenario.waiting()) <= 1, "two requests for one job"
            if not plan.actions and not plan.unsettled:
                return

    job_id = scenario.slurm.submit([N0, N1])
    settle()
    scenario.grant_all()
    settle()
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    scenario.slurm.complete(job_id)
    scenario.slurm.suspend([N0, N1])
    settle()
    return scenario.picture()


@pytest.mark.parametrize("restart_after_calls", range(1, 7))
def test_restart_after_any_mutation_leads_to_the_same_end(
    tmp_path: Path, restart_after_calls: int
) -> None:
    plain = life_of_a_job(Scenario(tmp_path / "plain"), restart_after_calls=1000)
    disturbed = life_of_a_job(Scenario(tmp_path / "disturbed"), restart_after_calls)
    assert disturbed == plain


def test_restart_right_after_the_insert_leaves_exactly_one_request(scenario: Scenario) -> None:
    scenario.slurm.submit([N0, N1])
    while not scenario.requests():
        scenario.run()
    scenario.restart()
    scenario.settle()
    assert [r.state for r in scenario.requests()] == [RequestState.ACCEPTED]


def test_waiting_job_is_looked_at_often_since_nobody_tells_of_its_cancellation(
    scenario: Scenario,
) -> None:
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    plan, pace = scenario.run(), Pace()
    assert pace.delay_after(plan, 300, in_vain=False) <= 5
    scenario.slurm.cancel(job_id)
    scenario.settle()
    assert pace.delay_after(scenario.run(), 300, in_vain=False) == 300
