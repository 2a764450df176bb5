"""Reasons of ours that are over, and persons' reasons that must not be.

Slurm clears a node's reason when it allocates the node, so reasons that are over are on nodes that
came up without a job: static ones, and those that a person powered up.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.reconcile.actions import ClearReason, Expectation, UpdateNode
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.reasons import reason_before
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.slurm.client import NodeUpdate


def plan_reasons(scene: Scene) -> Iterator[ClearReason | UpdateNode]:
    """Clear what no longer holds, and drain again what was powered down while out of service."""
    for view in scene.world.views.values():
        if not view.node.reason:
            continue
        if still_holds(Expectation.SET_ASIDE, view.node):
            yield UpdateNode(
                view.node.name,
                (NodeUpdate.DRAIN,),
                Expectation.SET_ASIDE,
                None,
                kept_reason=reason_before(view.node.reason),
            )
        if (
            view.intent is Intent.REGISTERED
            and view.vm_phase is VmPhase.RUNNING
            and still_holds(Expectation.UP_WITH_OUR_REASON, view.node)
        ):
            yield ClearReason(view.node.name)
