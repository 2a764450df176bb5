"""From where on Xids count: what is dealt with stays behind.

Three things deal with an old Xid: a new boot, since the log holds this one alone; the mark that a
person sets after a repair; and, for a job, that it came before the job began. So no old Xid fails
every Prolog until the next boot, and none is hidden by the end of the job that met it. Sequence
numbers of the same boot are compared where there are any, times otherwise. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from slurm_hooks.health.cleared import Cleared
from slurm_hooks.health.model import Context
from slurm_hooks.health.xids.kernel_log import Since

SEQUENCE_COUNTER = "kernel_log.sequence"
"""The counter by which a Prolog leaves to its Epilog how far the kernel log had come."""
BOOT_COUNTER = "kernel_log.boot"
"""The counter for the boot of that, its 8 hexadecimal digits as a number."""


class ThisBoot(NamedTuple):
    """The boot that the log is of: its first 8 hexadecimal digits and when it began (aware), ""
    and None where they could not be read."""

    boot: str
    time: datetime | None


class Window(NamedTuple):
    """Which records count. `is_of_job` says that they all came while the job at hand ran."""

    since: Since
    is_of_job: bool


def window_of(
    context: Context,
    this_boot: ThisBoot,
    cleared: Cleared | None,
    baseline: Mapping[str, float],
    baseline_time: datetime | None,
) -> Window:
    """The window of a run. In an Epilog whose Prolog left nothing it is that of a Prolog."""
    since = Since()
    if cleared is not None:
        since = _after(this_boot, cleared.boot, cleared.sequence, cleared.time)
    if context is not Context.EPILOG or baseline_time is None:
        return Window(since, is_of_job=False)
    sequence = baseline.get(SEQUENCE_COUNTER)
    boot = baseline.get(BOOT_COUNTER)
    job_start = _after(
        this_boot,
        f"{int(boot):08x}" if boot is not None else "",
        int(sequence) if sequence is not None else None,
        baseline_time,
    )
    return Window(_later(since, job_start), is_of_job=True)


def _after(this_boot: ThisBoot, boot: str, sequence: int | None, time: datetime) -> Since:
    if boot and this_boot.boot and boot != this_boot.boot:
        return Since()
    if boot and boot == this_boot.boot and sequence is not None:
        return Since(sequence=sequence)
    if this_boot.time is None:
        return Since()
    seconds = max(0.0, (time - this_boot.time).total_seconds())
    return Since(microseconds=int(seconds * 1_000_000))


def _later(one: Since, other: Since) -> Since:
    return Since(
        sequence=_greatest(one.sequence, other.sequence),
        microseconds=_greatest(one.microseconds, other.microseconds),
    )


def _greatest(one: int | None, other: int | None) -> int | None:
    return max((number for number in (one, other) if number is not None), default=None)
