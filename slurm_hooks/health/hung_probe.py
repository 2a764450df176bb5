"""The probe that was given up: as long as it is there, no other is started beside it.

A driver call that hangs may be one that SIGKILL ends or one that it does not. Either way the Epilog
of the same job comes a moment later, and another probe would only hang again.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.detached import start_ticks
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import boot_of
from slurm_hooks.health.model import Context

_FILE = "hung-probe"
_HUNG, _SLOW, _NOBODY = "hung", "slow", "-"
_WORDS = 6
_SECONDS_TO_DIE = 30.0
"""A slow call comes back, and then its process is killed. One that is there for longer hangs."""
_KNOWN_SECONDS = 600.0
"""For as long as Epilogs take a hang as known, though its process is gone."""


class GivenUp(NamedTuple):
    """A probe of ours that was given up, and the check that it was in. Where `is_hang` is false it
    was slow and is about to end."""

    check: str
    is_hang: bool
    is_there: bool


def remember(host: Host, process_id: int, check: str, *, is_hang: bool) -> None:
    """Write down a probe that was given up just now."""
    began = start_ticks(process_id) or _NOBODY
    manner = _HUNG if is_hang else _SLOW
    words = (process_id, began, check or _NOBODY, _real_boot(), manner, int(time.time()))
    files.write_text(_path(host), " ".join(map(str, words)) + "\n")


def given_up(host: Host, context: Context) -> GivenUp | None:
    """The probe that was given up, where a run of this context must not start another one: it is
    there still, or an Epilog comes soon after a hang. Forgets what means nothing any more."""
    parts = files.read_text(_path(host)).split()
    if len(parts) != _WORDS or not parts[0].isdigit() or not parts[5].isdigit():
        return None
    process_id, began, check, boot, manner, given_up_at = parts
    if boot != _real_boot():
        files.remove(_path(host))
        return None
    is_there = began not in (_NOBODY, "") and start_ticks(int(process_id)) == began
    age, was_hang = time.time() - int(given_up_at), manner == _HUNG
    if is_there:
        return GivenUp(check, was_hang or age > _SECONDS_TO_DIE, is_there=True)
    if was_hang and 0 <= age < _KNOWN_SECONDS:
        return GivenUp(check, True, is_there=False) if context is Context.EPILOG else None
    files.remove(_path(host))
    return None


def forget_if_gone(host: Host) -> None:
    """What hung is dealt with, by a person or as a whole run shows: Epilogs look again, unless it
    is there still."""
    earlier = given_up(host, Context.EPILOG)
    if earlier is not None and not earlier.is_there:
        files.remove(_path(host))


def _real_boot() -> str:
    """Of the kernel that the process runs on, whatever node is looked at: a process of another
    boot is another one, even with the same number and start."""
    return boot_of(Host()) or "?"


def _path(host: Host) -> str:
    return f"{host.state_directory}/{_FILE}"
