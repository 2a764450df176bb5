"""What one read command gave: the records that parsed and the names of those that did not.

Invariant: one odd record never costs the others, and never goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", int, str)
Record = TypeVar("Record")
Raw = TypeVar("Raw")

_SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class Parsed(Generic[Key, Record]):
    """Records by name or id, and the beginnings of the unreadable ones."""

    records: dict[Key, Record]
    unreadable: tuple[str, ...] = ()


def parse_each(
    raw_records: Iterable[Raw],
    parse: Callable[[Raw], Record],
    key_of: Callable[[Record], Key],
    what: str,
) -> Parsed[Key, Record]:
    """Parse every record; the first of two with one key counts, the second is unreadable.

    A parser says with ValueError, KeyError or TypeError that a record is not what it should be.
    """
    records: dict[Key, Record] = {}
    unreadable: list[str] = []
    for raw in raw_records:
        try:
            record = parse(raw)
        except (ValueError, KeyError, TypeError) as error:
            unreadable.append(f"{what} {_beginning(raw)}: {error!r}")
            continue
        key = key_of(record)
        if key in records:
            unreadable.append(f"{what} {key}: listed twice")
            continue
        records[key] = record
    return Parsed(records, tuple(unreadable))


def _beginning(raw: object) -> str:
    name = raw.get("name", raw) if isinstance(raw, dict) else raw
    return repr(str(name)[:_SHOWN_CHARACTERS])
