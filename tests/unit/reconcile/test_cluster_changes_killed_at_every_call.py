"""Login nodes, new generations and shrinking pools, and a controller that dies at every call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.unit.reconcile.builders import N0, N1, example_cluster
from tests.unit.reconcile.deaths import (
    STRIDE_OF_A_FIRST_LOOK,
    WAYS_TO_DIE,
    Story,
    assert_death_at_any_call_changes_nothing,
)
from tests.unit.reconcile.life import Life, lives
from tests.unit.reconcile.test_generations import fill, with_other_disk

pytestmark = pytest.mark.slow
"""A death at each call of many stories takes minutes."""

LOGIN = "flexvm-login-0"


def login_node_comes_stops_and_comes_back(life: Life) -> None:
    life.rest()
    assert life.vm_names() == [LOGIN]
    life.compute.state.set_status(LOGIN, InstanceStatus.TERMINATED)
    life.rest()
    assert life.vm_names() == [LOGIN]
    assert life.compute.state.instance(LOGIN).status is InstanceStatus.RUNNING


def static_nodes_move_to_a_new_generation(life: Life) -> None:
    fill(life)
    job_id = life.slurm.submit([N1])
    old = life.compute.state.instance(N1).group
    life.apply(with_other_disk(life.cluster))
    fill(life)
    assert life.compute.state.instance(N1).group == old
    life.slurm.complete(job_id)
    fill(life)
    groups = {life.compute.state.instance(name).group for name in (N0, N1)}
    assert len(groups) == 1
    assert old not in groups
    assert life.slurm.jobs[job_id].restarts == 0


def pool_shrinks_under_one_job_and_before_another_has_its_vm(life: Life) -> None:
    first = life.slurm.submit([N0])
    life.deliver_calls()
    fill(life)
    second = life.slurm.submit([N1])
    life.deliver_calls()
    life.rest()
    life.apply(replace(example_cluster(max_node_count=0)))
    life.rest()
    states = life.slurm.jobs[first].state, life.slurm.jobs[second].state
    assert states == (JobState.RUNNING, JobState.PENDING)
    life.slurm.complete(first)
    life.rest()
    assert life.vm_names() == []
    for name in (N0, N1):
        flags = life.slurm.nodes[name].state.flags
        assert flags == {NodeFlag.CLOUD, NodeFlag.POWERED_DOWN, NodeFlag.DRAIN}


STORIES: tuple[tuple[Story, Cluster], ...] = (
    (login_node_comes_stops_and_comes_back, example_cluster(max_node_count=0, login_nodes=1)),
    (static_nodes_move_to_a_new_generation, example_cluster(min_node_count=2, max_node_count=2)),
    (pool_shrinks_under_one_job_and_before_another_has_its_vm, example_cluster(max_node_count=2)),
)


every_story = pytest.mark.parametrize(
    ("story", "cluster"), STORIES, ids=[story.__name__ for story, _ in STORIES]
)


@every_story
def test_death_at_many_calls_leads_to_the_same_end(
    tmp_path: Path, story: Story, cluster: Cluster
) -> None:
    make = lives(tmp_path, cluster, operations_take_time=True)
    assert_death_at_any_call_changes_nothing(
        make, story, after_the_call=True, stride=STRIDE_OF_A_FIRST_LOOK
    )


@pytest.mark.thorough
@every_story
@pytest.mark.parametrize(("after_the_call", "operations_take_time"), WAYS_TO_DIE)
def test_death_at_any_call_leads_to_the_same_end(
    tmp_path: Path, story: Story, cluster: Cluster, after_the_call: bool, operations_take_time: bool
) -> None:
    make = lives(tmp_path, cluster, operations_take_time)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call)
