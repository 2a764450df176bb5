"""The English of a status: times, errors and waits as people read them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from slurm_hooks.boot.console import BootStep
from slurm_hooks.compute.model import ErrorDetail
from slurm_hooks.slurm.model import Job, Node


def stamp(time_utc: datetime) -> str:
    """A time as RFC 3339 has it, to the second."""
    return time_utc.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def since(time_utc: datetime | None) -> str:
    """` since T`; empty for a time that is not known."""
    return f" since {stamp(time_utc)}" if time_utc is not None else ""


def error_text(error: ErrorDetail | None) -> str:
    """` (CODE: message)`; empty where there is none."""
    if error is None:
        return ""
    message = " ".join(error.message.split())
    return f" ({error.code}: {message})" if message else f" ({error.code})"


def jobs_text(jobs: tuple[Job, ...]) -> str:
    """`job 7` or `jobs 7, 8`; empty for none."""
    ids = ", ".join(str(job.job_id) for job in jobs)
    return f"job{'s' if len(jobs) > 1 else ''} {ids}" if jobs else ""


def reason_text(node: Node) -> str:
    """` by USER since T: REASON`, as far as Slurm tells."""
    by = f" by {node.reason_user}" if node.reason_user else ""
    return f"{by}{since(node.reason_time_utc)}{f': {node.reason}' if node.reason else ''}"


def boot_text(step: BootStep | None) -> str:
    """`: STEP STATE detail`; empty where the console tells nothing."""
    return f": {step}" if step is not None else ""
