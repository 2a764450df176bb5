"""Pools whose VMs are created by name: every model but Flex-start."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.cluster.topology import ProvisioningModel
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import (
    ErrorDetail,
    GroupReference,
    Instance,
    InstanceStatus,
    MemberAction,
)
from slurm_hooks.compute.ownership import decode
from slurm_hooks.reconcile.actions import DeleteInstance, UpdateNode
from slurm_hooks.reconcile.pool_record import read_record
from slurm_hooks.reconcile.sightings import BELIEVED_AFTER
from slurm_hooks.reconcile.specifications import group_of
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from tests.unit.reconcile.builders import N0, N1, example_cluster
from tests.unit.reconcile.life import Life
from tests.unit.reconcile.scenario import POWERED_DOWN_CLOUD

STOCKOUT = ErrorDetail("ZONE_RESOURCE_POOL_EXHAUSTED", "no room")
OTHERS = ("flexvm-a3u-2", "flexvm-a3u-3")
NOT_FLEX = [ProvisioningModel.SPOT, ProvisioningModel.ON_DEMAND, ProvisioningModel.RESERVATION]


def spot_life(directory: Path, *, static: int = 0) -> Life:
    cluster = example_cluster(min_node_count=static, model=ProvisioningModel.SPOT)
    return Life(directory, cluster)


def group(life: Life) -> GroupReference:
    return group_of(life.cluster, life.cluster.pools["a3u"]).reference


def waiting_job(life: Life, *nodes: str) -> int:
    """A job whose nodes slurmctld wakes, and whose call lies in the spool."""
    job_id = life.slurm.submit(list(nodes))
    life.deliver_calls()
    return job_id


def names_created(life: Life) -> list[tuple[str, ...]]:
    """The names in each call that creates VMs."""
    return [tuple(call.subject) for call in life.compute.calls_of("create_instances")]  # type: ignore[arg-type]


@pytest.mark.parametrize("model", NOT_FLEX)
def test_vms_of_a_job_are_created_by_one_call_with_their_names(
    tmp_path: Path, model: ProvisioningModel
) -> None:
    life = Life(tmp_path, example_cluster(model=model))
    job_id = waiting_job(life, N0, N1)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert names_created(life) == [(N0, N1)]
    assert life.requests() == []
    mark = decode(life.compute.state.groups[group(life)].description)
    assert mark is not None
    assert mark.provisioning_model == model


def test_nodes_of_nobody_are_created_in_one_call(tmp_path: Path) -> None:
    life = spot_life(tmp_path, static=4)
    life.rest()
    assert life.vm_names() == [N0, N1, *OTHERS]
    assert names_created(life) == [(N0, N1, *OTHERS)]


def test_one_name_that_is_taken_keeps_no_other_static_node_from_its_vm(tmp_path: Path) -> None:
    life = spot_life(tmp_path, static=4)
    zone = "us-central1-a"
    foreign = Instance(N1, "999", zone, InstanceStatus.TERMINATED)
    life.compute.state.instances[zone, N1] = foreign
    for _ in range(12):
        life.tick()
    assert life.vm_names() == [N0, N1, *OTHERS]
    assert life.compute.state.instances[zone, N1] == foreign
    assert life.slurm.nodes[N0].state.base is BaseState.IDLE
    assert not life.slurm.nodes[N0].state.has(NodeFlag.POWERING_UP)
    assert life.slurm.nodes[N1].state.has(NodeFlag.POWERING_UP)


def test_only_what_lacks_a_vm_is_created_again(tmp_path: Path) -> None:
    life = spot_life(tmp_path)
    job_id = waiting_job(life, N0, N1)
    while not life.vm_names():
        life.tick()
    life.compute.state.vanish(N1)
    life.rest()
    assert names_created(life) == [(N0, N1), (N1,)]
    assert life.slurm.jobs[job_id].restarts == 0
    assert life.slurm.jobs[job_id].state is JobState.RUNNING


def test_a_vm_that_cannot_be_had_fails_the_start_of_its_job_and_the_others_go(
    tmp_path: Path,
) -> None:
    life = spot_life(tmp_path)
    job_id = waiting_job(life, N0, N1)
    while not life.compute.state.members:
        life.one_pass()
    state = life.compute.state
    key = group(life), N1
    state.members[key] = replace(state.members[key], last_attempt_error=STOCKOUT)
    del state.members[group(life), N0]
    state.add_instance(group(life), N0, InstanceStatus.PROVISIONING)
    plan = life.one_pass()
    assert plan is not None
    failed = [action for action in plan.actions if isinstance(action, UpdateNode)]
    assert [(action.node, action.code) for action in failed] == [
        (N0, STOCKOUT.code),
        (N1, STOCKOUT.code),
    ]
    assert key not in state.members, "its old error would fail the next start"
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    assert "failed: 2 x" in life.slurm.jobs[job_id].admin_comment
    assert STOCKOUT.code in life.slurm.jobs[job_id].admin_comment
    state.refusal = STOCKOUT
    life.slurm.slept([N0, N1])
    life.rest()
    assert (life.vm_names(), state.members) == ([], {})
    assert state.groups[group(life)].target_size == 0
    records = [read_record(node.comment) for node in life.slurm.nodes.values() if node.comment]
    assert [record.failures for record in records if record] == [1]


def test_an_attempt_that_failed_for_the_moment_waits_and_the_job_is_told(tmp_path: Path) -> None:
    life = spot_life(tmp_path)
    job_id = waiting_job(life, N0)
    life.compute.state.refusal = ErrorDetail("INTERNAL_ERROR")
    for _ in range(6):
        life.tick()
    job = life.slurm.jobs[job_id]
    assert (job.state, job.restarts) == (JobState.CONFIGURING, 0)
    assert "(INTERNAL_ERROR)" in job.admin_comment
    assert len(names_created(life)) == 1
    life.compute.state.refusal = None
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING


def test_an_attempt_that_fails_for_the_moment_again_and_again_fails_the_start_in_the_end(
    tmp_path: Path,
) -> None:
    """ResumeTimeout, Slurm's own net, is many hours where VMs may wait for capacity."""
    life = spot_life(tmp_path)
    job_id = waiting_job(life, N0)
    life.compute.state.refusal = ErrorDetail("A_CODE_THAT_NOBODY_KNOWS")
    for _ in range(6):
        life.tick()
    life.advance(timedelta(seconds=life.cluster.policy.boot_timeout_seconds))
    life.one_pass()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    assert "A_CODE_THAT_NOBODY_KNOWS" in life.slurm.jobs[job_id].admin_comment


