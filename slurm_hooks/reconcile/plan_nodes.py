"""From steps to actions, for each node by itself: cancel, delete, power down, recover."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from slurm_hooks.reconcile.actions import Action, Expectation, KeepConsole, ReasonCode, UpdateNode
from slurm_hooks.reconcile.marked_requests import cancellation_of
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent, RequestPhase, VmPhase
from slurm_hooks.reconcile.reasons import set_aside_reason
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.sightings import is_believed
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.reconcile.views import (
    NodeView,
    deletion_of,
    deletion_of_member,
)
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import Job

SETTLED_STEPS = frozenset({Step.LEAVE, Step.AWAIT_CAPACITY, Step.AWAIT_BOOT})
"""Steps after which nothing of ours is on its way: a one-shot pass may end."""

FORCE = (NodeUpdate.POWER_DOWN_FORCE,)
LOSE = (NodeUpdate.DOWN, NodeUpdate.POWER_DOWN)
"""DOWN first: force alone leaves a dead node COMPLETING until SlurmdTimeout."""


_EXPECTATIONS = {
    Intent.REGISTERED: Expectation.REGISTERED,
    Intent.NOT_RESPONDING: Expectation.NOT_RESPONDING,
    Intent.REBOOTING: Expectation.REBOOTING,
}


def node_actions(scene: Scene) -> Iterator[Action]:
    """The actions that concern one node each. Requests for VMs are planned elsewhere."""
    for view in scene.world.views.values():
        yield from _actions_of(view, scene)


def is_surely_missing(view: NodeView, memory: Memory, now: datetime) -> bool:
    """Whether the node's VM has been missing for long enough to be believed."""
    return is_believed(view.node.name, memory.sightings.missing, now)


def _is_lost(view: NodeView, scene: Scene) -> bool:
    """Whether to believe that the VM is missing: at once when its end of life has come, or when
    Slurm has given the node up, too, and ended its jobs."""
    return (
        view.node.name in scene.world.ended
        or view.intent is Intent.NOT_RESPONDING
        or is_surely_missing(view, scene.memory, scene.now)
    )


def _actions_of(view: NodeView, scene: Scene) -> Iterator[Action]:
    memory = scene.memory
    match view.step:
        case Step.ABANDON_START:
            if view.request_phase is RequestPhase.WAITING:
                yield from _giving_up(view)
            yield _update(view, FORCE, Expectation.STARTING_WITHOUT_JOB, ReasonCode.JOB_ENDED)
        case Step.CANCEL_REQUEST:
            yield from _giving_up(view)
        case Step.FAIL_START:
            code, detail = (view.error.code, view.error.message) if view.error else ("UNKNOWN", "")
            if view.member is not None:
                # Now: its error must not fail the next start, and nobody waits for its VM.
                yield deletion_of_member(view.member)
            yield failed_start(view, code, detail)
        case Step.DELETE_VM:
            yield from _deletion(view)
        case Step.REPLACE_VM:
            if view.vm is not None:
                yield KeepConsole(view.node.name, view.vm.zone, view.vm.instance_id)
            yield from _deletion(view)
        case Step.POWER_UP:
            yield _update(view, (NodeUpdate.POWER_UP,), Expectation.OFF, None)
        case Step.DELETE_SURPLUS_VM:
            is_sure = is_believed(view.node.name, memory.sightings.surplus, scene.now)
            if is_sure and _is_past_grace(view, scene):
                yield from _deletion(view)
        case Step.LOSE_NODE:
            if _is_lost(view, scene):
                yield _update(view, LOSE, _EXPECTATIONS[view.intent], ReasonCode.VM_GONE)
        case Step.LOSE_JOBS:
            if _is_lost(view, scene):
                yield _with_its_reason(view, NodeUpdate.DOWN, Expectation.DRAINING)
        case Step.KEEP_OUT:
            yield _with_its_reason(view, NodeUpdate.DRAIN, Expectation.DOWN_BY_HAND)
        case Step.SET_ASIDE:
            if is_surely_missing(view, memory, scene.now):
                yield from _set_aside(view)
        case Step.RECYCLE:
            if view.vm is not None:
                yield KeepConsole(view.node.name, view.vm.zone, view.vm.instance_id)
            yield _update(
                view,
                (NodeUpdate.POWER_DOWN,),
                Expectation.NOT_RESPONDING,
                ReasonCode.NOT_RESPONDING,
            )
        case Step.FREE_TRAPPED:
            yield _update(view, (NodeUpdate.POWER_DOWN,), Expectation.TRAPPED, None)
        case Step.RECOVER:
            yield _update(
                view,
                (NodeUpdate.POWER_DOWN,),
                Expectation.RESUME_FAILED,
                ReasonCode.RESUME_TIMEOUT,
            )
        case _:
            return


