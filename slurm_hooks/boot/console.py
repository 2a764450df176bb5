"""What a booting VM says on its serial console, and how the controller reads it.

One line a step and state: `slurm-hooks-boot: STEP STATE detail`. The console is the one thing of a
VM that can be read from outside before its slurmd registers, and after the VM has failed to boot.
"""

from __future__ import annotations

import contextlib
import enum
import os
import re
import select
import time
from collections import deque
from typing import NamedTuple

MARK = "slurm-hooks-boot: "
_LONGEST_DETAIL = 400
_WRITE_SECONDS = 2.0
_STANDARD_OUTPUT = 1


class BootState(enum.StrEnum):
    """How a step stands. FAILED ends the boot: no slurmd starts."""

    BEGINS = "begins"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


class BootStep(NamedTuple):
    """One line of the console. `detail` may be empty."""

    step: str
    state: BootState
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.step} {self.state} {self.detail}".rstrip()


_LINE = re.compile(
    # The kernel's time or a daemon's name may precede it, but no output of the startup script.
    rf"^(?:\[[ .\d]+\] |\w[\w.-]*\[\d+\]: )*{re.escape(MARK)}"
    rf"(?P<step>[a-z][a-z-]*) (?P<state>{'|'.join(BootState)})(?: (?P<detail>[^\r\n]*))?\r?$",
    re.MULTILINE,
)


def last_boot_step(text: str) -> BootStep | None:
    """The newest step that a console tells of; None where it tells of none."""
    for last in deque(_LINE.finditer(text), maxlen=1):
        detail = (last["detail"] or "").strip()
        return BootStep(last["step"], BootState(last["state"]), detail)
    return None


def line(step: BootStep) -> str:
    """The step as its line of the console, without what would break or flood it."""
    detail = "".join(c if c.isprintable() else " " for c in step.detail)
    shortened = detail if len(detail) <= _LONGEST_DETAIL else f"{detail[:_LONGEST_DETAIL]}..."
    return f"{MARK}{step._replace(detail=shortened)}\n"


class Console:
    """The serial console of this VM, and standard output. What neither takes is lost: a boot
    goes on. An empty `path` is no console beside standard output."""

    def __init__(self, path: str) -> None:
        self._path = path

    def tell(self, step: str, state: BootState, detail: str = "") -> None:
        """Write the line of a step, at once and as a whole."""
        self.write(line(BootStep(step, state, detail)).encode("utf-8", "replace"))

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        with contextlib.suppress(OSError):
            _write_whole(_STANDARD_OUTPUT, data)
        if not self._path:
            return
        # A port that nobody drains must not hold up the boot, nor become our controlling terminal.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, flags, 0o600)
            try:
                _write_whole(descriptor, data)
            finally:
                os.close(descriptor)


def _write_whole(descriptor: int, data: bytes) -> None:
    """Write all of it, waiting a bounded time for a port that is slow to take it."""
    deadline = time.monotonic() + _WRITE_SECONDS
    while data and (left := deadline - time.monotonic()) > 0:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            select.select((), (descriptor,), (), left)
