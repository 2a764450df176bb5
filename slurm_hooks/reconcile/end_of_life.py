"""The ends of VMs as Slurm knows them: one reservation of ours per end of life.

Compute Engine deletes a Flex-start VM at a time that it names once the VM runs. A reservation
from that time on keeps jobs that would outlive the VM off its node. Its name is derived from the
time and the nodes, so the reservations that should exist are a pure function of the VMs, and
those that do exist are the record of when each node ends, even when its VM is gone already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from slurm_hooks.slurm.model import Reservation

NAME_PREFIX = "slurm-hooks-eol-"
"""How the names of our reservations begin; all others are other people's."""

DURATION_SECONDS = 600
"""Longer than a VM takes to go after its end. It is made anew for one that takes longer."""

_SHARED_SECONDS = 60
_DIGEST_LENGTH = 8


@dataclass(frozen=True, slots=True)
class EndOfLife:
    """Nodes whose VMs end within the same minute, and the time at which the first one does."""

    time_utc: datetime
    nodes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the reservation: the same for the same time and nodes."""
        digest = hashlib.sha256("\n".join(self.nodes).encode()).hexdigest()[:_DIGEST_LENGTH]
        return f"{NAME_PREFIX}{self.time_utc:%Y%m%dT%H%M%SZ}-{digest}"


def ends_of_life(ends: Iterable[tuple[str, datetime]]) -> tuple[EndOfLife, ...]:
    """The ends of the named nodes, the first one first. The order of the input is no matter."""
    by_minute: dict[int, list[tuple[datetime, str]]] = {}
    for node, time_utc in ends:
        minute = int(time_utc.timestamp()) // _SHARED_SECONDS
        by_minute.setdefault(minute, []).append((time_utc, node))
    return tuple(
        EndOfLife(
            min(members)[0].replace(microsecond=0), tuple(sorted(node for _, node in members))
        )
        for _, members in sorted(by_minute.items())
    )


def is_ours(reservation: Reservation) -> bool:
    """Whether a reservation was made by us."""
    return reservation.name.startswith(NAME_PREFIX)


def ended_nodes(reservations: Iterable[Reservation], now: datetime) -> frozenset[str]:
    """The nodes whose end has come, as our reservations tell."""
    return frozenset(
        node
        for reservation in reservations
        if is_ours(reservation)
        and reservation.start_time_utc is not None
        and reservation.start_time_utc <= now
        for node in reservation.nodes
    )
