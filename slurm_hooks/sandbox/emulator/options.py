"""How an emulator is started, and the checks of what the command line says."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slurm_hooks.sandbox.emulator.places import DEFAULT_ZONES

_ZONE = re.compile(r"[a-z]+(-[a-z]+)*-[a-z]+\d+-[a-z]")
_PROJECT = re.compile(r"(?:[-a-z0-9.]{1,63}:)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_CAPACITY = re.compile(r"(?P<zone>[-a-z0-9]+)/(?P<machine>[-a-z0-9]+)=(?P<vms>\d+)")


class EmulatorError(Exception):
    """The emulator cannot be started as asked; the text says what to change."""


@dataclass(frozen=True, slots=True)
class EmulatorOptions:
    """How to start an emulator. `boot_command` and `stop_command` are argument vectors.

    `default_capacity` None is without limit; `capacities` are (zone, machine type, VMs).
    `node_roots` is where guests keep a pretended node each, a directory by the VM's name.
    """

    project: str
    project_number: int
    host: str = "127.0.0.1"
    port: int = 0
    zones: tuple[str, ...] = DEFAULT_ZONES
    fast: bool = False
    default_capacity: int | None = None
    capacities: tuple[tuple[str, str, int], ...] = ()
    boot_command: tuple[str, ...] = ()
    stop_command: tuple[str, ...] = ()
    serial_directory: Path | None = None
    node_roots: Path | None = None


def parse_listen(text: str) -> tuple[str, int]:
    """Split HOST:PORT. Raises EmulatorError unless HOST is a loopback address."""
    host, colon, port = text.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host.strip("[]")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise EmulatorError(f"--listen {text}: expected HOST:PORT, such as 127.0.0.1:8080")
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise EmulatorError(f"--listen {text}: only a loopback address is served, e.g. 127.0.0.1")
    return host, int(port)


def checked_project(project: str) -> str:
    """A project id, also one of a domain. Raises EmulatorError."""
    if not _PROJECT.fullmatch(project):
        raise EmulatorError(f"--project {project}: expected a project id such as my-project")
    return project


def checked_zones(zones: Sequence[str] | None) -> tuple[str, ...]:
    """The zones to serve; the default ones if none are given. Raises EmulatorError."""
    for zone in zones or ():
        if not _ZONE.fullmatch(zone):
            raise EmulatorError(f"--zone {zone}: expected a zone such as us-central1-a")
    return tuple(dict.fromkeys(zones or DEFAULT_ZONES))


def split_command(option: str, text: str) -> tuple[str, ...]:
    """A command's arguments, split as a shell would; none for "". Raises EmulatorError."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise EmulatorError(f"{option} {text}: {error}") from None


def parse_capacities(
    texts: Sequence[str],
) -> tuple[int | None, tuple[tuple[str, str, int], ...]]:
    """The default capacity and the single ones. Raises EmulatorError."""
    default: int | None = None
    limits = []
    for text in texts:
        match = _CAPACITY.fullmatch(text)
        if match:
            limits.append((match["zone"], match["machine"], int(match["vms"])))
        elif text.isascii() and text.isdigit():
            default = int(text)
        elif text != "unlimited":
            raise EmulatorError(
                f"--capacity {text}: expected N, `unlimited` or ZONE/MACHINE_TYPE=N"
            )
    return default, tuple(limits)
