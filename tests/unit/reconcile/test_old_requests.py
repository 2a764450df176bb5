"""A request that is over and still listed says nothing of a later start of its nodes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.model import InstanceStatus, RequestState, ResizeRequest
from slurm_hooks.reconcile.actions import DeleteRequest, DeleteReservation, UpdateNode
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, JobState, SlurmSnapshot
from tests.unit.reconcile.builders import (
    CLUSTER,
    N0,
    N1,
    NOW,
    World,
    example_cluster,
    job,
    long_seen,
    off,
    request,
    starting,
    vm,
)
from tests.unit.reconcile.life import LONGER_THAN_EVERY_GRACE, Life

PASSES = 20
GRACE_SECONDS = CLUSTER.policy.reap_grace_seconds


def life_in_which_a_job_left_one_vm(directory: Path, *, static: bool) -> Life:
    """A job had two nodes and is over; the next job still runs on the second one's VM."""
    life = Life(directory, example_cluster(min_node_count=int(static), max_node_count=4))
    first = life.slurm.submit([N0, N1])
    life.deliver_calls()
    life.rest()
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[first].state is JobState.RUNNING
    life.slurm.complete(first)
    life.slurm.submit([N1])
    life.rest()
    return life


def passes(life: Life) -> None:
    for _ in range(PASSES):
        life.tick()
        life.grant_all()


def test_static_node_of_an_ended_job_is_refilled_while_another_vm_of_it_lives(
    tmp_path: Path,
) -> None:
    life = life_in_which_a_job_left_one_vm(tmp_path, static=True)
    life.compute.state.vanish(N0)
    passes(life)
    assert N0 in life.vm_names()


def test_node_of_an_ended_job_is_powered_up_by_hand_while_another_vm_of_it_lives(
    tmp_path: Path,
) -> None:
    life = life_in_which_a_job_left_one_vm(tmp_path, static=False)
    life.slurm.suspend([N0])
    life.rest()
    assert N0 not in life.vm_names()
    life.person_updates(N0, NodeUpdate.POWER_UP, "")
    life.deliver_calls()
    passes(life)
    assert N0 in life.vm_names()


@pytest.mark.parametrize("vms", [[], [vm(N0, InstanceStatus.STAGING)]])
def test_vm_of_a_cancelled_job_that_a_single_list_lacks_is_kept(vms: list[object]) -> None:
    granted = request("r", N0, state=RequestState.SUCCEEDED, job_id=12)
    world = World([starting(N0, BaseState.IDLE)], requests=[granted], vms=vms)  # type: ignore[arg-type]
    plan = world.plan()
    assert plan.steps[N0] is (Step.AWAIT_BOOT if vms else Step.REQUEST_AGAIN)
    assert not any(isinstance(action, UpdateNode) for action in plan.actions)


def test_reservation_stays_while_a_single_list_lacks_its_vm(tmp_path: Path) -> None:
    life = life_in_which_a_job_left_one_vm(tmp_path, static=False)
    assert life.slurm.reservations
    life.compute.state.hidden.add(N1)
    plan = life.one_pass()
    assert plan is not None
    assert not any(isinstance(action, DeleteReservation) for action in plan.actions)
    life.compute.state.hidden.clear()
    life.rest()
    assert life.slurm.reservations


def over(job_id: int | None = None) -> ResizeRequest:
    """A request that brought no VM, made a moment ago."""
    return request("r", N0, state=RequestState.FAILED, error="X", job_id=job_id)


def spent(*requests: ResizeRequest) -> Memory:
    """What is known once a pass has found these of no use."""
    return long_seen(finished=[DeleteRequest(r.reference).subject for r in requests])


@pytest.mark.parametrize("made_for", [None, 12], ids=["nobody", "a job that has ended"])
@pytest.mark.parametrize("state", [RequestState.FAILED, RequestState.CANCELLED])
def test_start_of_a_node_for_no_job_is_not_judged_by_a_request_whose_start_is_over(
    made_for: int | None, state: RequestState
) -> None:
    left = replace(over(made_for), state=state)
    world = World([starting(N0, BaseState.IDLE)], requests=[left], memory=spent(left))
    assert world.plan().steps[N0] is Step.REQUEST
    assert spent(left).sightings.finished <= world.plan().sightings.finished, (
        "and it is still to be reaped"
    )


def test_start_that_a_request_was_made_for_fails_with_it() -> None:
    failed = over(job_id=12)
    world = World([starting(N0)], [job(12, N0)], [failed], memory=spent(failed))
    assert world.plan().steps[N0] is Step.FAIL_START


@pytest.mark.parametrize("age_seconds", [GRACE_SECONDS, GRACE_SECONDS + 1])
def test_finished_request_goes_at_the_second_sighting_when_it_is_older_than_the_grace(
    age_seconds: int,
) -> None:
    left = replace(over(job_id=12), creation_time_utc=NOW - timedelta(seconds=age_seconds))
    first = World([off(N0)], requests=[left])
    second = World([off(N0)], requests=[left], memory=spent(left))
    assert first.actions(DeleteRequest) == []
    assert first.plan().sightings.finished == spent(left).sightings.finished
    assert len(second.actions(DeleteRequest)) == int(age_seconds > GRACE_SECONDS)


def test_finished_request_stays_while_a_record_of_slurm_is_unreadable() -> None:
    left = over(job_id=12)
    view = World([off(N0)], requests=[left], memory=spent(left)).snapshot()
    assert isinstance(view.slurm, SlurmSnapshot)
    unreadable = replace(view, slurm=replace(view.slurm, unreadable=("NodeName=?",)))
    plan = decide(unreadable, CLUSTER, NOW)
    assert plan.sightings.finished == frozenset()
    assert not any(isinstance(action, DeleteRequest) for action in plan.actions)


def test_node_is_powered_up_by_hand_right_after_the_request_of_a_job_was_cancelled(
    tmp_path: Path,
) -> None:
    life = Life(tmp_path, example_cluster())
    job_id = life.slurm.submit([N0])
    life.deliver_calls()
    life.rest()
    life.slurm.cancel(job_id)
    life.rest()
    assert [r.state for r in life.requests()] == [RequestState.CANCELLED], "it is still listed"
    life.person_updates(N0, NodeUpdate.POWER_UP, "")
    life.deliver_calls()
    passes(life)
    assert N0 in life.vm_names()


def test_static_node_is_asked_for_again_right_after_its_request_failed(tmp_path: Path) -> None:
    life = Life(tmp_path, example_cluster(min_node_count=1))
    life.rest()
    (failed,) = life.waiting()
    life.compute.state.fail(failed, "QUOTA_EXCEEDED")
    life.rest()
    assert [reference.name for reference in life.waiting()] == [failed.name[:-1] + "1"]
    assert len(life.requests()) == 2, "the failed one is listed until its grace is over"
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.rest()
    assert [r.reference for r in life.requests()] == life.waiting()
