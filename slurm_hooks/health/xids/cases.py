"""Xid lines of a window, put together to cases: one a GPU and Xid.

What says nothing of its own is left out here: lines that this very probe caused, what the driver
withdrew, and the channel removals (45) that only follow from another Xid. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from slurm_hooks.health.model import Verdict, gravest
from slurm_hooks.health.xids.kernel_log import LoggedXid
from slurm_hooks.health.xids.lines import XidEvent, parse_xid
from slurm_hooks.health.xids.table import XidClass, verdict_of_xid, xid_table

CONTAINED_MEMORY_ERROR = 94
PEER_ACCESS_ERROR = 137
RECOVERY_ACTION_CHANGED = 154

_CHANNEL_REMOVED = 45
_WITHDRAWAL = 162
_WITHDRAWN = 163
_REPEATED_AFTER_SECONDS = 60.0
"""The driver prints several lines on one event. Later ones are a second event."""


@dataclass(frozen=True, slots=True)
class XidCase:
    """All lines of one Xid about one GPU. `verdict` is by the table, of the gravest line."""

    xid: int
    pci_address: str
    verdict: Verdict
    count: int
    is_repeated: bool
    last_seconds: float | None
    last_text: str


@dataclass(frozen=True, slots=True)
class _Seen:
    first: XidEvent
    last: XidEvent
    count: int


def cases_of(logged: Iterable[LoggedXid], own_processes: Collection[int]) -> list[XidCase]:
    """The cases in some log lines, by address and Xid. `own_processes` are ids of our probes that
    live: the ids of dead ones may be anybody's by now."""
    groups: dict[tuple[str, int], list[_Seen]] = {}
    for line in logged:
        first, last = parse_xid(line.first), parse_xid(line.last)
        if first is None or last is None or _is_of_own_probe(first, own_processes):
            continue
        groups.setdefault((first.pci_address, first.xid), []).append(_Seen(first, last, line.times))
    return [
        _case(address, xid, groups[address, xid])
        for address, xid in sorted(groups)
        if not _says_nothing_of_its_own(address, xid, groups)
    ]


def _is_of_own_probe(event: XidEvent, own_processes: Collection[int]) -> bool:
    """By its id alone: any user can give a program our probe's name. What an earlier probe of ours
    met, such as a GPU that does not answer (119), counts as any other's."""
    return event.process_id is not None and event.process_id in own_processes


def _says_nothing_of_its_own(
    address: str, xid: int, groups: dict[tuple[str, int], list[_Seen]]
) -> bool:
    if xid == _CHANNEL_REMOVED:
        return any(
            other_address == address and other != xid and not _is_information(other)
            for other_address, other in groups
        )
    if xid == _WITHDRAWN and (address, _WITHDRAWAL) in groups:
        return _last_order(groups[address, _WITHDRAWAL]) >= _last_order(groups[address, xid])
    return False


def _is_information(xid: int) -> bool:
    row = xid_table().get(xid)
    return row is not None and row.kind is XidClass.INFORMATION


def _last_order(seen: list[_Seen]) -> tuple[int, float]:
    return max((one.last.sequence or 0, one.last.boot_seconds or 0.0) for one in seen)


def _case(address: str, xid: int, seen: list[_Seen]) -> XidCase:
    stamps = [event.boot_seconds for one in seen for event in (one.first, one.last)]
    known = [stamp for stamp in stamps if stamp is not None]
    is_repeated = bool(known) and max(known) - min(known) >= _REPEATED_AFTER_SECONDS
    latest = max(seen, key=lambda one: (one.last.sequence or 0, one.last.boot_seconds or 0.0))
    return XidCase(
        xid=xid,
        pci_address=address,
        verdict=gravest(verdict_of_xid(xid, one.last.text, is_repeated) for one in seen),
        count=sum(one.count for one in seen),
        is_repeated=is_repeated,
        last_seconds=max(known, default=None),
        last_text=latest.last.text,
    )
