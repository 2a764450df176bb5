"""The probe that was left behind hanging: as long as it is there, no other is started beside it."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_hooks.health import files
from slurm_hooks.health.host import Host

_FILE = "hung-probe"


@dataclass(frozen=True, slots=True)
class HungProbe:
    """A process of ours that could not be ended, and the check that it hangs in."""

    process_id: int
    check: str


def remember(host: Host, process_id: int, check: str) -> None:
    """Write down a probe that was given up."""
    began = _start_ticks(process_id)
    if began:
        files.write_text(_path(host), f"{process_id} {began} {check}\n")


def still_hanging(host: Host) -> HungProbe | None:
    """The probe that was given up, if it is alive still. Forgets it otherwise."""
    parts = files.read_text(_path(host)).split()
    if len(parts) < 2 or not parts[0].isdigit():
        return None
    if _start_ticks(int(parts[0])) != parts[1]:
        files.remove(_path(host))
        return None
    return HungProbe(int(parts[0]), parts[2] if len(parts) > 2 else "an unknown check")


def _start_ticks(process_id: int) -> str:
    """When a process of this kernel began, which tells it from a later one of its number. Empty
    where there is none, or where it only waits to be reaped."""
    text = files.read_text(f"/proc/{process_id}/stat")
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def _path(host: Host) -> str:
    return f"{host.state_directory}/{_FILE}"
