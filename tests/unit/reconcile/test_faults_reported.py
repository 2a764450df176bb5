"""Nodes that a person reports as faulty: the VM is replaced, its host reported first if wanted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import FaultReason, InstanceStatus
from slurm_hooks.history.event import EventKind
from slurm_hooks.history.report import FaultAction, FaultBehavior, FaultReport, ReportState
from slurm_hooks.reconcile.actions import NoticeKind
from slurm_hooks.reconcile.plan_reports import LONGEST_REPLACEMENT, LONGEST_REPORT, TAKEN_AFTER
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from tests.unit.reconcile.builders import CLUSTER, N0, N1, example_cluster
from tests.unit.reconcile.deaths import (
    WAYS_TO_DIE,
    Story,
    assert_death_at_any_call_changes_nothing,
)
from tests.unit.reconcile.life import Life, lives
from tests.unit.reconcile.test_repairs_killed_at_every_call import run_job

STATIC = example_cluster(min_node_count=1, login_nodes=1)
LOGIN = "flexvm-login-0"
POWERED_DOWN = (NodeFlag.POWER_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERED_DOWN)
A_WHILE = TAKEN_AFTER + timedelta(seconds=1)


def vm_id(life: Life, name: str) -> str:
    return life.compute.state.instance(name).instance_id


def report(life: Life, name: str, action: FaultAction = FaultAction.DELETE) -> FaultReport:
    """A person's order about the VM that the node has now."""
    vm = life.compute.state.instance(name)
    order = FaultReport(
        name,
        name.split("-")[1],
        vm.zone,
        vm.instance_id,
        action,
        life.now,
        life.now,
        ordered_by="ann",
        behavior=FaultBehavior.PERFORMANCE,
        description="slow",
    )
    return life.reports.order(order)


def report_host(life: Life, name: str) -> FaultReport:
    """The same, for a host that the service takes a report for, which takes its time."""
    life.compute.reportable = frozenset({name})
    life.compute.operations_finish_at_once = False
    return report(life, name, FaultAction.REPORT_HOST)


def last(life: Life) -> FaultReport:
    return life.reports.latest(1)[0]


def told(life: Life) -> list[str]:
    """How far the history says that reports were."""
    return [
        event.message.partition(":")[0]
        for event in life.history.recent(life.now - timedelta(days=1))
        if event.kind is EventKind.VM_REPORT_AND_REPLACEMENT
    ]


def deleted(life: Life) -> list[object]:
    calls = (*life.compute.calls_of("delete_instances"), *life.compute.calls_of("delete_instance"))
    return [call.subject for call in calls]


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path)


def test_job_of_a_reported_node_runs_again_on_a_new_vm(life: Life) -> None:
    job_id = run_job(life, N0)
    before = vm_id(life, N0)
    report(life, N0)
    life.rest()
    assert life.slurm.jobs[job_id].restarts == 1
    assert last(life).state is ReportState.REPLACED
    assert told(life) == ["REPLACING", "REPLACED"]
    assert before not in {vm.instance_id for vm in life.compute.state.instances.values()}


def test_reason_says_who_reported_the_node_and_why(life: Life) -> None:
    run_job(life, N0)
    report(life, N0)
    life.passes.run()
    assert life.slurm.nodes[N0].reason == "slurm-hooks: reported faulty by ann: slow"


def test_static_node_comes_back_and_no_limit_of_repairs_counts_it(tmp_path: Path) -> None:
    life = Life(tmp_path, STATIC)
    life.rest()
    life.grant_all()
    life.rest()
    for _ in range(4):
        before = vm_id(life, N0)
        report(life, N0)
        life.rest()
        life.grant_all()
        life.rest()
        assert vm_id(life, N0) != before
        assert life.slurm.nodes[N0].state.base is BaseState.IDLE


def test_dynamic_node_without_work_stays_off(life: Life) -> None:
    life.slurm.complete(run_job(life, N0))
    report(life, N0)
    life.rest()
    assert (life.vm_names(), last(life).state) == ([], ReportState.REPLACED)


def test_node_that_a_person_has_drained_is_replaced_at_a_persons_word(life: Life) -> None:
    life.slurm.complete(run_job(life, N0))
    life.person_updates(N0, NodeUpdate.DRAIN, "fan is loud")
    report(life, N0)
    life.rest()
    assert (life.vm_names(), last(life).state) == ([], ReportState.REPLACED)


