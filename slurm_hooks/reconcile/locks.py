"""Who may run passes: one process at a time, a daemon before a one-shot, one waiter at most.

Locks are kernel locks on files of the spool, so a killed holder leaves none behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

PASS_LOCK = "pass.lock"
DAEMON_LOCK = "daemon.lock"
WAITER_LOCK = "waiter.lock"
CHANGE_LOCK = "change.lock"

LONGEST_WAIT_SECONDS = 3600.0
"""How long a one-shot waits for its turn: twice as long as one before it may run passes."""

_POLL_SECONDS = 0.2


class Locked(Exception):
    """Another process holds the lock."""


class TurnNeverCame(Locked):
    """Another process held the lock for as long as we were ready to wait for it."""


@contextlib.contextmanager
def sole_runner(spool_directory: Path) -> Iterator[None]:
    """Hold the right to run passes. Raises Locked at once if another process has it."""
    with _held(spool_directory / PASS_LOCK):
        yield


@contextlib.contextmanager
def sole_change(spool_directory: Path) -> Iterator[None]:
    """Be the only one who applies or deletes the cluster. Raises Locked at once if there is one."""
    with _held(spool_directory / CHANGE_LOCK):
        yield


@contextlib.contextmanager
def daemon_runner(spool_directory: Path) -> Iterator[None]:
    """Be the one daemon, and hold the right to run passes once a one-shot has given way.

    Raises Locked at once if there is another daemon. The wait has no limit here: whoever starts
    the daemon has one (TimeoutStartSec of systemd).
    """
    with (
        _held(spool_directory / DAEMON_LOCK),
        _held(spool_directory / PASS_LOCK, limit_seconds=None),
    ):
        yield


def daemon_is_there(spool_directory: Path) -> bool:
    """Whether a daemon runs or waits for its turn; a one-shot then gives way to it."""
    try:
        with _held(spool_directory / DAEMON_LOCK):
            return False
    except Locked:
        return True


@contextlib.contextmanager
def next_runner(
    spool_directory: Path, limit_seconds: float = LONGEST_WAIT_SECONDS
) -> Iterator[None]:
    """Wait for the right to run passes, unless another process waits already.

    Whoever waits will read the spool after its turn has come, so one waiter serves every caller
    that came before. Raises Locked if there is one, and TurnNeverCame when the limit has passed:
    what the caller came for then stays with the holder, and with the next caller.
    """
    waiter = contextlib.ExitStack()
    with waiter:
        waiter.enter_context(_held(spool_directory / WAITER_LOCK))
        with _held(spool_directory / PASS_LOCK, limit_seconds):
            waiter.close()
            yield


@contextlib.contextmanager
def _held(path: Path, limit_seconds: float | None = 0.0) -> Iterator[None]:
    """Hold a lock that is free within the limit; None waits for ever, 0 not at all."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor, path, limit_seconds)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, limit_seconds: float | None) -> None:
    if limit_seconds is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    end = time.monotonic() + limit_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if limit_seconds == 0.0:
                raise Locked(str(path)) from None
            if time.monotonic() > end:
                raise TurnNeverCame(f"{path} for {limit_seconds:g} s") from None
        else:
            return
        time.sleep(_POLL_SECONDS)
