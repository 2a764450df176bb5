"""VMs that are created by name, and a controller that dies at every single call: same end."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.cluster.topology import ProvisioningModel
from slurm_hooks.compute.model import ErrorDetail, InstanceStatus
from slurm_hooks.slurm.model import JobState
from tests.unit.reconcile.builders import N0, N1, example_cluster
from tests.unit.reconcile.deaths import (
    WAYS_TO_DIE,
    Story,
    assert_death_at_any_call_changes_nothing,
    assert_second_death_changes_nothing,
)
from tests.unit.reconcile.life import Life, lives

pytestmark = pytest.mark.slow
"""A death at each call of many stories takes minutes: one of them is quick enough for all runs."""

NO_ROOM = ErrorDetail("ZONE_RESOURCE_POOL_EXHAUSTED")


def job_runs_is_preempted_runs_again_and_its_nodes_go(life: Life) -> None:
    job_id = life.slurm.submit([N0, N1])
    life.deliver_calls()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    life.compute.state.set_status(N0, InstanceStatus.STOPPING)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    life.slurm.allocate(job_id, [N0, N1])
    life.deliver_calls()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    life.slurm.complete(job_id)
    life.slurm.suspend([N0, N1])
    life.rest()
    assert life.vm_names() == []


def vms_cannot_be_had_and_the_job_is_queued_again(life: Life) -> None:
    life.compute.state.refusal = NO_ROOM
    job_id = life.slurm.submit([N0, N1])
    life.deliver_calls()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    life.compute.state.refusal = None
    life.rest()
    assert not life.compute.state.members
    assert life.vm_names() == []


def job_is_cancelled_while_its_vms_are_made(life: Life) -> None:
    life.compute.state.refusal = ErrorDetail("INTERNAL_ERROR")
    job_id = life.slurm.submit([N0, N1])
    life.deliver_calls()
    life.rest()
    life.slurm.cancel(job_id)
    life.rest()
    assert not life.compute.state.members
    life.compute.state.refusal = None


def static_node_is_refilled(life: Life) -> None:
    life.rest()
    assert life.vm_names() == [N0]
    life.compute.state.set_status(N0, InstanceStatus.TERMINATED)
    life.rest()
    assert life.vm_names() == [N0]
    assert life.compute.state.instance(N0).status is InstanceStatus.RUNNING


STORIES: tuple[tuple[Story, int], ...] = (
    (job_runs_is_preempted_runs_again_and_its_nodes_go, 0),
    (vms_cannot_be_had_and_the_job_is_queued_again, 0),
    (job_is_cancelled_while_its_vms_are_made, 0),
    (static_node_is_refilled, 1),
)

every_story = pytest.mark.parametrize(
    ("story", "min_node_count"), STORIES, ids=[story.__name__ for story, _ in STORIES]
)


@every_story
@pytest.mark.parametrize(("after_the_call", "operations_take_time"), WAYS_TO_DIE)
def test_death_at_any_call_leads_to_the_same_end(
    tmp_path: Path,
    story: Story,
    min_node_count: int,
    after_the_call: bool,
    operations_take_time: bool,
) -> None:
    cluster = example_cluster(min_node_count=min_node_count, model=ProvisioningModel.SPOT)
    make = lives(tmp_path, cluster, operations_take_time)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call)


@pytest.mark.thorough
@pytest.mark.slow
@every_story
@pytest.mark.parametrize("after_the_call", [False, True], ids=["before", "after"])
def test_second_death_while_the_first_is_made_up_for_leads_to_the_same_end(
    tmp_path: Path, story: Story, min_node_count: int, after_the_call: bool
) -> None:
    cluster = example_cluster(min_node_count=min_node_count, model=ProvisioningModel.SPOT)
    make = lives(tmp_path, cluster, True)
    assert_second_death_changes_nothing(make, story, after_the_call=after_the_call)
