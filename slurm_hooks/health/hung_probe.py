"""The probe that was left behind hanging: as long as it is there, no other is started beside it."""

from __future__ import annotations

from typing import NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import boot_of

_FILE = "hung-probe"
_WORDS = 4


class HungProbe(NamedTuple):
    """A process of ours that could not be ended, and the check that it hangs in."""

    process_id: int
    check: str


def remember(host: Host, process_id: int, check: str) -> None:
    """Write down a probe that was given up."""
    began = _start_ticks(process_id)
    if began:
        files.write_text(_path(host), f"{process_id} {began} {check} {_real_boot()}\n")


def still_hanging(host: Host) -> HungProbe | None:
    """The probe that was given up, if it is alive still. Forgets it otherwise."""
    parts = files.read_text(_path(host)).split()
    if len(parts) != _WORDS or not parts[0].isdigit():
        return None
    process_id, began, check, boot = parts
    if boot != _real_boot() or _start_ticks(int(process_id)) != began:
        files.remove(_path(host))
        return None
    return HungProbe(int(process_id), check)


def _real_boot() -> str:
    """Of the kernel that the process runs on, whatever node is looked at: a process of another
    boot is another one, even with the same number and start."""
    return boot_of(Host()) or "?"


def _start_ticks(process_id: int) -> str:
    """When a process of this kernel began, which tells it from a later one of its number. Empty
    where there is none, or where it only waits to be reaped."""
    text = files.read_text(f"/proc/{process_id}/stat")
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def _path(host: Host) -> str:
    return f"{host.state_directory}/{_FILE}"
