"""What the controller does unasked, and a controller that dies at every single call of it: holds,
reaping, renewal, ends of life and static nodes come to the same end as in an undisturbed life."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import Group, GroupReference, InstanceStatus, Scope, ScopeKind
from slurm_hooks.compute.ownership import Mark, encode
from slurm_hooks.reconcile.end_of_life import NAME_PREFIX
from slurm_hooks.reconcile.passes import TEMPLATES_INTERVAL
from slurm_hooks.reconcile.specifications import template_of
from slurm_hooks.slurm.client import ReservationSpecification
from slurm_hooks.slurm.model import JobState, NodeFlag
from slurm_hooks.slurm.versions import SlurmVersion
from tests.fakes.slurm import SLURM_24_11, SLURM_26_05
from tests.unit.reconcile.builders import CLUSTER, GROUP, N0, N1, example_cluster
from tests.unit.reconcile.deaths import (
    STRIDE_OF_A_FIRST_LOOK,
    WAYS_TO_DIE,
    Story,
    assert_death_at_any_call_changes_nothing,
)
from tests.unit.reconcile.life import LONGER_THAN_EVERY_GRACE, Life, lives

pytestmark = pytest.mark.slow
"""A death at each call of many stories takes minutes: one of them is quick enough for all runs."""

HOLD = timedelta(seconds=300)
LIFE = timedelta(days=7)
DAY_SECONDS = 86400
AT_FIRST_FAILURE = replace(CLUSTER, policy=Policy(hold_after_failures=1))
ONE_NODE = example_cluster(max_node_count=1)
ONE_STATIC = example_cluster(min_node_count=1)
OLD = GroupReference(GROUP.reference.scope, "flexvm-a3u-0ld0ld00")


def run_job(life: Life, *names: str, time_limit_seconds: int | None = 3600) -> int:
    """A job that runs on fresh VMs."""
    job_id = life.slurm.submit(list(names), time_limit_seconds=time_limit_seconds)
    life.deliver_calls()
    life.rest()
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    return job_id


def fill(life: Life) -> None:
    """Every node that is to exist gets its VM."""
    life.rest()
    life.grant_all()
    life.rest()


def pool_is_held_and_given_back(life: Life) -> None:
    job_id = life.slurm.submit([N0])
    life.deliver_calls()
    life.rest()
    (reference,) = life.waiting()
    life.compute.state.fail(reference, "QUOTA_EXCEEDED", "GPUS in us-central1")
    life.rest()
    drained = [n for n, node in life.slurm.nodes.items() if node.state.has(NodeFlag.DRAIN)]
    assert drained == list(life.slurm.nodes)
    life.advance(HOLD)
    life.rest()
    assert not any(node.state.has(NodeFlag.DRAIN) for node in life.slurm.nodes.values())
    life.slurm.allocate(job_id, [N0])
    life.deliver_calls()
    fill(life)
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert not any(node.comment for node in life.slurm.nodes.values())


def held_pool_leaves_alone_what_a_person_drains(life: Life) -> None:
    life.slurm.submit([N0])
    life.deliver_calls()
    life.rest()
    life.slurm.set_state(N1, life.slurm.nodes[N1].state.base, *_OFF_AND_DRAINED, reason="fan")
    (reference,) = life.waiting()
    life.compute.state.fail(reference, "PERMISSIONS_ERROR")
    life.rest()
    life.advance(HOLD)
    life.rest()
    drained = [n for n, node in life.slurm.nodes.items() if node.state.has(NodeFlag.DRAIN)]
    assert [(name, life.slurm.nodes[name].reason) for name in drained] == [(N1, "fan")]


_OFF_AND_DRAINED = (NodeFlag.CLOUD, NodeFlag.POWERED_DOWN, NodeFlag.DRAIN)


def node_leaves_slurm_and_its_vm_goes(life: Life) -> None:
    job_id = run_job(life, N0, N1)
    life.slurm.complete(job_id)
    del life.slurm.nodes[N1]
    life.rest()
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.rest()
    assert life.vm_names() == [N0]


def what_an_earlier_generation_left_goes(life: Life) -> None:
    _leave_an_earlier_generation(life)
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.rest()
    life.advance(TEMPLATES_INTERVAL)
    life.rest()
    assert OLD not in life.compute.state.groups
    assert not life.compute.state.templates


def _leave_an_earlier_generation(life: Life) -> None:
    """An empty group with its template, as they stay when a pool's template has changed."""
    state, pool = life.compute.state, life.cluster.pools["a3u"]
    template = replace(template_of(life.cluster, pool), name=OLD.name)
    state.templates[Scope(ScopeKind.GLOBAL, ""), OLD.name] = template
    state.template_times_utc[OLD.name] = life.now
    mark = Mark(life.cluster.cluster_id, "a3u", generation="0ld0ld00")
    state.groups[OLD] = Group(OLD, OLD.name, 0, encode(mark), life.now)
    state.group_zones[OLD] = pool.zones


def idle_vm_of_an_earlier_generation_goes_and_leaves_nothing(life: Life) -> None:
    _leave_an_earlier_generation(life)
    life.compute.state.add_instance(OLD, N0, InstanceStatus.RUNNING)
    life.compute.state.change_target_size(OLD, 1)
    life.slurm.set_state(N0, life.slurm.nodes[N0].state.base, NodeFlag.CLOUD)
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.rest()
    life.advance(TEMPLATES_INTERVAL)
    life.rest()
    assert life.vm_names() == []
    assert OLD not in life.compute.state.groups