def test_a_refused_call_fails_the_start_with_its_code(tmp_path: Path) -> None:
    life = spot_life(tmp_path)
    job_id = waiting_job(life, N0)
    error = ComputeError(ErrorKind.QUOTA, "quotaExceeded", "CPUS", 403)
    life.compute.fail_next(error, "create_instances")
    while not names_created(life):
        life.tick()
    life.tick()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    assert "quotaExceeded" in life.slurm.jobs[job_id].admin_comment


def test_a_job_that_is_cancelled_gives_its_members_up(tmp_path: Path) -> None:
    life = spot_life(tmp_path)
    job_id = waiting_job(life, N0, N1)
    life.compute.state.refusal = ErrorDetail("INTERNAL_ERROR")
    while not life.compute.state.members:
        life.tick()
    for _ in range(3):
        life.tick()
    life.slurm.cancel(job_id)
    life.rest()
    assert life.compute.state.members == {}
    assert life.slurm.nodes[N0].state == POWERED_DOWN_CLOUD


def test_a_member_whose_vm_has_gone_is_deleted_before_its_name_is_used_again(
    tmp_path: Path,
) -> None:
    life = spot_life(tmp_path)
    job_id = waiting_job(life, N0)
    while not life.compute.state.groups:
        life.one_pass()
    life.compute.state.add_member(group(life), N0, MemberAction.NONE)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert names_created(life) == [(N0,)]
    assert life.compute.state.groups[group(life)].target_size == 1


def test_a_member_without_a_node_is_deleted_at_the_second_sighting(tmp_path: Path) -> None:
    life = spot_life(tmp_path)
    waiting_job(life, N0)
    life.rest()
    life.compute.state.add_member(group(life), "flexvm-a3u-9")
    life.compute.state.refusal = STOCKOUT
    plans = [life.one_pass()]
    life.advance(BELIEVED_AFTER)
    plans.append(life.one_pass())
    deleted = [
        [action.name for action in plan.actions if isinstance(action, DeleteInstance)]
        for plan in plans
        if plan is not None
    ]
    assert deleted == [[], ["flexvm-a3u-9"]]


def test_a_static_node_that_cannot_be_had_holds_its_pool(tmp_path: Path) -> None:
    life = spot_life(tmp_path, static=1)
    life.compute.state.refusal = STOCKOUT
    for _ in range(40):
        life.tick()
    assert life.slurm.nodes[N0].state.has(NodeFlag.DRAIN)
    assert "pool held until" in life.slurm.nodes[N0].reason
    assert STOCKOUT.code in life.slurm.nodes[N0].reason
    assert len(names_created(life)) == life.cluster.policy.hold_after_failures


def test_more_than_a_group_holds_is_created_in_several_calls_and_groups(tmp_path: Path) -> None:
    cluster = example_cluster(max_node_count=1200, model=ProvisioningModel.ON_DEMAND)
    life = Life(tmp_path, cluster)
    names = list(cluster.node_names("a3u"))
    job_id = waiting_job(life, *names)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert sorted(len(created) for created in names_created(life)) == [200, 1000]
    assert sorted(g.target_size for g in life.compute.state.groups.values()) == [200, 1000]


def test_a_call_that_failed_is_made_again_under_another_request_id(tmp_path: Path) -> None:
    life = spot_life(tmp_path)
    job_id = waiting_job(life, N0)
    while not life.compute.state.groups:
        life.one_pass()
    life.compute.fail_next_operation("ALREADY_EXISTS", 409)
    life.rest()
    calls = life.compute.calls_of("create_instances")
    assert len({call.request_id for call in calls}) == len(calls) == 2
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
