"""Who may run passes: one process at a time, a daemon before a one-shot, one waiter at most.

Locks are kernel locks on files of the spool, so a killed holder leaves none behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

PASS_LOCK = "pass.lock"
DAEMON_LOCK = "daemon.lock"
WAITER_LOCK = "waiter.lock"


class Locked(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def sole_runner(spool_directory: Path) -> Iterator[None]:
    """Hold the right to run passes. Raises Locked at once if another process has it."""
    with _held(spool_directory / PASS_LOCK, wait=False):
        yield


@contextlib.contextmanager
def daemon_runner(spool_directory: Path) -> Iterator[None]:
    """Be the one daemon, and hold the right to run passes once a one-shot has given way.

    Raises Locked at once if there is another daemon.
    """
    with (
        _held(spool_directory / DAEMON_LOCK, wait=False),
        _held(spool_directory / PASS_LOCK, wait=True),
    ):
        yield


def daemon_is_there(spool_directory: Path) -> bool:
    """Whether a daemon runs or waits for its turn; a one-shot then gives way to it."""
    try:
        with _held(spool_directory / DAEMON_LOCK, wait=False):
            return False
    except Locked:
        return True


@contextlib.contextmanager
def next_runner(spool_directory: Path) -> Iterator[None]:
    """Wait for the right to run passes, unless another process waits already.

    Whoever waits will read the spool after its turn has come, so one waiter serves every caller
    that came before. Raises Locked if there is one.
    """
    waiter = contextlib.ExitStack()
    with waiter:
        waiter.enter_context(_held(spool_directory / WAITER_LOCK, wait=False))
        with _held(spool_directory / PASS_LOCK, wait=True):
            waiter.close()
            yield


@contextlib.contextmanager
def _held(path: Path, *, wait: bool) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise Locked(str(path)) from None
        yield
    finally:
        os.close(descriptor)
