"""Nodes that leave the cluster: Slurm still has them, the cluster file names them no more.

None is started any more (`node_table`). One that is off is drained, so that Slurm gives it to no
job; one with jobs is drained and keeps them to their end; a free one is powered down. After that
slurm.conf may be written without it. The removal is a person's order and later than any drain, so
it holds for a node that a person has drained, too; the reason that the person gave stays.

A node that the file names again serves again, where only this has kept it from jobs.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.reconcile.actions import Expectation, ReasonCode, UpdateNode
from slurm_hooks.reconcile.comments import gives
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import VmPhase
from slurm_hooks.reconcile.reasons import is_ours, reason_before
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.views import NodeView
from slurm_hooks.slurm.client import NodeUpdate

_ONLY_OF_ITS_VM = frozenset(
    {Step.LEAVE, Step.DELETE_VM, Step.DELETE_SURPLUS_VM, Step.CANCEL_REQUEST}
)
"""Steps that ask nothing of Slurm."""
_NOT_ON_THE_WAY = frozenset({VmPhase.RUNNING, VmPhase.NONE, VmPhase.BROKEN})
_POWER_DOWN, _DRAIN = NodeUpdate.POWER_DOWN, NodeUpdate.DRAIN


def plan_removals(scene: Scene) -> Iterator[UpdateNode]:
    """The nodes to drain and power down since they leave, and those to give back."""
    for name, view in scene.world.views.items():
        if view.leaves:
            yield from _departure(view, has_job=name in scene.world.holders)
        elif view.node.reason and gives(view.node.reason, ReasonCode.LEAVES_CLUSTER):
            yield from returned(view)


def returned(view: NodeView) -> Iterator[UpdateNode]:
    """Lift a drain of ours. IDLE for a node that is off: RESUME would leave it NOT_RESPONDING."""
    name = view.node.name
    if view.step is not Step.LEAVE:
        return
    if still_holds(Expectation.DRAINED_AND_OFF, view.node):
        yield UpdateNode(name, (NodeUpdate.IDLE,), Expectation.DRAINED_AND_OFF, None)
    elif still_holds(Expectation.DRAINED_TO_GO, view.node):
        yield UpdateNode(name, (NodeUpdate.RESUME,), Expectation.DRAINED_TO_GO, None)


def _departure(view: NodeView, *, has_job: bool) -> Iterator[UpdateNode]:
    if view.vm_phase is VmPhase.UNKNOWN or reason_before(view.node.reason):
        return  # a VM state that we do not know is no licence to act
    if view.step in _ONLY_OF_ITS_VM and still_holds(Expectation.OFF_TO_LEAVE, view.node):
        # Also while it goes off: that has lifted its drain, and a job could be given to it.
        yield _update(view, _DRAIN, Expectation.OFF_TO_LEAVE)
    elif view.step is not Step.LEAVE or view.vm_phase not in _NOT_ON_THE_WAY:
        return
    elif not has_job and still_holds(Expectation.FREE_TO_LEAVE, view.node):
        yield _update(view, _POWER_DOWN, Expectation.FREE_TO_LEAVE)
    elif still_holds(Expectation.SERVING, view.node):
        yield _update(view, _DRAIN, Expectation.SERVING)


def _update(view: NodeView, update: NodeUpdate, expectation: Expectation) -> UpdateNode:
    """With our reason, unless there is another one, which the node keeps."""
    kept = view.node.reason
    reason = ReasonCode.LEAVES_CLUSTER if not kept or is_ours(kept) else None
    return UpdateNode(
        view.node.name, (update,), expectation, reason, kept_reason="" if reason else kept
    )