def test_vm_of_a_node_that_still_boots_is_deleted_and_its_job_keeps_the_node(life: Life) -> None:
    job_id = life.slurm.submit([N0])
    life.deliver_calls()
    life.rest()
    life.grant_all()
    before = vm_id(life, N0)
    report(life, N0)
    life.rest()
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[job_id].restarts == 0
    assert vm_id(life, N0) != before
    assert last(life).state is ReportState.REPLACED


def test_login_node_is_made_anew(tmp_path: Path) -> None:
    life = Life(tmp_path, example_cluster(login_nodes=1))
    life.rest()
    before = vm_id(life, LOGIN)
    report(life, LOGIN)
    life.rest()
    assert vm_id(life, LOGIN) != before
    assert last(life).state is ReportState.REPLACED


def test_other_nodes_keep_their_vms_and_jobs(life: Life) -> None:
    mine, other = run_job(life, N0), run_job(life, N1)
    report(life, N0)
    life.rest()
    assert life.slurm.jobs[other].state is JobState.RUNNING
    assert life.slurm.jobs[other].restarts == 0
    assert life.slurm.jobs[mine].restarts == 1


def test_vm_that_is_gone_already_is_replaced_without_an_action(life: Life) -> None:
    run_job(life, N0)
    report(life, N0)
    life.compute.state.vanish(N0)
    life.rest()
    assert (last(life).state, deleted(life)) == (ReportState.REPLACED, [])


def test_next_vm_of_the_name_is_none_of_the_reports_business(life: Life) -> None:
    run_job(life, N0)
    order = report(life, N0)
    life.reports.keep(replace(order, state=ReportState.REPLACED))
    life.reports.order(replace(order, instance_id="1"))
    life.rest()
    assert (last(life).state, deleted(life)) == (ReportState.REPLACED, [])


def test_node_that_cannot_be_taken_down_fails_the_report_in_the_end(life: Life) -> None:
    run_job(life, N0)
    with_new_word = replace(life.slurm.nodes[N0].state, unknown=frozenset({"NEW"}))
    life.slurm.nodes[N0] = replace(life.slurm.nodes[N0], state=with_new_word)
    report(life, N0)
    life.passes.run()
    assert (last(life).state, deleted(life)) == (ReportState.REPLACING, [])
    life.advance(LONGEST_REPLACEMENT + timedelta(seconds=1))
    life.passes.run()
    assert (last(life).state, last(life).detail) == (ReportState.FAILED, "its VM is still there")
    assert life.slurm.nodes[N0].state == with_new_word


def test_host_is_reported_with_the_persons_words_while_the_node_keeps_its_job(life: Life) -> None:
    job_id = run_job(life, N0)
    report_host(life, N0)
    life.passes.run()
    life.passes.run()
    (call,) = life.compute.calls_of("report_host_as_faulty")
    assert call.subject == (N0, FaultReason("PERFORMANCE", "slow"))
    assert (last(life).state, deleted(life)) == (ReportState.REPORTED, [])
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert not life.slurm.nodes[N0].state.has(NodeFlag.DRAIN)


def test_job_leaves_a_host_whose_report_was_taken_and_the_vm_stays_until_it_is_over(
    life: Life,
) -> None:
    job_id = run_job(life, N0)
    before = vm_id(life, N0)
    report_host(life, N0)
    life.passes.run()
    life.advance(A_WHILE)
    life.passes.run()
    assert life.slurm.jobs[job_id].restarts == 1
    assert life.slurm.nodes[N0].state.has(NodeFlag.DRAIN)
    for status in (InstanceStatus.STOPPING, InstanceStatus.REPAIRING, InstanceStatus.RUNNING):
        life.compute.state.set_status(N0, status)
        for _ in range(3):
            life.advance(timedelta(seconds=15))
            life.passes.run()
        assert (last(life).state, deleted(life)) == (ReportState.REPORTED, [])
        assert not life.slurm.nodes[N0].state.has(*POWERED_DOWN)
    life.compute.state.finish_operations()
    life.compute.operations_finish_at_once = True
    life.rest()
    assert last(life).state is ReportState.REPLACED
    assert told(life) == ["REPORTED", "REPLACING", "REPLACED"]
    assert before not in {vm.instance_id for vm in life.compute.state.instances.values()}


def test_node_that_slurm_puts_to_sleep_keeps_its_vm_until_the_report_is_over(life: Life) -> None:
    life.slurm.complete(run_job(life, N0))
    report_host(life, N0)
    life.passes.run()
    life.slurm.update_nodes([N0], NodeUpdate.POWER_DOWN)
    life.slurm.pass_power_thread()
    for _ in range(3):
        life.advance(timedelta(seconds=10))
        life.passes.run()
    assert life.slurm.nodes[N0].state.has(*POWERED_DOWN)
    assert deleted(life) == []
    life.compute.state.finish_operations()
    life.compute.operations_finish_at_once = True
    life.rest()
    assert (life.vm_names(), last(life).state) == ([], ReportState.REPLACED)


