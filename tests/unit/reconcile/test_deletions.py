"""Deletions over whole passes: at every state of a VM, slow, stuck, refused, with a bad member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import Group, GroupReference, InstanceStatus, Operation
from slurm_hooks.compute.ownership import CLUSTER_LABEL, Mark, encode
from slurm_hooks.reconcile.act_deletions import MOST_CALLS_A_PASS, Deletions
from slurm_hooks.reconcile.actions import DeleteGroup, DeleteInstance, NoticeKind
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.fakes.compute import FakeCompute
from tests.unit.reconcile.builders import GROUP, N0, N1, example_cluster
from tests.unit.reconcile.scenario import Scenario


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path)


def running_job(scenario: Scenario, *names: str) -> int:
    job_id = scenario.slurm.submit(list(names))
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    return job_id


def suspend_after(scenario: Scenario, job_id: int, *names: str) -> None:
    scenario.slurm.complete(job_id)
    scenario.slurm.suspend(list(names))


def live_vms(scenario: Scenario) -> list[str]:
    return [
        vm.name
        for vm in scenario.compute.state.instances.values()
        if vm.status is not InstanceStatus.STOPPING
    ]


def test_queued_vm_goes_with_its_request(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    suspend_after(scenario, job_id, N0)
    scenario.settle_with_vms()
    assert (scenario.waiting(), scenario.vm_names()) == ([], [])


@pytest.mark.parametrize(
    "status",
    [
        InstanceStatus.PENDING,
        InstanceStatus.PROVISIONING,
        InstanceStatus.STAGING,
        InstanceStatus.RUNNING,
        InstanceStatus.REPAIRING,
        InstanceStatus.TERMINATED,
        InstanceStatus.SUSPENDED,
    ],
)
def test_vm_in_any_state_is_deleted_once(scenario: Scenario, status: InstanceStatus) -> None:
    job_id = running_job(scenario, N0)
    suspend_after(scenario, job_id, N0)
    scenario.compute.state.set_status(N0, status)
    scenario.settle_with_vms()
    assert scenario.vm_names() == []
    assert len(scenario.compute.calls_of("delete_instances")) == 1


def test_vm_that_goes_already_is_waited_for(scenario: Scenario) -> None:
    job_id = running_job(scenario, N0)
    suspend_after(scenario, job_id, N0)
    scenario.compute.state.set_status(N0, InstanceStatus.STOPPING)
    scenario.settle_with_vms()
    assert scenario.vm_names() == []
    assert scenario.compute.calls_of("delete_instances") == []


def test_partly_gone_gang_loses_the_rest(scenario: Scenario) -> None:
    job_id = running_job(scenario, N0, N1)
    suspend_after(scenario, job_id, N0, N1)
    scenario.compute.state.vanish(N0)
    scenario.settle_with_vms()
    scenario.settle_after_the_grace()
    assert (scenario.vm_names(), scenario.requests()) == ([], [])


@pytest.mark.parametrize("restart", [False, True], ids=["", "restarted"])
def test_deletion_slower_than_suspend_timeout_never_leads_to_two_vms(
    scenario: Scenario, restart: bool
) -> None:
    first = running_job(scenario, N0)
    suspend_after(scenario, first, N0)
    scenario.run()
    assert live_vms(scenario) == []
    scenario.slurm.slept([N0])
    second = scenario.slurm.submit([N0])
    if restart:
        scenario.restart()
    for _ in range(10):
        scenario.run()
        scenario.slurm.pass_power_thread()
        assert scenario.vm_names() == [N0]
        assert scenario.waiting() == []
    assert "to go" in scenario.slurm.jobs[second].admin_comment
    scenario.compute.state.vanish(N0)
    scenario.settle()
    assert len(scenario.waiting()) == 1
    scenario.grant_all()
    scenario.settle_with_vms()
    assert scenario.slurm.jobs[second].state is JobState.RUNNING


def test_gang_waits_for_the_one_name_whose_old_vm_is_stuck(scenario: Scenario) -> None:
    first = running_job(scenario, N0)
    suspend_after(scenario, first, N0)
    scenario.compute.operations_finish_at_once = False
    scenario.run()
    scenario.slurm.slept([N0])
    scenario.slurm.submit([N0, N1])
    for _ in range(10):
        scenario.run()
    assert scenario.waiting() == []
    assert len(scenario.compute.calls_of("delete_instances")) == 1
    scenario.compute.operations_finish_at_once = True
    scenario.compute.state.finish_operations()
    scenario.compute.state.vanish(N0)
    scenario.settle()
    assert [r.instances for r in scenario.requests() if r.state.is_active] == [(N0, N1)]


@pytest.mark.parametrize("fails", ["call", "operation"])
def test_refused_deletion_is_reported_and_tried_again_later(scenario: Scenario, fails: str) -> None:
    job_id = running_job(scenario, N0)
    suspend_after(scenario, job_id, N0)
    if fails == "call":
        error = ComputeError(ErrorKind.PERMISSION, "forbidden", "grant compute.instances.delete")
        scenario.compute.fail_next(error, "delete_instances")
    else:
        scenario.compute.fail_next_operation("PERMISSIONS_ERROR", 403)
    scenario.run()
    plans = [scenario.run() for _ in range(3)]
    (notice,) = plans[-1].notices
    assert (notice.kind, notice.error_kind) == (NoticeKind.FAILURE, ErrorKind.PERMISSION)
    assert live_vms(scenario) == [N0]
    assert len(scenario.compute.calls_of("delete_instances")) == 1
    scenario.now += timedelta(minutes=1)
    scenario.settle_with_vms()
    assert scenario.vm_names() == []


def test_refusal_for_a_whole_group_is_one_condition(scenario: Scenario) -> None:
    job_id = running_job(scenario, N0, N1)
    suspend_after(scenario, job_id, N0, N1)
    error = ComputeError(ErrorKind.PERMISSION, "forbidden", "grant compute.instances.delete")
    scenario.compute.fail_next(error, "delete_instances")
    scenario.run()
    (notice,) = scenario.run().notices
    assert notice.subject == f"delete instances of {GROUP.reference.name}"


class OneBadMember(FakeCompute):
    """A service that refuses every call with this VM in it."""

    bad = ""
    in_operation = False

    def delete_instances(
        self, group: GroupReference, zones_by_name: dict[str, str], request_id: str
    ) -> Operation:
        if self.bad in zones_by_name:
            if not self.in_operation:
                raise ComputeError(ErrorKind.CONFIG, "invalid", self.bad, 400)
            self.fail_next_operation("INVALID_USAGE", 400)
        return super().delete_instances(group, zones_by_name, request_id)


@pytest.mark.parametrize("in_operation", [False, True], ids=["call", "operation"])
def test_one_bad_member_keeps_no_other_vm_alive(tmp_path: Path, in_operation: bool) -> None:
    compute = OneBadMember()
    scenario = Scenario(tmp_path, cluster=example_cluster(max_node_count=40), compute=compute)
    names = list(scenario.cluster.node_names("a3u"))
    job_id = running_job(scenario, *names)
    compute.bad, compute.in_operation = names[17], in_operation
    suspend_after(scenario, job_id, *names)
    calls_before = len(compute.calls)
    for _ in range(6):
        for _ in range(3):
            scenario.run()
        scenario.now += timedelta(minutes=1)
    assert live_vms(scenario) == []
    calls = [c for c in compute.calls[calls_before:] if c.method.startswith("delete_inst")]
    assert len(calls) < len(names)


def deletion(index: int, group: GroupReference | None = GROUP.reference) -> DeleteInstance:
    return DeleteInstance(group, f"flexvm-a3u-{index}", "us-central1-a", str(index))


def sizes(actions: Sequence[DeleteInstance], attempts: int) -> list[int]:
    """How many VMs each call of one pass takes, after so many attempts."""
    compute = FakeCompute()
    memory = Memory(attempts={action.subject: attempts for action in actions})
    for _ in Deletions(compute).delete_instances(actions, memory):
        pass
    return [len(call.subject) if isinstance(call.subject, tuple) else 1 for call in compute.calls]


def test_calls_become_smaller_with_each_attempt_and_stay_bounded() -> None:
    many = [deletion(index) for index in range(2500)]
    assert sizes(many, 0) == [1000, 1000, 500]
    assert sizes(many, 1) == [100] * MOST_CALLS_A_PASS
    assert sizes(many, 2) == [10] * MOST_CALLS_A_PASS
    assert sizes(many, 3) == [1] * MOST_CALLS_A_PASS


def test_vms_that_were_never_tried_come_first() -> None:
    compute = FakeCompute()
    old, new = deletion(1), deletion(2)
    memory = Memory(attempts={old.subject: 2})
    list(Deletions(compute).delete_instances([old, new], memory))
    assert [call.subject for call in compute.calls] == [(new.name,), (old.name,)]


def test_vm_that_its_group_has_lost_is_deleted_alone_in_the_end(scenario: Scenario) -> None:
    job_id = running_job(scenario, N0)
    state = scenario.compute.state
    del state.groups[GROUP.reference]
    suspend_after(scenario, job_id, N0)
    for _ in range(5):
        scenario.run()
    assert live_vms(scenario) == []


OLD = GroupReference(GROUP.reference.scope, "flexvm-a3u-11111111")


def with_outdated_group(scenario: Scenario) -> Group:
    mark = encode(Mark("flexvm", "a3u", generation="11111111"))
    group = Group(OLD, OLD.name, 0, mark, scenario.now - timedelta(days=1))
    scenario.compute.state.groups[OLD] = group
    return group


def test_outdated_group_and_then_its_template_go(scenario: Scenario) -> None:
    running_job(scenario, N0)
    state = scenario.compute.state
    with_outdated_group(scenario)
    ((place, _), template), *_ = state.templates.items()
    state.templates[place, OLD.name] = replace(
        template, name=OLD.name, labels=((CLUSTER_LABEL, "flexvm"),)
    )
    state.template_times_utc[OLD.name] = scenario.now - timedelta(days=1)
    scenario.restart()
    for _ in range(6):
        scenario.run()
        scenario.now += timedelta(minutes=10)
    assert list(state.groups) == [GROUP.reference]
    assert [name for _, name in state.templates] == [GROUP.template]


def test_group_that_is_not_empty_when_it_is_read_again_is_kept(scenario: Scenario) -> None:
    group = with_outdated_group(scenario)
    scenario.compute.state.groups[OLD] = replace(group, target_size=1)
    outcome: Outcome = Deletions(scenario.compute).delete_group(DeleteGroup(OLD), Memory())
    assert outcome.operation is None
    assert OLD in scenario.compute.state.groups


def test_late_grant_of_a_cancelled_job_leaves_no_vm_however_late(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    (reference,) = scenario.waiting()
    scenario.slurm.cancel(job_id)
    error = ComputeError(ErrorKind.CONFLICT, "conditionNotMet", "", 412)
    scenario.compute.fail_next(error, "cancel_resize_request")
    scenario.run()
    scenario.slurm.pass_power_thread()
    scenario.compute.state.grant(reference)
    scenario.slurm.slept([N0])
    assert scenario.slurm.nodes[N0].state.has(NodeFlag.POWERED_DOWN)
    for _ in range(3):
        scenario.run()
    scenario.now += timedelta(seconds=scenario.cluster.policy.reap_grace_seconds + 1)
    scenario.settle_with_vms()
    assert (scenario.vm_names(), scenario.requests()) == ([], [])
