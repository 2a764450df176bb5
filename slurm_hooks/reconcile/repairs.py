"""Condemned nodes, and what was done for them before: the words of repairs. Pure.

A node tells why it was drained in its reason (`health/reason.py`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from slurm_hooks.health.reason import is_condemned
from slurm_hooks.health.slurm_reasons import is_of_slurm
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.repair_actions import RepairKind
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag

_POWER = (
    NodeFlag.POWER_DOWN,
    NodeFlag.POWER_DRAIN,
    NodeFlag.POWER_UP,
    NodeFlag.POWERING_DOWN,
    NodeFlag.POWERING_UP,
)
_REBOOT = (NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED)
_OFF_OR_REBOOTING = (
    *(NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP),
    *_REBOOT,
)


class Standing(enum.Enum):
    """How a node with a health run's reason stands in Slurm."""

    DRAINED = "drained and free"
    OFF = "drained and powered down"
    REBOOTING = "free, and a reboot is asked for or under way"
    SILENT = "drained, and DOWN since slurmd does not answer"
    BUSY = "at work, on its way, or in a state that is nothing of ours"


_STANDINGS = {
    RepairKind.RETURN: (Standing.DRAINED,),
    RepairKind.RETURN_OFF: (Standing.OFF,),
    RepairKind.REBOOT: (Standing.DRAINED,),
    RepairKind.REPLACE: (Standing.DRAINED, Standing.REBOOTING, Standing.SILENT),
}


def standing_of(node: Node) -> Standing:
    """How a node with a health run's reason stands."""
    state = node.state
    if state.unknown or state.has(*_POWER, NodeFlag.COMPLETING, NodeFlag.FAIL):
        return Standing.BUSY
    is_idle, is_drained = state.base is BaseState.IDLE, state.has(NodeFlag.DRAIN)
    is_silent = state.has(NodeFlag.NOT_RESPONDING)
    if state.has(NodeFlag.POWERED_DOWN):
        return Standing.OFF if is_idle and is_drained else Standing.BUSY
    if state.has(*_REBOOT):
        is_free = is_idle or state.base is BaseState.DOWN
        return Standing.REBOOTING if is_free else Standing.BUSY
    if is_drained and is_idle and not is_silent:
        return Standing.DRAINED
    if is_drained and is_silent and state.base is BaseState.DOWN:
        return Standing.SILENT
    return Standing.BUSY


def is_still_due(kind: RepairKind, expected_reason: str, node: Node) -> bool:
    """Whether a node that was read again just now is as it was when its repair was decided."""
    return node.reason == expected_reason and standing_of(node) in _STANDINGS[kind]


def is_drained_by_slurm(node: Node) -> bool:
    """Whether Slurm keeps the node from jobs for a reason of its own that tells of no GPU and that
    no health run has replaced."""
    return (
        node.state.has(NodeFlag.DRAIN)
        and not node.state.has(*_OFF_OR_REBOOTING)
        and is_of_slurm(node.reason)
        and not is_condemned(node.reason)
    )


@dataclass(frozen=True, slots=True)
class RepairLog:
    """The events that decisions need, by node and by pool; the oldest first.

    `stopped` are the events that stopped the repairs of pools and still hold, `resumed_utc` says
    when a person let a pool be repaired again.
    """

    keys: frozenset[str] = frozenset()
    by_node: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
    condemned: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
    stopped: Mapping[str, Event] = field(default_factory=dict)
    resumed_utc: Mapping[str, datetime] = field(default_factory=dict)

    def of_node(self, node: str, *kinds: EventKind) -> list[Event]:
        """The events of some kinds about a node."""
        return [event for event in self.by_node.get(node, ()) if event.kind in kinds]


def log_of(events: Iterable[Event]) -> RepairLog:
    """The log of these events, the oldest first."""
    keys: set[str] = set()
    by_node: dict[str, list[Event]] = {}
    condemned: dict[str, list[Event]] = {}
    stopped: dict[str, Event] = {}
    resumed_utc: dict[str, datetime] = {}
    for event in events:
        keys.add(event.key)
        if event.node:
            by_node.setdefault(event.node, []).append(event)
        if event.kind is EventKind.VM_SLURM_DRAIN:
            condemned.setdefault(event.pool, []).append(event)
        elif event.kind is EventKind.REPAIRS_STOPPED:
            stopped.setdefault(event.pool, event)
        elif event.kind is EventKind.REPAIRS_RESUMED:
            stopped.pop(event.pool, None)
            resumed_utc[event.pool] = event.time_utc
    return RepairLog(
        frozenset(keys),
        {node: tuple(found) for node, found in by_node.items()},
        {pool: tuple(found) for pool, found in condemned.items()},
        stopped,
        resumed_utc,
    )
