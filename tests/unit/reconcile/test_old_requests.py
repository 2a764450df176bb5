"""A granted request that is still listed says nothing of a later start of its nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.compute.model import InstanceStatus, RequestState
from slurm_hooks.reconcile.actions import DeleteReservation, UpdateNode
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, JobState
from tests.unit.reconcile.builders import N0, N1, World, example_cluster, request, starting, vm
from tests.unit.reconcile.life import Life

PASSES = 20


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
