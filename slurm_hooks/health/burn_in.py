"""What a repaired node must stand before it serves again: work under load, with no job there.

Checks of an idle node pass on one that fails under load. The burn-in takes longer than slurmd gives
a HealthCheckProgram, so it has a process of its own, and the health checks that follow read what
became of it. A command that cannot be run or judged lets the node back: that is our mistake and not
the device's.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.children import PATH, Ended, run_program
from slurm_hooks.health.detached import detach, start_ticks
from slurm_hooks.health.host import Host
from slurm_hooks.health.policy import HealthPolicy

CHECK = "burn_in"
"""How a reason names it."""

_FILE = "burn-in"
_SHOWN_CHARACTERS = 120


class Progress(enum.Enum):
    """How far a burn-in has come in this boot."""

    NOT_STARTED = "not started, or ended without a word"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"


class BurnIn(NamedTuple):
    """Where a burn-in stands; `detail` says what failed."""

    progress: Progress
    detail: str = ""


class Command(NamedTuple):
    """What is run, for `seconds` at most. `is_dcgm`: its answer is read and not its exit status."""

    arguments: tuple[str, ...]
    seconds: float
    is_dcgm: bool = False


def command_of(host: Host, policy: HealthPolicy, gpus_present: int | None) -> Command | None:
    """The burn-in of this node: the site's, else DCGM's where it is installed. None for none."""
    seconds = policy.deadlines.burn_in
    if policy.burn_in is not None:
        return Command(policy.burn_in, seconds) if policy.burn_in else None
    dcgmi = host.path("usr", "bin", "dcgmi")
    if not gpus_present or not os.access(dcgmi, os.X_OK):
        return None
    return Command((dcgmi, "diag", "-r", "2", "-j"), seconds, is_dcgm=True)


def read_burn_in(host: Host, boot: str) -> BurnIn:
    """Where the burn-in of this boot stands."""
    began, _, ended = files.read_text(_path(host)).partition("\n")
    word, _, detail = ended.strip().partition(" ")
    parts = began.split()
    if len(parts) != 3 or parts[0] != boot or not parts[1].isdigit():
        return BurnIn(Progress.NOT_STARTED)
    if word in (Progress.PASSED.value, Progress.FAILED.value):
        return BurnIn(Progress(word), detail)
    is_alive = start_ticks(int(parts[1])) == parts[2]
    return BurnIn(Progress.RUNNING if is_alive else Progress.NOT_STARTED)


def start_burn_in(
    host: Host,
    boot: str,
    command: Command,
    tell: Callable[[str], object],
    and_then: Callable[[], object],
) -> None:
    """Start it and return at once. When it has ended its process calls `and_then`; `tell` gets a
    line for the log where it could not be judged."""

    def work() -> None:
        began = f"{boot} {os.getpid()} {start_ticks(os.getpid())}"
        files.write_text(_path(host), f"{began}\n")
        outcome = _run(command, tell)
        files.write_text(_path(host), f"{began}\n{outcome.progress.value} {outcome.detail}\n")
        and_then()

    detach(work)


def _run(command: Command, tell: Callable[[str], object]) -> BurnIn:
    name = os.path.basename(command.arguments[0])
    try:
        environment = {"PATH": PATH, "LANG": "C.UTF-8"}
        ended = run_program(command.arguments, command.seconds, environment)
    except OSError as error:
        tell(f"{name} cannot be run: {error.strerror}")
        return BurnIn(Progress.PASSED)
    if ended.status is None:
        return BurnIn(Progress.FAILED, f"{name} did not end within {command.seconds:g} s")
    if command.is_dcgm:
        return _judge_dcgm(ended, tell)
    if ended.is_good:
        return BurnIn(Progress.PASSED)
    last = _last_line(ended.output)
    return BurnIn(Progress.FAILED, f"{name} exit {ended.status} {last}".rstrip())


def _judge_dcgm(ended: Ended, tell: Callable[[str], object]) -> BurnIn:
    from slurm_hooks.health.checks.dcgm import failed_tests

    failed = failed_tests(ended.output)
    if failed:
        return BurnIn(Progress.FAILED, f"DCGM {', '.join(failed)[:_SHOWN_CHARACTERS]} failed")
    if failed is None or not ended.is_good:
        tell(f"dcgmi told nothing to judge by (exit {ended.status}) {_last_line(ended.output)}")
    return BurnIn(Progress.PASSED)


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1][:_SHOWN_CHARACTERS] if lines else ""


def _path(host: Host) -> str:
    return f"{host.state_directory}/{_FILE}"
