"""The controller dies at every single call of a scenario, one life each: the end is the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

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
"""A death at each call of many stories takes minutes."""


def job_waits_runs_and_its_nodes_go(life: Life) -> None:
    job_id = life.slurm.submit([N0, N1])
    life.deliver_calls()
    life.rest()
    (reference,) = life.waiting()
    life.compute.state.note_attempt(reference, "ZONE_RESOURCE_POOL_EXHAUSTED")
    life.rest()
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    life.slurm.complete(job_id)
    life.slurm.suspend([N0, N1])
    life.rest()
    assert life.vm_names() == []


def job_is_cancelled_while_it_waits(life: Life) -> None:
    job_id = life.slurm.submit([N0, N1])
    life.deliver_calls()
    life.rest()
    life.slurm.cancel(job_id)
    life.rest()
    assert not life.waiting()
    assert not life.vm_names()


def cancelled_job_gets_its_vms_all_the_same(life: Life) -> None:
    job_id = life.slurm.submit([N0, N1])
    life.deliver_calls()
    life.rest()
    life.slurm.cancel(job_id)
    life.grant_all()
    life.rest()
    life.slurm.suspend([N0, N1])
    life.rest()
    assert not life.waiting()
    assert not life.vm_names()


def request_fails_and_its_job_is_requeued(life: Life) -> None:
    job_id = life.slurm.submit([N0, N1])
    life.deliver_calls()
    life.rest()
    (reference,) = life.waiting()
    life.compute.state.fail(reference, "QUOTA_EXCEEDED", "GPUS in us-central1")
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    assert not life.waiting()
    assert not life.vm_names()


def static_node_is_filled_and_refilled(life: Life) -> None:
    life.rest()
    life.grant_all()
    life.rest()
    assert life.vm_names() == [N0]
    life.compute.state.vanish(N0)
    life.rest()
    life.grant_all()
    life.rest()
    assert life.vm_names() == [N0]


def node_is_wanted_again_while_its_vm_goes(life: Life) -> None:
    first = life.slurm.submit([N0])
    life.deliver_calls()
    life.rest()
    life.grant_all()
    life.rest()
    life.slurm.complete(first)
    life.slurm.suspend([N0])
    life.tick()
    second = life.slurm.submit([N0])
    life.rest()
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[second].state is JobState.RUNNING


def vm_ends_under_its_job(life: Life) -> None:
    job_id = life.slurm.submit([N0], time_limit_seconds=None)
    life.deliver_calls()
    life.rest()
    life.grant_all()
    life.rest()
    end = life.compute.state.instance(N0).termination_time_utc
    assert end is not None
    assert [r.start_time_utc for r in life.slurm.reservations.values()] == [end]
    life.advance(end - life.now - timedelta(minutes=5))
    life.rest()
    assert "URG was sent" in life.slurm.jobs[job_id].admin_comment
    life.advance(end - life.now)
    life.compute.state.vanish(N0)
    life.rest()
    job = life.slurm.jobs[job_id]
    assert (job.state, job.admin_comment) == (JobState.PENDING, "")
    assert life.slurm.reservations == {}


STORIES: tuple[tuple[Story, int], ...] = (
    (job_waits_runs_and_its_nodes_go, 0),
    (job_is_cancelled_while_it_waits, 0),
    (cancelled_job_gets_its_vms_all_the_same, 0),
    (request_fails_and_its_job_is_requeued, 0),
    (static_node_is_filled_and_refilled, 1),
    (node_is_wanted_again_while_its_vm_goes, 0),
    (vm_ends_under_its_job, 0),
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
    make = lives(tmp_path, example_cluster(min_node_count=min_node_count), operations_take_time)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call)


@pytest.mark.thorough
@pytest.mark.slow
@every_story
@pytest.mark.parametrize("after_the_call", [False, True], ids=["before", "after"])
def test_second_death_while_the_first_is_made_up_for_leads_to_the_same_end(
    tmp_path: Path, story: Story, min_node_count: int, after_the_call: bool
) -> None:
    make = lives(tmp_path, example_cluster(min_node_count=min_node_count), True)
    assert_second_death_changes_nothing(make, story, after_the_call=after_the_call)
