"""An emulator in a process of its own, as users start it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from slurm_hooks.sandbox.emulator.control import EmulatorControl

STARTED = "listening on "
STOP_SECONDS = 20
PATIENCE_SECONDS = 30.0
PAUSE_SECONDS = 0.02

Value = TypeVar("Value")


@contextmanager
def running_emulator() -> Iterator[EmulatorControl]:
    """An emulator with an empty project `demo` on a free port, as long as the block lasts."""
    command = [sys.executable, "-m", "slurm_hooks.cli.main", "emulator", "--fast"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line.startswith(STARTED), f"the emulator said {line!r}"
        yield EmulatorControl(line.removeprefix(STARTED))
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def eventually(read: Callable[[], Value], holds: Callable[[Value], object]) -> Value:
    """Read until the condition holds. Fails the test when it does not in time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds(value := read()):
        assert time.monotonic() < deadline, f"still {value}"
        time.sleep(PAUSE_SECONDS)
    return value
