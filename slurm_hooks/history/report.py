"""The report of a faulty node as one value: who ordered what, and how far it is. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime


class FaultAction(enum.StrEnum):
    """What a person has ordered for a faulty node."""

    DELETE = "DELETE"
    """Its VM is deleted; a static node gets another one, a dynamic one for a job that waits."""
    REPORT_HOST = "REPORT_HOST"
    """The VM's host is reported to Compute Engine first, and then the VM is deleted."""


class FaultBehavior(enum.StrEnum):
    """How the host misbehaves, in the service's words."""

    PERFORMANCE = "PERFORMANCE"
    SILENT_DATA_CORRUPTION = "SILENT_DATA_CORRUPTION"
    UNRECOVERABLE_GPU_ERROR = "UNRECOVERABLE_GPU_ERROR"
    BEHAVIOR_UNSPECIFIED = "BEHAVIOR_UNSPECIFIED"


class ReportState(enum.StrEnum):
    """How far a report is. The last two are final."""

    ORDERED = "ORDERED"
    """Nothing was done yet."""
    REPORTED = "REPORTED"
    """Compute Engine analyses the host while the VM runs on."""
    REPLACING = "REPLACING"
    """The node is taken down and its VM is deleted."""
    REPLACED = "REPLACED"
    """The VM is gone; what comes after it is Slurm's and min_node_count's affair."""
    FAILED = "FAILED"
    """The host could not be reported, or the VM could not be deleted."""

    @property
    def is_open(self) -> bool:
        """Whether something is still to be done."""
        return self not in (ReportState.REPLACED, ReportState.FAILED)


@dataclass(frozen=True, slots=True)
class FaultReport:
    """One report. `number` is 0 before it is ordered; times are aware and in UTC.

    It is about the VM with the `instance_id` in the `zone`. `operation` is the name of Compute
    Engine's operation, `report_error` why the host could not be reported, `detail` a text for
    people.
    """

    node: str
    pool: str
    zone: str
    instance_id: str
    action: FaultAction
    ordered_utc: datetime
    changed_utc: datetime
    ordered_by: str = ""
    behavior: FaultBehavior = FaultBehavior.BEHAVIOR_UNSPECIFIED
    description: str = ""
    state: ReportState = ReportState.ORDERED
    operation: str = ""
    report_error: str = ""
    detail: str = ""
    number: int = 0
