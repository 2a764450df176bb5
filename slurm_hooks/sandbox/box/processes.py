"""Processes by identity: who runs, who descends from whom, and signals that cannot miss.

A pid alone may have gone to a stranger since it was written down, so a process is named by pid,
start time and boot, and signalled through a pidfd. Linux only: /proc, prctl(2), pidfd_open(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process for ever: no other one, now or later, has the same three values."""

    pid: int
    start_ticks: int
    boot_id: str

    def is_alive(self) -> bool:
        """Whether this very process runs. A zombie does not."""
        return identify(self.pid) == self

    def send_signal(self, signal_number: int) -> bool:
        """Signal this very process; False when it is gone, whoever has its pid now."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(descriptor, signal_number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True

    def wait_until_gone(self, deadline_seconds: float) -> bool:
        """Wait for the end of the process; False when it still runs at the deadline."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.is_alive():
                return True
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            return bool(poll.poll(deadline_seconds * 1000))
        finally:
            os.close(descriptor)


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of the running process with this pid; None without one, or for a zombie."""
    fields = _stat_fields(pid)
    if fields is None:
        return None
    if fields.state in ("Z", "X") and not _has_other_threads(pid):
        return None
    return ProcessIdentity(pid, fields.start_ticks, _boot_id())


def _has_other_threads(pid: int) -> bool:
    """Whether a process whose first thread has ended goes on with others."""
    try:
        return sum(1 for _ in os.scandir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def identify_self() -> ProcessIdentity:
    """The identity of this process."""
    identity = identify(os.getpid())
    if identity is None:
        raise RuntimeError("/proc does not show this process: is it mounted?")
    return identity


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    parent_pid: int
    start_ticks: int


def _stat_fields(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name stands in parentheses and may hold blanks and parentheses itself.
    fields = text.rpartition(")")[2].split()
    return _Stat(state=fields[0], parent_pid=int(fields[1]), start_ticks=int(fields[19]))


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def descendants(pid: int) -> list[int]:
    """Pids of all children, their children and so on, zombies included, nearest first."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            fields = _stat_fields(int(entry.name))
            if fields is not None:
                children.setdefault(fields.parent_pid, []).append(int(entry.name))
    found: list[int] = []
    queue = [pid]
    while queue:
        nearest = children.get(queue.pop(0), [])
        found.extend(nearest)
        queue.extend(nearest)
    return found


def become_subreaper() -> None:
    """Let orphans below this process become its children, so that none can slip away."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def start(
    arguments: Sequence[str],
    *,
    output: BinaryIO,
    directory: Path,
    environment: Mapping[str, str],
    death_signal: signal.Signals,
) -> ProcessIdentity:
    """Start a child that reap_children will collect; it gets `death_signal` when we die.

    Standard input is empty, output and errors go to `output`, the session is a new one. Raises
    OSError when the program cannot be run. Call it from the main thread: the kernel takes the
    end of the starting thread for that of the parent.
    """
    parent_pid = os.getpid()

    def prepare() -> None:
        _prctl(_PR_SET_PDEATHSIG, death_signal)
        if os.getppid() != parent_pid:
            os.kill(os.getpid(), signal.SIGKILL)

    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=directory,
        env=environment,
        start_new_session=True,
        preexec_fn=prepare,
    )
    # It is our child, so its /proc entry stays until we collect it, ended or not.
    fields = _stat_fields(process.pid)
    # reap_children collects all children: keep Popen from waiting for this one itself.
    process.returncode = 0
    return ProcessIdentity(process.pid, fields.start_ticks if fields else 0, _boot_id())


def _prctl(option: int, argument: int) -> None:
    if _LIBC.prctl(option, argument, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")


def reap_children() -> list[tuple[int, int]]:
    """Collect all ended children as (pid, wait status), without waiting."""
    ended: list[tuple[int, int]] = []
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended.append((pid, status))
    return ended


def kill_descendants(deadline_seconds: float) -> list[int]:
    """SIGKILL all descendants of this subreaper until none is left; those left at the deadline."""
    end = time.monotonic() + deadline_seconds
    while True:
        left = descendants(os.getpid())
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reap_children()
        if not left or time.monotonic() > end:
            return left
        time.sleep(_POLL_SECONDS)
