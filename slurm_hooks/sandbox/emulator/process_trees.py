"""Finds and kills all processes of one guest, whatever session they have moved to.

A guest's processes are its process group, everything that carries its environment, and all
descendants of those. Linux only: reads /proc.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")
_STEP_SECONDS = 0.02


def kill_all(group: int, marks: Iterable[str], deadline_seconds: float) -> bool:
    """SIGKILL all processes of a guest until none is left; False if some outlive the deadline.

    `group` is the guest's process group and `marks` are the `KEY=VALUE` entries that only its
    environment holds all of.
    """
    wanted = frozenset(mark.encode() for mark in marks)
    deadline = time.monotonic() + deadline_seconds
    while True:
        found = find(group, wanted)
        for pid in found:
            _kill(pid)
        if not found or time.monotonic() > deadline:
            return not found
        time.sleep(_STEP_SECONDS)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def find(group: int, marks: frozenset[bytes]) -> set[int]:
    """The living processes of a guest."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        stat = _stat(entry)
        if stat is None or pid == os.getpid():
            continue
        parent, process_group = stat
        parents[pid] = parent
        if process_group == group or _has_marks(entry, marks):
            found.add(pid)
    return _with_descendants(found, parents)


def _stat(entry: Path) -> tuple[int, int] | None:
    """Parent and process group; None for a process that is gone or a zombie."""
    try:
        fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else (int(fields[1]), int(fields[2]))


def _has_marks(entry: Path, marks: frozenset[bytes]) -> bool:
    try:
        environment = (entry / "environ").read_bytes()
    except OSError:
        return False
    return marks <= frozenset(environment.split(b"\0"))


def _with_descendants(found: set[int], parents: dict[int, int]) -> set[int]:
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in found} - found
        found |= children
        grown = bool(children)
    return found
