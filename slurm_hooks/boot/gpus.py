"""Waits for the driver to show the VM's GPUs: a slurmd that starts before they are there registers
too few, and Slurm keeps such a node out of service until somebody looks at it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from slurm_hooks.boot.machine import BootError, Machine, NotYet, try_until_done

_DEVICE = re.compile(r"nvidia[0-9]+")


def wait_for_gpus(machine: Machine, count: int, waiting: Callable[[str], None]) -> str:
    """Wait for so many device files, for a bounded time; returns what to tell.

    A node that lacks some starts all the same: health checks and Slurm know what to do with it.
    """

    def attempt() -> str:
        found = _devices(machine)
        if found < count:
            raise NotYet(f"{found} of {count}")
        return f"{found} of {count}"

    seconds = machine.limits.gpu_seconds
    try:
        return try_until_done(attempt, seconds, machine.limits.pause_seconds, waiting)
    except BootError as finding:
        return f"{finding} after {seconds:g} s: the node starts with what it has"


def _devices(machine: Machine) -> int:
    try:
        return sum(bool(_DEVICE.fullmatch(name)) for name in os.listdir(machine.path("dev")))
    except FileNotFoundError:
        return 0
