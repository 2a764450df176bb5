"""The VM that boots: where its files lie, whom it asks, and how long anything may take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

METADATA_URL = "http://169.254.169.254/computeMetadata/v1"
"""By the address: the name needs a resolver, which may be what is broken."""

_PROGRAM_DIRECTORIES = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")
_R = TypeVar("_R")


class BootError(Exception):
    """A step cannot be done, now or later; the text says why, and never holds a secret."""


class NotYet(Exception):
    """A step cannot be done now, and may be in a moment; the text says why."""


class ToldToEnd(Exception):
    """Somebody ends the boot by a signal; raised wherever it is at that moment."""


class Limits(NamedTuple):
    """Seconds, all of them. `try_seconds` is one request or one mount, the others are for what
    comes of trying again."""

    metadata_seconds: float = 60.0
    service_seconds: float = 60.0
    try_seconds: float = 60.0
    mount_seconds: float = 300.0
    gpu_seconds: float = 120.0
    pause_seconds: float = 2.0


class Machine(NamedTuple):
    """One VM. Another `root` than `/` gives a whole VM in a directory, as a chroot would."""

    root: str = "/"
    console: str = "/dev/ttyS0"
    metadata_url: str = METADATA_URL
    secret_manager_url: str = "https://secretmanager.googleapis.com"
    filestore_url: str = "https://file.googleapis.com"
    lustre_url: str = "https://lustre.googleapis.com"
    limits: Limits = Limits()

    def path(self, *parts: str) -> str:
        """A path of the VM, such as `path("etc", "munge")`, below the root."""
        return os.path.join(self.root, *parts)

    def find_program(self, name: str) -> str:
        """The absolute path of a program; empty where it is not installed."""
        places = (self.path(directory, name) for directory in _PROGRAM_DIRECTORIES)
        return next((place for place in places if os.access(place, os.X_OK)), "")

    @property
    def run_directory(self) -> str:
        """What this boot hands to the units of Slurm; gone with the boot."""
        return self.path("run", "slurm-hooks")


def try_until_done(
    attempt: Callable[[], _R],
    seconds: float,
    pause_seconds: float,
    waiting: Callable[[str], None],
) -> _R:
    """What an attempt gives, made again while it raises NotYet; `waiting` hears each new reason.

    Raises BootError with the last reason when the time is over. One attempt is always made.
    """
    deadline, told = time.monotonic() + seconds, ""
    while True:
        try:
            return attempt()
        except NotYet as reason:
            if time.monotonic() + pause_seconds >= deadline:
                raise BootError(str(reason)) from None
            if str(reason) != told:
                told = str(reason)
                waiting(told)
        time.sleep(pause_seconds)
