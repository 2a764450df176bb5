"""The English that people read in Slurm: admin comments of jobs and reasons of nodes.

Made here and compared nowhere else. Ours begin with `slurm-hooks:`; a comment or reason that
does not is a person's and is never overwritten.
"""

from __future__ import annotations

from datetime import UTC, datetime

from slurm_hooks.reconcile.actions import JobStatus, ReasonCode, UpdateNode, WaitKind, WarnJob
from slurm_hooks.reconcile.reasons import PREFIX

_FAILURE_PREFIX = f"{PREFIX} failed:"
_END_PREFIX = f"{PREFIX} end of life:"
_WAITING_PREFIX = f"{PREFIX} waiting for capacity"
_LONGEST_DETAIL = 300


def tells_failure(text: str) -> bool:
    """Whether a comment of ours tells of a failure, which stays until the job's next start."""
    return text.startswith(_FAILURE_PREFIX)


def tells_end_of_life(text: str) -> bool:
    """Whether a comment of ours warns of an end of life, which stays while the job runs."""
    return text.startswith(_END_PREFIX)


def tells_waiting(text: str) -> bool:
    """Whether a reason of ours tells that a node waits for capacity."""
    return text.startswith(_WAITING_PREFIX)


def gives(text: str, code: ReasonCode) -> bool:
    """Whether a node has its reason from us, for this."""
    return text.startswith(f"{PREFIX} {code.value}")


def capacity_reason(code: str, since_utc: datetime | None) -> str:
    """The reason of a node that waits for capacity. Since when is told to the minute: nodes that
    were asked for one by one get the same text, and so are changed by one command."""
    since = f" since {since_utc.astimezone(UTC):%Y-%m-%dT%H:%MZ}" if since_utc else ""
    return f"{_WAITING_PREFIX}{since}{f' ({code})' if code else ''}"


def pool_waits_text(
    node_count: int, machine_type: str, code: str, since_utc: datetime | None
) -> str:
    """What is said of the nodes of a pool that wait for no job."""
    since = f" since {_stamp(since_utc)}" if since_utc else ""
    return f"{node_count} x {machine_type} for no job{since}{f' ({code})' if code else ''}"


def end_of_life_comment(warning: WarnJob) -> str:
    """The admin comment of a running job that its node's end will cut."""
    end = f"{_END_PREFIX} the VM of {warning.node} ends at {_stamp(warning.end_time_utc)}"
    if warning.signal:
        return f"{end}, {warning.signal} was sent"
    return f"{end}, before the job's time limit"


def job_comment(status: JobStatus | None) -> str:
    """The admin comment of a job; empty when there is nothing to tell."""
    if status is None:
        return ""
    what = f"{status.node_count} x {status.machine_type or 'VM'} in {status.place}"
    since = f" since {_stamp(status.since_utc)}" if status.since_utc else ""
    wanted = _wanted(status.since_utc)
    match status.kind:
        case WaitKind.FAILED:
            return f"{_FAILURE_PREFIX} {what}{wanted}: {status.code}{_detail(status.detail)}"
        case WaitKind.CAPACITY:
            code = f" ({status.code})" if status.code else ""
            return f"{_WAITING_PREFIX} for {what}{since}{code}{_usual_wait(status)}"
        case WaitKind.REQUEST:
            return f"{PREFIX} asking for {what}{wanted}"
        case WaitKind.PLACE:
            code = f" ({status.code})" if status.code else ""
            return (
                f"{PREFIX} waiting for its turn to ask for {what}{wanted}:"
                f" too many resize requests are active in the region{code}"
            )
        case WaitKind.GROUP:
            return f"{PREFIX} creating the instance group for {what}{wanted}"
        case WaitKind.DELETION:
            return f"{PREFIX} waiting for earlier VMs of the same names to go: {what}{wanted}"
        case WaitKind.BOOT:
            return f"{PREFIX} VMs granted, booting: {what}{since}"


def node_reason(update: UpdateNode) -> str:
    """The reason of a node whose state we change; empty where it keeps the one it has.

    Slurm itself stamps each reason with the time at which it was given. A time of our own stands
    where it says more and is the same for all nodes of a job: nodes are changed by reason.
    """
    if update.reason is None:
        return update.kept_reason
    code = f" {update.code}" if update.code else ""
    wanted = _wanted(update.since_utc)
    return f"{PREFIX} {update.reason.value}{code}{wanted}{_detail(update.detail)}"


def _wanted(since_utc: datetime | None) -> str:
    return f", wanted since {_stamp(since_utc)}" if since_utc else ""


def _detail(text: str) -> str:
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(plain) > _LONGEST_DETAIL:
        plain = plain[: _LONGEST_DETAIL - 3] + "..."
    return f": {plain}" if plain else ""


def _usual_wait(status: JobStatus) -> str:
    if not status.usual_wait_requests:
        return ""
    seconds, count = status.usual_wait_seconds, status.usual_wait_requests
    if count == 1:
        return f"; the last request here waited {_duration(seconds)}"
    return f"; the last {count} requests here waited {_duration(seconds)} (median)"


def _duration(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def _stamp(time_utc: datetime) -> str:
    return time_utc.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
