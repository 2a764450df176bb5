"""A process that outlives the program that starts it, and how to know it again."""

from __future__ import annotations

import os
from collections.abc import Callable

from slurm_hooks.health import files

_MOST_DESCRIPTORS = 65_536


def detach(work: Callable[[], object]) -> None:
    """Do some work in a process of a session of its own, and return at once.

    It holds none of our descriptors: whoever waits for their end does not wait for it.
    """
    if os.fork():
        return
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.closerange(3, _MOST_DESCRIPTORS)
        work()
    finally:
        os._exit(0)


def start_ticks(process_id: int) -> str:
    """When a process of this kernel began, which tells it from a later one of its number. Empty
    where there is none, or where it only waits to be reaped."""
    text = files.read_text(f"/proc/{process_id}/stat")
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""
