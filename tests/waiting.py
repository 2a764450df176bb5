"""Waiting on conditions with deadlines, so that no test sleeps and hopes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

POLL_SECONDS = 0.05


def wait_until(what: str, condition: Callable[[], bool], deadline_seconds: float) -> None:
    """Return as soon as the condition holds; fail with `what` when the deadline passes."""
    end = time.monotonic() + deadline_seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_seconds} s in vain for {what}")
        pause.wait(POLL_SECONDS)