def stale_reservation_goes_and_a_persons_stays(life: Life) -> None:
    for name in (f"{NAME_PREFIX}20260105T110000Z-00000000", "maintenance"):
        life.slurm.create_reservation(ReservationSpecification(name, (N1,), life.now, 600))
    run_job(life, N0)
    assert sorted(r.nodes for r in life.slurm.reservations.values()) == [(N0,), (N1,)]
    assert "maintenance" in life.slurm.reservations


def idle_node_is_renewed_for_a_longer_job(life: Life) -> None:
    first = run_job(life, N0)
    life.slurm.complete(first)
    old_vm = life.compute.state.instance(N0).instance_id
    life.advance(LIFE - timedelta(hours=2))
    second = life.slurm.queue("a3u", time_limit_seconds=DAY_SECONDS, reason="Resources")
    life.rest()
    assert life.vm_names() == []
    life.slurm.allocate(second, [N0])
    life.deliver_calls()
    fill(life)
    assert life.slurm.jobs[second].state is JobState.RUNNING
    assert life.compute.state.instance(N0).instance_id != old_vm


def job_is_warned_before_the_end_of_its_node_and_comes_back(life: Life) -> None:
    """The job is in the queue again, and gets the same node a second time."""
    job_id = run_job(life, N0, time_limit_seconds=None)
    assert [r.nodes for r in life.slurm.reservations.values()] == [(N0,)]
    life.advance(LIFE - timedelta(minutes=5))
    life.rest()
    assert "URG was sent" in life.slurm.jobs[job_id].admin_comment
    life.advance(timedelta(minutes=5))
    life.compute.state.vanish(N0)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    life.slurm.allocate(job_id, [N0])
    life.deliver_calls()
    fill(life)
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert [r.nodes for r in life.slurm.reservations.values()] == [(N0,)]


def static_node_comes_back_after_its_end_of_life(life: Life) -> None:
    fill(life)
    old_vm = life.compute.state.instance(N0)
    assert old_vm.termination_time_utc is not None
    life.advance(old_vm.termination_time_utc - life.now)
    life.compute.state.set_status(N0, InstanceStatus.STOPPING)
    life.rest()
    fill(life)
    assert life.compute.state.instance(N0).instance_id != old_vm.instance_id
    assert [r.nodes for r in life.slurm.reservations.values()] == [(N0,)]


def static_node_comes_back_after_a_person_deleted_its_vm(life: Life) -> None:
    fill(life)
    old_vm = life.compute.state.instance(N0).instance_id
    life.compute.state.set_status(N0, InstanceStatus.STOPPING)
    life.tick()
    fill(life)
    assert life.compute.state.instance(N0).instance_id != old_vm


def static_node_that_stopped_from_inside_comes_back(life: Life) -> None:
    fill(life)
    old_vm = life.compute.state.instance(N0).instance_id
    life.compute.state.set_status(N0, InstanceStatus.TERMINATED)
    life.rest()
    fill(life)
    assert life.compute.state.instance(N0).instance_id != old_vm


def vm_that_never_registers_is_replaced(life: Life) -> None:
    job_id = life.slurm.submit([N0])
    life.deliver_calls()
    life.rest()
    life.compute.state.grant(life.waiting()[0])
    old_vm = life.compute.state.instance(N0).instance_id
    life.advance(timedelta(seconds=life.cluster.policy.boot_timeout_seconds + 1))
    life.one_pass()
    life.one_pass()
    life.compute.state.vanish(N0)
    fill(life)
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert life.compute.state.instance(N0).instance_id != old_vm


STORIES: tuple[tuple[Story, Cluster], ...] = (
    (pool_is_held_and_given_back, AT_FIRST_FAILURE),
    (held_pool_leaves_alone_what_a_person_drains, AT_FIRST_FAILURE),
    (node_leaves_slurm_and_its_vm_goes, CLUSTER),
    (what_an_earlier_generation_left_goes, CLUSTER),
    (idle_vm_of_an_earlier_generation_goes_and_leaves_nothing, CLUSTER),
    (stale_reservation_goes_and_a_persons_stays, CLUSTER),
    (idle_node_is_renewed_for_a_longer_job, ONE_NODE),
    (job_is_warned_before_the_end_of_its_node_and_comes_back, ONE_NODE),
    (static_node_comes_back_after_its_end_of_life, ONE_STATIC),
    (static_node_comes_back_after_a_person_deleted_its_vm, ONE_STATIC),
    (static_node_that_stopped_from_inside_comes_back, ONE_STATIC),
    (vm_that_never_registers_is_replaced, CLUSTER),
)

every_story = pytest.mark.parametrize(
    ("story", "cluster"), STORIES, ids=[story.__name__ for story, _ in STORIES]
)


@every_story
def test_death_at_some_calls_leads_to_the_same_end(
    tmp_path: Path, story: Story, cluster: Cluster
) -> None:
    make = lives(tmp_path, cluster, operations_take_time=True)
    stride = STRIDE_OF_A_FIRST_LOOK
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=True, stride=stride)


@pytest.mark.slow
@every_story
@pytest.mark.parametrize(("after_the_call", "operations_take_time"), WAYS_TO_DIE)
def test_death_at_any_call_leads_to_the_same_end(
    tmp_path: Path,
    story: Story,
    cluster: Cluster,
    after_the_call: bool,
    operations_take_time: bool,
) -> None:
    make = lives(tmp_path, cluster, operations_take_time)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call)


@pytest.mark.slow
@every_story
@pytest.mark.thorough
@pytest.mark.parametrize("version", [SLURM_24_11, SLURM_26_05], ids=str)
def test_it_does_with_later_versions_of_slurm(
    tmp_path: Path, story: Story, cluster: Cluster, version: SlurmVersion
) -> None:
    make = lives(tmp_path, cluster, True, version)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=True)
