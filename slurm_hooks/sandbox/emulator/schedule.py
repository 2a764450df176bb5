"""What will happen when: a queue of timed effects, run in order of time, then of entry."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

Effect = Callable[[], None]


@dataclass(order=True, slots=True)
class _Entry:
    time_utc: datetime
    sequence: int
    effect: Effect = field(compare=False)


@dataclass(slots=True)
class Schedule:
    """Timed effects. An effect may schedule more, also for the moment that it runs in."""

    _entries: list[_Entry] = field(default_factory=list)
    _sequence: int = 0

    def at(self, time_utc: datetime, effect: Effect) -> None:
        """Run the effect once the given time has come."""
        self._sequence += 1
        heapq.heappush(self._entries, _Entry(time_utc, self._sequence, effect))

    def next_time_utc(self) -> datetime | None:
        """When the next effect is due; None when there is none."""
        return self._entries[0].time_utc if self._entries else None

    def pop_due(self, now: datetime) -> tuple[datetime, Effect] | None:
        """Take the next effect that is due at `now`; None when there is none."""
        if not self._entries or self._entries[0].time_utc > now:
            return None
        entry = heapq.heappop(self._entries)
        return entry.time_utc, entry.effect
