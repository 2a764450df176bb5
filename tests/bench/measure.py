"""Measuring: whole processes by wall time and peak memory, parts of this one by CPU time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ProcessCost:
    """What one run of a program costs, the median of many."""

    milliseconds: float
    peak_mib: float


def processes(
    commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], runs: int
) -> dict[str, ProcessCost]:
    """Run all the commands in turn, round after round, so that noise meets them alike."""
    samples: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            samples[name].append(_milliseconds(command, environment))
    return {
        name: ProcessCost(statistics.median(samples[name]), _peak_mib(command, environment))
        for name, command in commands.items()
    }


def _milliseconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    started = time.perf_counter()
    pid = os.posix_spawn(command[0], list(command), dict(environment))
    _, status = os.waitpid(pid, 0)
    elapsed = time.perf_counter() - started
    if status != 0:
        raise RuntimeError(f"{command[0]} ended with status {status}")
    return elapsed * 1000


_LAUNCHER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
print(os.wait4(pid, 0)[2].ru_maxrss)
"""


def _peak_mib(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Through a small launcher: a child's peak counts its parent's memory before the exec."""
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command]
    answer = subprocess.run(
        launcher, env=dict(environment), capture_output=True, check=True, timeout=60
    )
    return int(answer.stdout) / 1024


def cpu_seconds(work: Callable[[], object], runs: int) -> float:
    """The CPU time of the fastest of some runs."""
    return min(_cpu_once(work) for _ in range(runs))


def _cpu_once(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
