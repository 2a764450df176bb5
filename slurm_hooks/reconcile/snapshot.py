"""What one pass knows: Slurm, Compute Engine, the calls in the spool, and the passes before.

An unknown is a value: a failed or partial read is `Unavailable`, never an empty list, since an
empty list would be a licence to delete. Everything here is frozen; nothing here is needed for
correctness after a restart, except what Slurm and Compute Engine would tell again.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime

from slurm_hooks.compute.errors import ErrorKind
from slurm_hooks.compute.model import ComputeSnapshot, Operation, Template, WorkloadPolicy
from slurm_hooks.reconcile.actions import Action
from slurm_hooks.reconcile.failure_table import Cause, Occasion, Reaction, reaction_to
from slurm_hooks.reconcile.repairs import RepairLog
from slurm_hooks.reconcile.report_actions import OpenReport
from slurm_hooks.reconcile.sightings import Sightings
from slurm_hooks.slurm.model import JobStart, SlurmSnapshot


class System(enum.StrEnum):
    """The two systems that a pass compares, and our own history of repairs."""

    SLURM = "Slurm"
    COMPUTE = "Compute Engine"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A system that could not be read, and why."""

    system: System
    why: str


@dataclass(frozen=True, slots=True)
class JobShare:
    """The nodes of one job that a ResumeProgram call is about."""

    job_id: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResumeCall:
    """One ResumeProgram call as the spool kept it. `jobs` is empty when no file came with it."""

    call_id: str
    time_utc: datetime
    nodes: tuple[str, ...]
    jobs: tuple[JobShare, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call or an operation failed, and until when that answer stands."""

    kind: ErrorKind
    code: str
    message: str
    until_utc: datetime
    occasion: Occasion = Occasion.INSERT_REQUEST
    pool_id: str = ""
    told_as: str = ""

    @property
    def reaction(self) -> Reaction:
        """The fixed answer to it."""
        return reaction_to(self.occasion, self.kind)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What Slurm refused to do and why, how often in a row, and until when that is taken as the
    answer."""

    action: Action
    why: str
    tries: int
    until_utc: datetime


@dataclass(frozen=True, slots=True)
class Memory:
    """What the passes before this one saw and started. Lost at a restart without harm.

    `sightings` is what was seen that is acted on only when it is seen for some time.
    `in_flight` maps the subject of an action to the operation that carries it out, `attempts`
    counts the finished operations of a subject, `failures` keeps their errors for a while.
    `causes` says what each operation in flight is about, `started_utc` since when it is on its
    way and `polled_utc` when it was read last, `counted_failures` which of the failures
    that are still seen stand in a pool's record already. `refusals` are those of Slurm.
    `warned` keeps the warnings of ends of life that were sent, with these ends, and `renewals`
    how many idle nodes were renewed for each start of a job.
    `in_vain` are the actions that were tried and are still wanted, the latest last. `suspended`
    are the nodes that were seen POWERING_DOWN and are off since.
    """

    sightings: Sightings = field(default_factory=Sightings)
    in_flight: dict[str, Operation] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    causes: dict[str, Cause] = field(default_factory=dict)
    started_utc: dict[str, datetime] = field(default_factory=dict)
    polled_utc: dict[str, datetime] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    counted_failures: dict[str, frozenset[str]] = field(default_factory=dict)
    warned: dict[str, datetime] = field(default_factory=dict)
    renewals: dict[JobStart, int] = field(default_factory=dict)
    in_vain: tuple[str, ...] = ()
    suspended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The input of a decision. Slurm is read before Compute Engine.

    `templates` and `workload_policies` are those of ours, empty in passes that do not read them.
    """

    slurm: SlurmSnapshot | Unavailable
    compute: ComputeSnapshot | Unavailable
    resume_calls: tuple[ResumeCall, ...] = ()
    memory: Memory = field(default_factory=Memory)
    templates: tuple[Template, ...] = ()
    workload_policies: tuple[WorkloadPolicy, ...] = ()
    repairs: RepairLog | Unavailable = field(default_factory=RepairLog)
    report: OpenReport | Unavailable | None = None
