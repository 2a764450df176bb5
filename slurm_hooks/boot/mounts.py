"""Shared storage: the home directories and the pool's Filestore and Lustre instances.

/home is a share of one Filestore instance; the others lie at /mnt/filestore/INSTANCE and
/mnt/lustre/INSTANCE. What is mounted already stays as it is, so that a boot may run again.
"""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from slurm_hooks.boot import keys
from slurm_hooks.boot.machine import BootError, Machine, NotYet, try_until_done
from slurm_hooks.boot.metadata import Instance
from slurm_hooks.boot.services import Services
from slurm_hooks.health.children import PATH, run_program

NFS_OPTIONS = "hard,timeo=600,retrans=3,rsize=524288,wsize=524288"
"""Google's advice for Filestore: wait for a server that is away instead of losing writes."""

_INSTANCE = re.compile(
    r"projects/[a-z0-9][a-z0-9.:-]*/locations/[a-z0-9-]+/instances/(?P<name>[a-z][a-z0-9-]{0,62})"
)
_SOURCE = re.compile(r"[A-Za-z0-9._@:\[\]/-]{3,255}")
_OPTIONS = re.compile(r"[A-Za-z0-9_=.,:/@-]*")
_NETWORK_TYPES = ("nfs", "nfs4", "lustre")


class Kind(enum.StrEnum):
    """What serves the storage; the value is the type that mount takes."""

    FILESTORE = "nfs"
    LUSTRE = "lustre"


class Mount(NamedTuple):
    """One instance and where it goes. `target` is below the root, such as `mnt/lustre/data`."""

    target: str
    instance: str
    kind: Kind


def wanted_mounts(instance: Instance) -> tuple[Mount, ...]:
    """What the metadata asks for, /home first. Raises BootError for what is no instance."""
    home = instance.attribute(keys.HOME)
    mounts = [Mount("home", home, Kind.FILESTORE)] if home else []
    for key, kind, directory in (
        (keys.FILESTORES, Kind.FILESTORE, "mnt/filestore"),
        (keys.LUSTRES, Kind.LUSTRE, "mnt/lustre"),
    ):
        for text in instance.listed(key):
            mounts.append(Mount(f"{directory}/{text.rpartition('/')[2]}", text, kind))
    for mount in mounts:
        if not _INSTANCE.fullmatch(mount.instance):
            raise BootError(f"{mount.instance[:80]!r} is no instance to mount on /{mount.target}")
    return tuple(mounts)


def mount(
    machine: Machine,
    services: Services,
    instance: Instance,
    wanted: Mount,
    waiting: Callable[[str], None],
) -> str:
    """Mount one instance; returns what to tell. Raises BootError and OSError."""
    target = machine.path(wanted.target)
    present = _mounted_source(machine, target)
    if present:
        return f"/{wanted.target} is {present} already"
    source = _known_source(instance, wanted) or _asked_source(machine, services, wanted)
    if not _SOURCE.fullmatch(source):
        raise BootError(f"{wanted.instance} has no address that mount takes: {source[:80]!r}")
    os.makedirs(target, mode=0o755, exist_ok=True)
    arguments = _arguments(machine, instance, wanted.kind, source, target)
    limits = machine.limits

    def attempt() -> str:
        _mount_once(arguments, limits.try_seconds, f"/{wanted.target} {source}")
        return f"/{wanted.target} {source}"

    return try_until_done(attempt, limits.mount_seconds, limits.pause_seconds, waiting)


def _arguments(
    machine: Machine, instance: Instance, kind: Kind, source: str, target: str
) -> tuple[str, ...]:
    program = machine.find_program("mount")
    if not program:
        raise BootError("mount is not installed in the image")
    if kind is Kind.FILESTORE:
        options = instance.attribute(keys.NFS_OPTIONS) or NFS_OPTIONS
    else:
        options = instance.attribute(keys.LUSTRE_OPTIONS)
    if not _OPTIONS.fullmatch(options):
        raise BootError(f"the mount options cannot be {options[:60]!r}")
    return (program, "-t", kind, *(("-o", options) if options else ()), source, target)


def _mount_once(arguments: tuple[str, ...], seconds: float, what: str) -> None:
    ended = run_program(arguments, seconds, {"PATH": PATH})
    if ended.status is None:
        raise NotYet(f"{what}: timed out after {seconds:g} s")
    if not ended.is_good:
        output = " ".join(ended.output.split())
        raise NotYet(f"{what}: status {ended.status}: {output[-200:]}".rstrip(": "))


def _mounted_source(machine: Machine, target: str) -> str:
    """What is mounted there over the network; empty without such a mount."""
    for source, place, kind in _mounted(machine):
        if place == target and kind in _NETWORK_TYPES:
            return source
    return ""


def _mounted(machine: Machine) -> Iterator[tuple[str, str, str]]:
    try:
        with open(machine.path("proc", "self", "mounts"), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        source, place, kind, *_ = [*line.split(" "), "", "", ""]
        yield source, place, kind


def _known_source(instance: Instance, wanted: Mount) -> str:
    pairs = (item.partition("=") for item in instance.listed(keys.MOUNT_SOURCES))
    return next((source for name, _, source in pairs if name == wanted.instance), "")


def _asked_source(machine: Machine, services: Services, wanted: Mount) -> str:
    """What mount takes for an instance, from the service that has it; empty where it does not
    say it."""
    is_lustre = wanted.kind is Kind.LUSTRE
    url = machine.lustre_url if is_lustre else machine.filestore_url
    found = services.get(f"{url}/v1/{wanted.instance}", wanted.instance)
    if is_lustre:
        return str(found.get("mountPoint", ""))
    address = _first(_first(found.get("networks")).get("ipAddresses"), "")
    share = _first(found.get("fileShares")).get("name", "")
    return f"{address}:/{share}" if address and share else ""


def _first(items: Any, otherwise: Any = None) -> Any:
    """The first of a list; where there is none, what stands in for it: an empty object."""
    if isinstance(items, list) and items:
        return items[0]
    return {} if otherwise is None else otherwise
