"""Words of Compute Engine that we do not know: reported, and no licence to act."""

from __future__ import annotations

import pytest

from slurm_hooks.compute.model import InstanceStatus, RequestState
from slurm_hooks.reconcile.actions import CancelRequest, NoticeKind, UpdateNode
from slurm_hooks.slurm.model import JobState, Node
from tests.unit.reconcile.builders import (
    N0,
    World,
    call,
    job,
    off,
    request,
    starting,
    stopping,
    vm,
)


def test_start_given_up_while_its_vm_is_in_an_unknown_state_is_left_alone() -> None:
    """Its request was cancelled and its node powered down by force, with a VM there."""
    world = World(
        [starting(N0)],
        [job(12, N0, state=JobState.COMPLETED)],
        [request("r", N0, job_id=12)],
        [vm(N0, InstanceStatus.UNKNOWN)],
        (call(12, N0),),
    )
    assert world.actions(CancelRequest) == world.actions(UpdateNode) == []


@pytest.mark.parametrize("node", [off(N0), stopping(N0), starting(N0)])
def test_request_in_an_unknown_state_is_never_cancelled(node: Node) -> None:
    """It counted as waiting, so a node that was off had it cancelled."""
    world = World([node], requests=[request("r", N0, state=RequestState.UNKNOWN)])
    assert world.actions(CancelRequest) == []


def test_request_and_vm_in_unknown_states_are_reported() -> None:
    world = World(
        [off(N0)],
        requests=[request("r", N0, state=RequestState.UNKNOWN)],
        vms=[vm(N0, InstanceStatus.UNKNOWN)],
    )
    subjects = [n.subject for n in world.plan().notices if n.kind is NoticeKind.UNKNOWN_STATE]
    assert subjects == ["resize request r", f"VM {N0}"]
