"""What Slurm says: nodes, jobs, partitions and reservations as plain values.

Node states are sets of flags. Versions order them differently and add new ones, so a state is
only ever asked for single flags, never compared as a whole. A word that we do not know is kept
in `NodeState.unknown`, and whoever decides must then leave the node alone.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime


class BaseState(enum.StrEnum):
    """The one base state of a node. MIXED is shown for partly allocated nodes."""

    IDLE = "IDLE"
    ALLOCATED = "ALLOCATED"
    MIXED = "MIXED"
    DOWN = "DOWN"
    FUTURE = "FUTURE"
    ERROR = "ERROR"
    UNKNOWN = "UNKNOWN"


class NodeFlag(enum.StrEnum):
    """Flags beside the base state, in Slurm's words."""

    BLOCKED = "BLOCKED"
    CLOUD = "CLOUD"
    COMPLETING = "COMPLETING"
    DRAIN = "DRAIN"
    DYNAMIC_FUTURE = "DYNAMIC_FUTURE"
    DYNAMIC_NORM = "DYNAMIC_NORM"
    EXTERNAL = "EXTERNAL"
    FAIL = "FAIL"
    INVALID_REG = "INVALID_REG"
    MAINTENANCE = "MAINTENANCE"
    NOT_RESPONDING = "NOT_RESPONDING"
    PLANNED = "PLANNED"
    POWER_DOWN = "POWER_DOWN"
    POWER_DRAIN = "POWER_DRAIN"
    POWER_UP = "POWER_UP"
    POWERED_DOWN = "POWERED_DOWN"
    POWERING_DOWN = "POWERING_DOWN"
    POWERING_UP = "POWERING_UP"
    REBOOT_ISSUED = "REBOOT_ISSUED"
    REBOOT_REQUESTED = "REBOOT_REQUESTED"
    RESERVED = "RESERVED"


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node's state: its base, the flags we know, and the words we do not know."""

    base: BaseState
    flags: frozenset[NodeFlag] = frozenset()
    unknown: frozenset[str] = frozenset()

    def has(self, *flags: NodeFlag) -> bool:
        """Whether any of the flags is set."""
        return not self.flags.isdisjoint(flags)


@dataclass(frozen=True, slots=True)
class Node:
    """A node as slurmctld sees it. `reason` is the text alone, `reason_user` who gave it.

    `resumes_after_reboot`: a reboot is under way after which it serves again, so that a DRAIN
    which `scontrol reboot asap` has set ends by itself.
    """

    name: str
    state: NodeState
    partitions: tuple[str, ...] = ()
    reason: str = ""
    reason_time_utc: datetime | None = None
    address: str = ""
    hostname: str = ""
    comment: str = ""
    extra: str = ""
    instance_id: str = ""
    boot_time_utc: datetime | None = None
    resumes_after_reboot: bool = False
    reason_user: str = ""


class JobState(enum.StrEnum):
    """Base states of a job. A state we do not know reads as UNKNOWN."""

    PENDING = "PENDING"
    CONFIGURING = "CONFIGURING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETING = "COMPLETING"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    PREEMPTED = "PREEMPTED"
    BOOT_FAIL = "BOOT_FAIL"
    DEADLINE = "DEADLINE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    UNKNOWN = "UNKNOWN"


ACTIVE_JOB_STATES = frozenset(
    {JobState.PENDING, JobState.CONFIGURING, JobState.RUNNING, JobState.SUSPENDED, JobState.UNKNOWN}
)
"""States in which a job may still need nodes. UNKNOWN counts: we never act on a guess."""


JobStart = tuple[int, int]
"""A job's id and how often it was queued again: one start of it."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the queue, one per array task and heterogeneous component.

    `node_count` is what the job has, or asks for at least while pending. `required_nodes` and
    `excluded_nodes` are those that its user names with -w and -x.
    `job_id` is the raw id, as SLURM_RESUME_FILE names it. `nodes` is the current allocation,
    empty while pending. `state` is CONFIGURING whenever Slurm shows that flag. `part` is what
    commands need after the id to mean this job alone, see `part_of`. `het_job_id` is the id of
    the heterogeneous job of which this is a component.
    """

    job_id: int
    state: JobState
    user: str = ""
    name: str = ""
    partition: str = ""
    nodes: tuple[str, ...] = ()
    reason: str = ""
    admin_comment: str = ""
    restarts: int = 0
    requeue: bool = False
    batch: bool = False
    priority: int = 0
    time_limit_seconds: int | None = None
    start_time_utc: datetime | None = None
    node_count: int = 0
    part: str = ""
    required_nodes: tuple[str, ...] = ()
    excluded_nodes: tuple[str, ...] = ()
    het_job_id: int | None = None

    @property
    def start(self) -> JobStart:
        """This start of the job."""
        return (self.job_id, self.restarts)

    @property
    def is_active(self) -> bool:
        """Whether the job may still need nodes."""
        return self.state in ACTIVE_JOB_STATES


def part_of(
    job_id: int,
    array_job_id: int | None,
    array_task_id: int | None,
    het_job_id: int | None,
    het_job_offset: int | None,
) -> str:
    """What commands need after a job's raw id to mean this job alone: `_TASK`, `+OFFSET`, nothing.

    One task of an array has the array's own id, the first component of a heterogeneous job that
    of the whole; an order to that id goes to all of them (22.05.8, measured).
    """
    if array_job_id == job_id and array_task_id is not None:
        return f"_{array_task_id}"
    return f"+{het_job_offset or 0}" if het_job_id == job_id else ""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition: its state word (UP, DOWN, DRAIN, INACTIVE) and its nodes."""

    name: str
    state: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation with its nodes, times and flag words."""

    name: str
    nodes: tuple[str, ...] = ()
    start_time_utc: datetime | None = None
    end_time_utc: datetime | None = None
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SlurmSnapshot:
    """Everything one read of slurmctld gave. `unreadable` names records that did not parse.

    `keeps_lone_reason`: see `versions`.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    partitions: dict[str, Partition] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    keeps_lone_reason: bool = False
