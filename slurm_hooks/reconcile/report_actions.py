"""What a pass knows of the report of a faulty node that is open, and what it may do for it."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_hooks.compute.model import Operation
from slurm_hooks.history.event import Event
from slurm_hooks.history.report import FaultReport


@dataclass(frozen=True, slots=True)
class OpenReport:
    """The one report that is open. `operation` is that of the host's report, read just now; None
    before there is one, and where it could not be read."""

    report: FaultReport
    operation: Operation | None = None


@dataclass(frozen=True, slots=True)
class ReportHost:
    """Report the host of a VM to Compute Engine, and write down what came of the call."""

    report: FaultReport

    @property
    def subject(self) -> str:
        return f"report host of {self.report.node} {self.report.instance_id}"


@dataclass(frozen=True, slots=True)
class KeepReport:
    """Write down how far a report is, and the event that tells of it."""

    report: FaultReport
    event: Event

    @property
    def subject(self) -> str:
        return f"keep report {self.report.number} as {self.report.state}"
