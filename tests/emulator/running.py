"""Emulators for tests: in a process of their own as users start them, or in a thread of ours.

A thread starts in no time, a process takes a second or two.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from slurm_hooks.sandbox.emulator.control import EmulatorControl
from slurm_hooks.sandbox.emulator.options import EmulatorOptions
from slurm_hooks.sandbox.emulator.server import serve
from tests.emulator_process import EmulatorProcess

START_SECONDS = 20
STOP_SECONDS = 20


@contextmanager
def running_emulator() -> Iterator[EmulatorControl]:
    """A process: an emulator with an empty project `demo` on a free port."""
    with EmulatorProcess() as process:
        yield process.control


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
