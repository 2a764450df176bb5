"""Slurm's nodes of a cluster that is deleted: the next step of each until it is off. Pure.

Drained, so that no job is given a node for which nobody asks for a VM any more. An apply gives
them back. What a person has drained keeps the person's reason.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from slurm_hooks.apply.impact import ours_of
from slurm_hooks.reconcile.reasons import PREFIX
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag

DELETED_REASON = f"{PREFIX} cluster deleted"


class Retirement(enum.StrEnum):
    """What a node of a deleted cluster needs next."""

    NOTHING = "off and out of service"
    WAIT = "on their way off"
    DRAIN = "to be drained"
    POWER_DOWN = "to be powered down"
    FORCE = "to be powered down over their jobs"
    BUSY = "with jobs"


UPDATES = {
    Retirement.DRAIN: (NodeUpdate.DRAIN,),
    Retirement.POWER_DOWN: (NodeUpdate.POWER_DOWN,),
    Retirement.FORCE: (NodeUpdate.DOWN, NodeUpdate.POWER_DOWN),
}
"""A power down by force would leave a node COMPLETING until SlurmdTimeout once its VM is gone."""


def retirement_of(node: Node, *, has_job: bool, force: bool) -> Retirement:
    """The next step of a node; `force` lets it take the node from a job."""
    state = node.state
    if state.unknown:
        return Retirement.WAIT
    if state.has(NodeFlag.COMPLETING):
        return Retirement.FORCE if force else Retirement.BUSY
    if state.has(NodeFlag.POWER_DOWN):
        return Retirement.WAIT
    if state.has(NodeFlag.POWERING_DOWN):
        # only now: the power down has lifted a drain, and the node may be given to a job
        return Retirement.WAIT if state.has(NodeFlag.DRAIN) else Retirement.DRAIN
    if state.has(NodeFlag.POWERING_UP, NodeFlag.POWER_UP):
        return Retirement.FORCE if force or not has_job else Retirement.BUSY
    if state.has(NodeFlag.POWERED_DOWN):
        return _of_one_that_is_off(node, has_job=has_job, force=force)
    if has_job and not force:
        return Retirement.BUSY
    is_free = state.base in (BaseState.IDLE, BaseState.DOWN) and not has_job
    return Retirement.POWER_DOWN if is_free else Retirement.FORCE


def _of_one_that_is_off(node: Node, *, has_job: bool, force: bool) -> Retirement:
    is_drained = node.state.has(NodeFlag.DRAIN)
    if has_job and not force:
        return Retirement.BUSY
    if has_job and is_drained:
        # it came before the drain, which ends only what a node has at that moment
        return Retirement.FORCE
    return Retirement.NOTHING if is_drained else Retirement.DRAIN


def to_give_back(nodes: Iterable[Node], cluster_id: str) -> tuple[str, ...]:
    """The nodes of a cluster that only its deletion keeps out of service, and that are off."""
    drained = [
        node.name
        for node in nodes
        if node.reason == DELETED_REASON
        and node.state.has(NodeFlag.DRAIN)
        and node.state.has(NodeFlag.POWERED_DOWN)
    ]
    return tuple(name for name in drained if name in ours_of(drained, cluster_id))
