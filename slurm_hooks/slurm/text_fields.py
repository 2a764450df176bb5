"""Splitting scontrol's `Key=value Key=value` text into records, fields and plain values.

Invariant: a key counts only where the record's format has it. Values may hold blanks, `=` and
line breaks (Reason, Comment, Extra, names), so keys are known by name and taken in the order in
which Slurm prints them; what looks like an earlier key is part of the value. Source: the
`slurm_sprint_*` functions of Slurm 22.05 to 26.05, and 22.05.8 as measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

_KEY = re.compile(r"(?:^|\s)([A-Za-z_]+)=")
_NO_VALUES = frozenset({"", "(null)", "N/A", "None", "NONE", "Unknown"})
_DURATION = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-9]+):([0-9]+)")


@dataclass(frozen=True)
class RecordFormat:
    """The keys of a record, in Slurm's order; the first one begins a record.

    `tail` are the keys behind `keys` whose order differs between versions. `closed_by` says
    how the value of a key ends, where the value may hold what looks like a later key.
    """

    keys: Sequence[str]
    tail: Sequence[str]
    closed_by: Mapping[str, re.Pattern[str]]

    @cached_property
    def _ranks(self) -> Mapping[str, int]:
        ranks = {key: rank for rank, key in enumerate(self.keys)}
        return ranks | dict.fromkeys(self.tail, len(self.keys))

    def split(self, text: str) -> Iterator[str]:
        """The records of a command's output, and first whatever stands before the first one."""
        start = 0
        for found in re.finditer(rf"^[ \t]*{self.keys[0]}=", text, re.MULTILINE):
            if text[start : found.start()].strip():
                yield text[start : found.start()].strip()
            start = found.start()
        if text[start:].strip():
            yield text[start:].strip()

    def fields(self, record: str) -> dict[str, str]:
        """The record's values by key, without the blanks around them."""
        places = list(self._places(record))
        ends = [start for _, start, _ in places[1:]] + [len(record)]
        return {
            key: record[value_start:end].strip()
            for (key, _, value_start), end in zip(places, ends, strict=True)
        }

    def _places(self, record: str) -> Iterator[tuple[str, int, int]]:
        last_rank, seen, closed_until = -1, set[str](), 0
        for found in _KEY.finditer(record):
            key = found.group(1)
            rank = self._ranks.get(key, -1)
            in_order = rank > last_rank or (rank == len(self.keys) and key not in seen)
            if not in_order or found.start() < closed_until:
                continue
            last_rank = rank
            seen.add(key)
            yield key, found.start(), found.end()
            if key in self.closed_by:
                close = self.closed_by[key].search(record, found.end())
                closed_until = close.end() if close else 0


def text_of(value: str) -> str:
    """A free text, empty where Slurm prints a word for nothing."""
    return "" if value in _NO_VALUES else value


def word_of(value: str) -> str:
    """The first word of a value that has only one, empty for Slurm's words for nothing."""
    words = value.split(maxsplit=1)
    return text_of(words[0]) if words else ""


def time_of(value: str) -> datetime | None:
    """A time as scontrol prints it under TZ=UTC; None for `Unknown`, `N/A` and what is no time."""
    try:
        return datetime.strptime(word_of(value), "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def seconds_of(value: str) -> int | None:
    """A duration `[days-]hours:minutes:seconds`; None for UNLIMITED and other words."""
    found = _DURATION.fullmatch(word_of(value))
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def number_of(value: str) -> int:
    """A whole number. Raises ValueError for anything else."""
    word = word_of(value)
    if not word.isascii():
        raise ValueError(f"not a number: {word[:40]!r}")
    return int(word)
