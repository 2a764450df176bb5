"""A GPU that breaks before a job, in a box: how soon the node is drained, replaced, the job runs.

The job may run on another node, so its time has no boot of a VM in it. What the box waits for by
itself: a pass comes every second, Slurm's scheduler every two seconds, a job that is queued again
waits for five, and Slurm takes a node for powered down after some seconds more.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.table import Table

from tests.end_to_end.clinic import NO_STOP, ONLY_WITH_JOBS, Clinic, open_clinic

NODES = 2
LOOK_SECONDS = 0.05
LONGEST_SECONDS = 120.0


def measure() -> Table:
    """One run, seconds from the job's first allocation to each step."""
    with (
        tempfile.TemporaryDirectory() as directory,
        open_clinic(
            Path(directory), nodes=NODES, check_seconds=ONLY_WITH_JOBS, policy=NO_STOP
        ) as clinic,
    ):
        steps = _steps(clinic)
    table = Table("step", "seconds", title="a GPU that broke before a job, one run in a box")
    for name, seconds in steps.items():
        table.add_row(name, f"{seconds:.1f}")
    return table


def _steps(clinic: Clinic) -> dict[str, float]:
    node = "flexvm-a3u-0"
    inserts = len(clinic.inserts())
    clinic.break_gpu(node, "row-remap-failure")
    job = clinic.submit_open_ended()
    awaited: dict[str, Callable[[], bool]] = {
        "node drained, with the reason": lambda: clinic.health_reason(node) is not None,
        "VM's deletion asked for": lambda: "POWERING_DOWN" in clinic.node_flags(node),
        "job runs again": lambda: bool(clinic.places(job, 1)),
        "replacement asked for": lambda: len(clinic.inserts()) > inserts,
    }
    while clinic.job_state(job) == "PENDING":
        time.sleep(LOOK_SECONDS)
    seen: dict[str, float] = {}
    began = time.monotonic()
    while len(seen) < len(awaited) and time.monotonic() - began < LONGEST_SECONDS:
        for name, has_come in awaited.items():
            if name not in seen and has_come():
                seen[name] = time.monotonic() - began
        time.sleep(LOOK_SECONDS)
    return seen
