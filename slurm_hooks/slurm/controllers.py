"""Who is in charge of the cluster: the slurmctld of this host, or another one of slurm.conf.

Invariant: with one SlurmctldHost there is nothing to ask. With several, the first one that
answers a ping is in charge; one that stands by behind it answers too, but later in the order.
Where nobody answers, nobody is known to be, and whoever asks must not act.
"""

from __future__ import annotations

import enum
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slurm_hooks.slurm.client import SlurmUnavailable

MOST_INCLUDES_DEEP = 8
_HOST_LINE = re.compile(r"^\s*(?:SlurmctldHost|BackupController)\s*=\s*[^\s#]", re.IGNORECASE)
_INCLUDE_LINE = re.compile(r"^\s*include\s+(?P<path>\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Controller:
    """A slurmctld that answered a ping: its role in Slurm's word (primary, backup1) and host."""

    role: str
    host: str


class Charge(enum.StrEnum):
    """Where the slurmctld runs that is in charge."""

    HERE = "HERE"
    ELSEWHERE = "ELSEWHERE"
    NOBODY = "NOBODY"
    """Wherever it runs, nobody acts for it, since the cluster is deleted."""
    UNKNOWN = "UNKNOWN"


def charge_of_this_host(
    slurm_conf: Path,
    ping: Callable[[], Controller | None],
    host_name: str = "",
) -> Charge:
    """Whether the slurmctld of this host is in charge; `ping` is asked only if there are several.

    `host_name` is this host's own name where it is not given.
    """
    if not names_several_controllers(slurm_conf):
        return Charge.HERE
    try:
        controller = ping()
    except SlurmUnavailable:
        return Charge.UNKNOWN
    if controller is None:
        return Charge.UNKNOWN
    here = _is_same_host(controller.host, host_name or socket.gethostname())
    return Charge.HERE if here else Charge.ELSEWHERE


def names_several_controllers(slurm_conf: Path) -> bool:
    """Whether slurm.conf, with what it includes, names more than one controller.

    A file that cannot be read may name some.
    """
    try:
        return sum(bool(_HOST_LINE.match(line)) for line in _lines(slurm_conf, slurm_conf, 0)) > 1
    except OSError:
        return True


def _lines(file: Path, slurm_conf: Path, depth: int) -> Iterator[str]:
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        included = _INCLUDE_LINE.match(line)
        if included is None:
            yield line
        elif depth < MOST_INCLUDES_DEEP:
            yield from _lines(slurm_conf.parent / included["path"], slurm_conf, depth + 1)


def _is_same_host(one: str, other: str) -> bool:
    """Whether two names are of one host: equal, or equal in the first part where one is short."""
    one, other = one.lower(), other.lower()
    if one == other:
        return True
    is_short = "." not in one or "." not in other
    return is_short and one.partition(".")[0] == other.partition(".")[0]
