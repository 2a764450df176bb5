"""Waiting on conditions with deadlines, so that no test sleeps and hopes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

POLL_SECONDS = 0.05
PATIENCE_SECONDS = 30.0

Value = TypeVar("Value")


def wait_until(what: str, condition: Callable[[], bool], deadline_seconds: float) -> None:
    """Return as soon as the condition holds; fail with `what` when the deadline passes."""
    end = time.monotonic() + deadline_seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_seconds} s in vain for {what}")
        pause.wait(POLL_SECONDS)


def eventually(read: Callable[[], Value], holds: Callable[[Value], object]) -> Value:
    """Read until the condition holds and return what was read; fail with it otherwise."""
    latest: list[Value] = []

    def is_so() -> bool:
        latest[:] = [read()]
        return bool(holds(latest[0]))

    try:
        wait_until("a value that will do", is_so, PATIENCE_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{error}; the last one was {latest}") from None
    return latest[0]
