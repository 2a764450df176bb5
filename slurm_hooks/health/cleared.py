"""The mark that a person sets after a repair by hand: what was logged before it is dealt with.

It holds the time, who set it, and how far the kernel log had come in which boot: the log's own
clock drifts from the time of day (81 s were seen), its sequence numbers do not.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import boot_of

_FILE = "cleared"
_LONGEST_NAME = 80


class Cleared(NamedTuple):
    """When (in UTC) and by whom. `boot` and `sequence` are empty and None where they could not
    be read."""

    time: datetime
    by: str
    boot: str = ""
    sequence: int | None = None


def write_cleared(host: Host, time: datetime, by: str) -> bool:
    """Set the mark, in place of an earlier one; whether that worked. `time` must be aware."""
    from slurm_hooks.health.xids.kernel_log import Since, read_kernel_log

    sequence = read_kernel_log(host.kernel_log, Since()).last_sequence
    name = " ".join(by.split())[:_LONGEST_NAME]
    lines = (
        f"time={time.astimezone(UTC).isoformat()}",
        f"by={name}",
        f"boot={boot_of(host)}",
        f"sequence={'' if sequence is None else sequence}",
    )
    return files.write_text(_path(host), "\n".join(lines) + "\n")


def read_cleared(host: Host) -> Cleared | None:
    """The mark. None without one, or where it is not readable: then nothing is dealt with."""
    lines = files.read_text(_path(host)).splitlines()
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    try:
        time = datetime.fromisoformat(values.get("time", ""))
    except ValueError:
        return None
    if time.tzinfo is None:
        return None
    sequence = values.get("sequence", "")
    return Cleared(
        time=time.astimezone(UTC),
        by=values.get("by", ""),
        boot=values.get("boot", ""),
        sequence=int(sequence) if sequence.isascii() and sequence.isdigit() else None,
    )


def cleared_time(host: Host) -> datetime | None:
    """When the mark was set last, in UTC; None without one."""
    mark = read_cleared(host)
    return mark.time if mark is not None else None


def _path(host: Host) -> str:
    return f"{host.state_directory}/{_FILE}"