def failed_start(view: NodeView, code: str, detail: str) -> UpdateNode:
    """Power a starting node down by force, with the reason why no VM comes."""
    told_job = view.owner.job_id if view.owner is not None else None
    name, starting = view.node.name, Expectation.STARTING
    if view.leaves:
        return UpdateNode(name, FORCE, starting, ReasonCode.LEAVES_CLUSTER, told_job=told_job)
    return UpdateNode(
        name,
        FORCE,
        starting,
        ReasonCode.REQUEST_FAILED,
        code=code,
        detail=detail,
        told_job=told_job,
        since_utc=wanted_since(view, view.owner),
    )


def wanted_since(view: NodeView, job: Job | None) -> datetime | None:
    """Since when Compute Engine has the request for a node's VM; without one, since when Slurm
    has given the node to the job. None where neither is known."""
    if view.request is not None:
        return view.request.request.creation_time_utc
    return job.start_time_utc if job is not None else None


def _giving_up(view: NodeView) -> Iterator[Action]:
    """Give up what still waits for its VM: the request, or the member of a pool without any."""
    if view.request is not None:
        yield cancellation_of(view.request)
    elif view.member is not None:
        yield deletion_of_member(view.member)


def _is_past_grace(view: NodeView, scene: Scene) -> bool:
    """Whether a VM is old enough to be removed. A member without one holds a name and nothing
    else."""
    return view.vm is None or scene.is_past_grace(view.vm.creation_time_utc)


def _deletion(view: NodeView) -> Iterator[Action]:
    if view.vm_phase is VmPhase.LEAVING:
        return
    if view.vm is not None:
        yield deletion_of(view.vm)
    elif view.member is not None:
        yield deletion_of_member(view.member)


def _with_its_reason(view: NodeView, update: NodeUpdate, expectation: Expectation) -> UpdateNode:
    """Slurm sets no node DOWN or DRAIN without a reason: it gets its own again. No power down
    follows, which would undrain it."""
    kept = view.node.reason or "drained"
    return UpdateNode(view.node.name, (update,), expectation, None, kept_reason=kept)


def _set_aside(view: NodeView) -> Iterator[Action]:
    """Power down undrains: the new reason keeps the person's until the node is drained again."""
    if view.vm is not None:
        yield KeepConsole(view.node.name, view.vm.zone, view.vm.instance_id)
    kept = set_aside_reason(view.node.reason)
    yield UpdateNode(view.node.name, FORCE, Expectation.WITHDRAWN, None, kept_reason=kept)


def _update(
    view: NodeView,
    updates: tuple[NodeUpdate, ...],
    expectation: Expectation,
    reason: ReasonCode | None,
) -> UpdateNode:
    status = view.vm.status.value if view.vm is not None else ""
    return UpdateNode(view.node.name, updates, expectation, reason, code=status)


def is_powering_up(view: NodeView) -> bool:
    """Whether Slurm has asked for the node and waits for it to register."""
    return view.intent in (Intent.STARTING, Intent.ABANDONED)