def test_host_whose_report_the_service_does_not_take_costs_the_node_nothing(life: Life) -> None:
    job_id = run_job(life, N0)
    report(life, N0, FaultAction.REPORT_HOST)
    life.rest()
    assert last(life).state is ReportState.FAILED
    assert last(life).report_error.startswith("INSTANCES_WITHOUT_RESERVATION_NOT_SUPPORTED")
    assert (life.slurm.jobs[job_id].state, deleted(life)) == (JobState.RUNNING, [])
    assert life.slurm.nodes[N0].reason == ""


def test_node_that_was_taken_from_its_jobs_is_replaced_though_the_report_fails(life: Life) -> None:
    run_job(life, N0)
    report_host(life, N0)
    life.passes.run()
    life.advance(A_WHILE)
    life.passes.run()
    life.advance(LONGEST_REPORT)
    life.compute.operations_finish_at_once = True
    life.rest()
    assert (last(life).state, len(deleted(life))) == (ReportState.FAILED, 1)
    assert last(life).detail.startswith(
        "its VM is gone; the report of its host had failed: TIMEOUT"
    )


def test_refused_call_fails_the_report_and_one_without_an_answer_is_made_again(
    life: Life,
) -> None:
    run_job(life, N0)
    life.compute.fail_next(
        ComputeError(ErrorKind.TRANSIENT, "503", "busy"), "report_host_as_faulty"
    )
    report_host(life, N0)
    life.passes.run()
    assert last(life).state is ReportState.ORDERED
    life.passes.run()
    assert last(life).state is ReportState.REPORTED
    life.reports.keep(replace(last(life), state=ReportState.FAILED))
    life.compute.fail_next(
        ComputeError(ErrorKind.PERMISSION, "forbidden", "no role"), "report_host_as_faulty"
    )
    report_host(life, N0)
    life.passes.run()
    assert (last(life).state, last(life).report_error) == (
        ReportState.FAILED,
        "forbidden: no role",
    )


def test_host_of_a_vm_that_does_not_run_is_not_reported(life: Life) -> None:
    run_job(life, N0)
    report_host(life, N0)
    life.compute.state.set_status(N0, InstanceStatus.STOPPING)
    life.passes.run()
    assert life.compute.calls_of("report_host_as_faulty") == []
    assert last(life).detail == "its VM is STOPPING, and must run for a report of its host"


def test_operation_that_cannot_be_read_is_waited_for(life: Life) -> None:
    run_job(life, N0)
    report_host(life, N0)
    life.passes.run()
    life.compute.fail_next(ComputeError(ErrorKind.GONE, "notFound", ""), "get_operation")
    life.passes.run()
    assert last(life).state is ReportState.REPORTED


def test_reports_that_cannot_be_read_are_told(life: Life) -> None:
    life.reports.path.write_text("not a database" * 100)
    plan = life.passes.run()
    assert [(n.kind, n.subject) for n in plan.notices] == [
        (NoticeKind.HISTORY_UNAVAILABLE, "reports")
    ]


def faulty_node_is_replaced_under_its_job(life: Life) -> None:
    job_id = run_job(life, N0)
    report(life, N0)
    life.rest()
    life.grant_all()
    life.rest()
    assert (life.slurm.jobs[job_id].restarts, last(life).state) == (1, ReportState.REPLACED)
    assert told(life) == ["REPLACING", "REPLACED"]


def faulty_host_is_reported_under_a_job(life: Life) -> None:
    job_id = run_job(life, N0)
    life.compute.reportable = frozenset({N0})
    report(life, N0, FaultAction.REPORT_HOST)
    life.rest()
    life.grant_all()
    life.rest()
    assert (life.slurm.jobs[job_id].restarts, last(life).state) == (1, ReportState.REPLACED)
    assert told(life) == ["REPORTED", "REPLACING", "REPLACED"]
    assert len({call.request_id for call in life.compute.calls_of("report_host_as_faulty")}) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "story", [faulty_node_is_replaced_under_its_job, faulty_host_is_reported_under_a_job]
)
@pytest.mark.parametrize(("after_the_call", "operations_take_time"), WAYS_TO_DIE)
def test_report_comes_to_the_same_end_whenever_the_controller_dies(
    tmp_path: Path, story: Story, after_the_call: bool, operations_take_time: bool
) -> None:
    make = lives(tmp_path, CLUSTER, operations_take_time)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call, stride=2)
