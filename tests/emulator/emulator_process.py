"""Emulators for tests: in a process of their own as users start them, or in a thread of ours.

A thread starts in no time, a process takes a second or two.
"""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from slurm_hooks.sandbox.emulator.control import EmulatorControl
from slurm_hooks.sandbox.emulator.options import EmulatorOptions
from slurm_hooks.sandbox.emulator.server import serve

STARTED = "listening on "
START_SECONDS = 20
STOP_SECONDS = 20
PATIENCE_SECONDS = 30.0
PAUSE_SECONDS = 0.02

Value = TypeVar("Value")


@contextmanager
def running_emulator() -> Iterator[EmulatorControl]:
    """A process: an emulator with an empty project `demo` on a free port."""
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


@contextmanager
def emulator_in_thread() -> Iterator[EmulatorControl]:
    """A thread: an emulator with an empty project `demo` on a free port."""
    options = EmulatorOptions(project="demo", project_number=123456789012, fast=True)
    started: queue.Queue[str] = queue.Queue()

    def run() -> None:
        asyncio.run(serve(options, started.put))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    control = EmulatorControl(started.get(timeout=START_SECONDS))
    try:
        yield control
    finally:
        control.shutdown()
        thread.join(STOP_SECONDS)
        assert not thread.is_alive(), "the emulator did not stop"


def eventually(read: Callable[[], Value], holds: Callable[[Value], object]) -> Value:
    """Read until the condition holds. Fails the test when it does not in time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds(value := read()):
        assert time.monotonic() < deadline, f"still {value}"
        time.sleep(PAUSE_SECONDS)
    return value
