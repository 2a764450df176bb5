"""Reasons of ours that are over: on nodes that are up and serve again.

Slurm clears a node's reason when it allocates the node, so this concerns nodes that came up
without a job: static ones, and those that a person powered up.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.reconcile.actions import ClearReason, Expectation
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.scene import Scene


def plan_reasons(scene: Scene) -> Iterator[ClearReason]:
    """Clear what no longer holds."""
    for view in scene.world.views.values():
        if (
            view.node.reason
            and view.intent is Intent.REGISTERED
            and view.vm_phase is VmPhase.RUNNING
            and still_holds(Expectation.UP_WITH_OUR_REASON, view.node)
        ):
            yield ClearReason(view.node.name)
