"""When a failed call is tried again: only RATE and TRANSIENT, and never for long.

A call that changes something is tried again with the same request id, so that the service does
it once. Rate quotas are refilled when the next clock minute starts, so RATE waits much longer.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from slurm_hooks.compute.errors import ComputeError, ErrorKind

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Deadlines and pauses of calls.

    `request_timeout_seconds` is for each attempt; no attempt starts after `total_seconds`.
    Pauses double from `transient_pause_seconds` up to `longest_pause_seconds`; after RATE each
    is `rate_pause_seconds`. Every pause is stretched by up to `jitter` of itself, so that
    several controllers do not come back together.
    """

    request_timeout_seconds: float = 30.0
    attempts: int = 5
    total_seconds: float = 75.0
    transient_pause_seconds: float = 0.5
    longest_pause_seconds: float = 8.0
    rate_pause_seconds: float = 16.0
    jitter: float = 0.5


RETRIED = frozenset({ErrorKind.RATE, ErrorKind.TRANSIENT})


def with_retries(policy: RetryPolicy, call: Callable[[], Answer]) -> Answer:
    """Make a call, again if it helps. Raises the last ComputeError."""
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(policy.attempts)
        | tenacity.stop_after_delay(policy.total_seconds),
        wait=lambda state: pause_seconds(policy, state.attempt_number, _error_of(state)),
        retry=tenacity.retry_if_exception(_is_retried),
        reraise=True,
    )
    return retrying(call)


def pause_seconds(policy: RetryPolicy, attempt: int, error: BaseException | None) -> float:
    """How long to wait after a failed attempt; the first attempt is 1."""
    if isinstance(error, ComputeError) and error.kind is ErrorKind.RATE:
        pause = policy.rate_pause_seconds
    else:
        doubled = policy.transient_pause_seconds * 2.0 ** (attempt - 1)
        pause = min(doubled, policy.longest_pause_seconds)
    return pause * (1 + random.uniform(0, policy.jitter))


def _error_of(state: tenacity.RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _is_retried(error: BaseException) -> bool:
    return isinstance(error, ComputeError) and error.kind in RETRIED
