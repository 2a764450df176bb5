"""A hook program beside a Python that does nothing: time and memory from exec to exit."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.table import Table

from slurm_hooks.reconcile.bell import Bell
from tests.bench.measure import processes

RUNS = 40
BARE = "python3 -c pass"


def measure() -> Table:
    """All three programs with a daemon that answers, in an environment as Slurm's."""
    scripts = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        spool = directory / "spool"
        spool.mkdir(mode=0o700)
        (directory / "slurm-hooks.conf").write_text(f"SpoolDir={spool}\nLogFile={directory}/log\n")
        commands: dict[str, list[str]] = {BARE: [sys.executable, "-c", "pass"]}
        for program in ("resume", "suspend", "resume-fail"):
            path = str(scripts / f"slurm-hooks-{program}")
            commands[f"slurm-hooks-{program}"] = [path, "flexvm-a3u-[0-999]"]
        bell = Bell(spool)
        try:
            costs = processes(commands, {"SLURM_CONF": f"{directory}/slurm.conf"}, RUNS)
        finally:
            bell.close()
    table = Table("program", "ms", "beside bare", "peak MiB", title="hook programs, median")
    for title, cost in costs.items():
        ratio = cost.milliseconds / costs[BARE].milliseconds
        table.add_row(title, f"{cost.milliseconds:.1f}", f"{ratio:.2f}x", f"{cost.peak_mib:.1f}")
    return table
