"""Waiting for a condition with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

from slurm_hooks.sandbox.box.layout import BoxError

_INTERVAL_SECONDS = 0.1


class WaitedTooLong(BoxError):
    """A condition did not come true before its deadline."""


def wait_until(description: str, condition: Callable[[], bool], deadline_seconds: float) -> None:
    """Return once the condition holds. Raises WaitedTooLong at the deadline."""
    end = time.monotonic() + deadline_seconds
    while not condition():
        if time.monotonic() >= end:
            raise WaitedTooLong(f"waited {deadline_seconds:g} s in vain until {description}")
        time.sleep(_INTERVAL_SECONDS)
