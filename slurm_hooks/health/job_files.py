"""What the Prolog of a job leaves for its Epilog: when it ran, and how counters stood.

One file a job in the node's state directory, so the files also tell which jobs the node has.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import boot_of

_BOOT = "boot "
_SECONDS_WITHOUT_STEP = 1800.0
"""For as long as a job counts whether it has a step or not: it may wait for the Prologs of its
other nodes, or for its user to run something."""


class Baseline(NamedTuple):
    """Counters at the beginning of a job, by the keys that checks chose; `time` in UTC."""

    time: datetime | None = None
    counters: Mapping[str, float] = MappingProxyType({})


def keep_baseline(host: Host, job_id: int, time: datetime, counters: dict[str, float]) -> None:
    """Write down how counters stand now that the job begins."""
    lines = [
        f"{_BOOT}{boot_of(host)}",
        f"time={time.timestamp()}",
        *(f"{key}={value}" for key, value in counters.items()),
    ]
    files.write_text(_path(host, job_id), "\n".join(lines) + "\n")


def read_baseline(host: Host, job_id: int) -> Baseline:
    """What the Prolog wrote; empty where it wrote nothing readable."""
    values: dict[str, float] = {}
    for line in files.read_text(_path(host, job_id)).splitlines():
        if line.startswith(_BOOT):
            continue
        key, _, value = line.rpartition("=")
        try:
            values[key] = float(value)
        except ValueError:
            continue
    seconds = values.pop("time", None)
    time = datetime.fromtimestamp(seconds, UTC) if seconds is not None else None
    return Baseline(time, values)


def forget_job(host: Host, job_id: int) -> None:
    """Remove the file of a job whose Epilog is over."""
    files.remove(_path(host, job_id))


def jobs_on_node(host: Host) -> tuple[int, ...]:
    """The jobs whose Prolog has run in this boot and whose Epilog has not.

    A file outlives its job where an Epilog never ran: so one that is not young counts only while
    the job has a step here. Where nobody can tell that, it counts.
    """
    try:
        names = os.listdir(_directory(host))
    except OSError:
        return ()
    job_ids = sorted(int(name) for name in names if name.isascii() and name.isdigit())
    first_line = f"{_BOOT}{boot_of(host)}"
    of_boot = [
        job_id
        for job_id in job_ids
        if files.read_text(_path(host, job_id)).partition("\n")[0] == first_line
    ]
    old = [job_id for job_id in of_boot if not _is_young(_path(host, job_id))]
    gone = _without_step(host, old) if old else set()
    return tuple(job_id for job_id in of_boot if job_id not in gone)


def _is_young(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime < _SECONDS_WITHOUT_STEP
    except OSError:
        return True


def _without_step(host: Host, job_ids: Iterable[int]) -> set[int]:
    """Those of which no slurmstepd listens: each does so at `SPOOL/NODE_JOB.STEP`."""
    import re  # only where an Epilog is late

    text = files.read_all(host.path("proc", "net", "unix"))
    if not text:
        return set()
    with_step = {int(job_id) for job_id in re.findall(r"(?m)_([0-9]{1,10})\.[0-9][0-9.]*$", text)}
    return set(job_ids) - with_step


def _directory(host: Host) -> str:
    return os.path.join(host.state_directory, "jobs")


def _path(host: Host, job_id: int) -> str:
    return os.path.join(_directory(host), str(job_id))
