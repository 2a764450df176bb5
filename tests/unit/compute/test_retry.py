"""Pauses between attempts: doubling when the service stumbles, long when its rate is used up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.retry import RetryPolicy, pause_seconds, with_retries

STEADY = RetryPolicy(jitter=0)
NO_PAUSE = RetryPolicy(
    attempts=4, transient_pause_seconds=0, longest_pause_seconds=0, rate_pause_seconds=0
)

WORTH_ANOTHER_TRY = (ErrorKind.RATE, ErrorKind.TRANSIENT)


def error(kind: ErrorKind) -> ComputeError:
    return ComputeError(kind, "code", "")


def test_pauses_double_up_to_the_longest() -> None:
    stumble = error(ErrorKind.TRANSIENT)
    pauses = [pause_seconds(STEADY, attempt, stumble) for attempt in range(1, 8)]
    assert pauses == [0.5, 1, 2, 4, 8, 8, 8]


def test_a_used_up_rate_waits_longer_than_any_stumble() -> None:
    pauses = {pause_seconds(STEADY, attempt, error(ErrorKind.RATE)) for attempt in range(1, 5)}
    assert pauses == {STEADY.rate_pause_seconds}
    assert STEADY.rate_pause_seconds > STEADY.longest_pause_seconds


def test_pauses_are_stretched_at_random_within_the_jitter() -> None:
    policy = RetryPolicy(jitter=0.5)
    pauses = {pause_seconds(policy, 1, error(ErrorKind.TRANSIENT)) for _ in range(50)}
    assert len(pauses) > 1
    assert all(0.5 <= pause <= 0.75 for pause in pauses)


def test_all_attempts_of_a_rate_limit_end_about_when_the_minute_has_turned() -> None:
    pauses = STEADY.rate_pause_seconds * (STEADY.attempts - 1)
    assert 60 <= pauses <= STEADY.total_seconds


@pytest.mark.parametrize("kind", ErrorKind)
def test_only_rate_and_transient_are_tried_again(kind: ErrorKind) -> None:
    attempts = []

    def call() -> None:
        attempts.append(1)
        raise error(kind)

    with pytest.raises(ComputeError) as raised:
        with_retries(NO_PAUSE, call)
    assert raised.value.kind is kind
    assert len(attempts) == (NO_PAUSE.attempts if kind in WORTH_ANOTHER_TRY else 1)


def test_no_attempt_starts_after_the_total_time() -> None:
    attempts = []

    def call() -> None:
        attempts.append(1)
        raise error(ErrorKind.TRANSIENT)

    with pytest.raises(ComputeError):
        with_retries(replace(NO_PAUSE, total_seconds=0), call)
    assert len(attempts) == 1


def test_a_defect_of_ours_is_not_tried_again() -> None:
    attempts = []

    def call() -> None:
        attempts.append(1)
        raise KeyError("ours")

    with pytest.raises(KeyError):
        with_retries(NO_PAUSE, call)
    assert len(attempts) == 1
