"""Components of a heterogeneous job fail to start together and may use their nodes again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_hooks.compute.model import RequestState, ResizeRequest
from slurm_hooks.reconcile.actions import UpdateNode
from slurm_hooks.reconcile.plan_nodes import FORCE
from slurm_hooks.reconcile.reasons import OFFERED_AGAIN, set_aside_reason
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Job, JobState, Node, NodeFlag
from tests.unit.reconcile.builders import N0, N1, World, job, node, request, starting, vm

N2, N3 = "flexvm-a3u-2", "flexvm-a3u-3"
FAILED = "slurm-hooks: request failed (QUOTA_EXCEEDED)"
CODE = "QUOTA_EXCEEDED"


def component(job_id: int, *nodes: str, of: int = 1) -> Job:
    return replace(job(job_id, *nodes), het_job_id=of)


def request_of(job_id: int, *nodes: str, fails: bool = False) -> ResizeRequest:
    state = RequestState.FAILED if fails else RequestState.ACCEPTED
    return request(f"r{job_id}", *nodes, state=state, job_id=job_id, error=CODE if fails else "")


def failed(world: World) -> dict[str, UpdateNode]:
    updates = (action for action in world.plan().actions if isinstance(action, UpdateNode))
    return {update.node: update for update in updates if update.updates == FORCE}


@pytest.mark.parametrize("failing", [1, 2])
def test_nodes_of_all_components_fail_with_those_of_one(failing: int) -> None:
    world = World(
        [starting(name) for name in (N0, N1, N2)],
        [component(1, N0), component(2, N1, N2)],
        [request_of(1, N0, fails=failing == 1), request_of(2, N1, N2, fails=failing == 2)],
    )
    updates = failed(world)
    assert updates.keys() == {N0, N1, N2}
    assert {update.code for update in updates.values()} == {CODE}
    assert {update.told_job for update in updates.values()} == {failing}


def test_other_jobs_keep_their_nodes() -> None:
    world = World(
        [starting(name) for name in (N0, N1, N2, N3)],
        [component(1, N0), component(2, N1), component(4, N2, of=3), job(5, N3)],
        [
            request_of(1, N0, fails=True),
            request_of(2, N1),
            request_of(4, N2),
            request_of(5, N3),
        ],
    )
    assert failed(world).keys() == {N0, N1}


def test_node_of_another_component_that_has_registered_keeps_its_vm() -> None:
    world = World(
        [starting(N0), node(N1, base=BaseState.ALLOCATED)],
        [component(1, N0), component(2, N1)],
        [request_of(1, N0, fails=True)],
        [vm(N1)],
    )
    assert failed(world).keys() == {N0}


def offered(nodes: list[Node], *jobs: Job) -> set[str]:
    updates = World(nodes, jobs).actions(UpdateNode)
    return {
        update.node
        for update in updates
        if isinstance(update, UpdateNode) and update.updates == (NodeUpdate.IDLE,)
    }


def off_since_failure(name: str, *flags: NodeFlag, reason: str = FAILED) -> Node:
    off = node(name, NodeFlag.POWERED_DOWN, *flags, reason=reason)
    return replace(off, partitions=("a3u",))


WAITING = replace(component(1), state=JobState.PENDING, partition="other,a3u")


def test_nodes_off_since_a_failure_are_shown_to_a_heterogeneous_job_that_waits() -> None:
    nodes = [off_since_failure(N0), node(N1, NodeFlag.POWERED_DOWN)]
    assert offered(nodes, WAITING) == {N0}


def test_no_other_job_needs_that() -> None:
    nodes = [off_since_failure(N0)]
    assert offered(nodes, replace(WAITING, het_job_id=None)) == set()
    assert offered(nodes, replace(WAITING, partition="other")) == set()
    assert offered(nodes, replace(component(1, N1), partition="a3u")) == set()


@pytest.mark.parametrize(
    "kept",
    [
        off_since_failure(N0, NodeFlag.DRAIN),
        off_since_failure(N0, NodeFlag.POWERING_DOWN),
        off_since_failure(N0, NodeFlag.POWER_UP),
        off_since_failure(N0, reason="disk broken"),
        off_since_failure(N0, reason=set_aside_reason("disk broken")),
        off_since_failure(N0, reason=OFFERED_AGAIN),
    ],
    ids=lambda kept: f"{'+'.join(sorted(kept.state.flags))} {kept.reason}",
)
def test_node_that_is_not_to_be_offered_stays_as_it_is(kept: Node) -> None:
    assert offered([kept], WAITING) == set()
