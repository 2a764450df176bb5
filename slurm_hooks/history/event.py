"""What happened to a node or a pool, as one value. Pure.

The kinds that the managed service has bear its names; its documentation leaves their meanings
open, so those given here are ours.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime


class EventKind(enum.StrEnum):
    """What an event tells."""

    VM_PROLOG_ERROR = "VM_PROLOG_ERROR"
    """A health run before a job found the node ill."""
    VM_EPILOG_ERROR = "VM_EPILOG_ERROR"
    """A health run after a job found the node ill."""
    VM_CONTINUOUS_GPU_ERROR = "VM_CONTINUOUS_GPU_ERROR"
    """A health run in the background found the node ill."""
    VM_SLURM_DRAIN = "VM_SLURM_DRAIN"
    """The node takes no more jobs: a health run condemned it."""
    VM_SLURM_POWER_DOWN = "VM_SLURM_POWER_DOWN"
    """slurmctld was asked to power the node down, so that its VM is replaced."""
    VM_DELETION = "VM_DELETION"
    """The VM is given up: it is deleted when the node powers down."""
    VM_REBOOT = "VM_REBOOT"
    """slurmctld was asked to reboot the node."""
    VM_REPORT_AND_REPLACEMENT = "VM_REPORT_AND_REPLACEMENT"
    """A person has reported the node as faulty; the message says how far that is."""
    VM_RETURNED = "VM_RETURNED"
    """The drain is over, the node takes jobs again."""
    REPAIR_SKIPPED = "REPAIR_SKIPPED"
    """The node stays drained: a limit forbids its repair, or only a person can repair it."""
    REPAIRS_STOPPED = "REPAIRS_STOPPED"
    """Too many nodes of the pool were condemned at once: none is repaired any more."""
    REPAIRS_RESUMED = "REPAIRS_RESUMED"
    """A person let the pool's nodes be repaired again."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    `time_utc` is aware and in UTC. `key` names the sighting: an event whose key is in the history
    already is not recorded again. `check` and `verdict` are those of the health run, empty for
    events that no health run caused; `node` is empty for events of a pool.
    """

    time_utc: datetime
    kind: EventKind
    pool: str
    key: str
    node: str = ""
    message: str = ""
    instance_id: str = ""
    check: str = ""
    verdict: str = ""
    job_id: int | None = None
