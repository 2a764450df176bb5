"""What a pass may do for nodes that a health run has condemned."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from slurm_hooks.history.event import Event


class RepairKind(enum.StrEnum):
    """What is asked of slurmctld for one node."""

    RETURN = "lift the drain"
    RETURN_OFF = "lift the drain of a node that is off"
    REBOOT = "reboot, after which a health run decides"
    REPLACE = "power down, so that its VM is deleted"


@dataclass(frozen=True, slots=True)
class RepairNode:
    """Repair a node, if its reason is still this very one and its state still calls for it.

    `events` are in the history before slurmctld is asked: a repair that was cut short counts as
    one, so that none is repeated without end.
    """

    node: str
    kind: RepairKind
    expected_reason: str
    events: tuple[Event, ...]

    @property
    def subject(self) -> str:
        return f"repair node {self.node}"


@dataclass(frozen=True, slots=True)
class RecordEvents:
    """Keep what was seen in the history; what is there already is not recorded twice."""

    events: tuple[Event, ...]

    @property
    def subject(self) -> str:
        return "record events"
