"""Sightings: what one look saw is believed when a look some seconds later sees it, too. Pure.

A look that shows otherwise in between resets it: the next sighting is a first one again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

BELIEVED_AFTER = timedelta(seconds=10)
"""How long after its first sighting a thing must still be seen. Lists of Compute Engine lag: all
that are read within the lag agree, and all are wrong, so that a number of looks proves nothing.
How long they lag is not promised. As long as the default interval between passes, so that a VM
that vanished gives its job back in the second pass all the same."""


@dataclass(frozen=True, slots=True)
class Sightings:
    """Since when what needs a second sighting is seen in a row, in UTC.

    `missing` and `surplus` are by node: its VM is missing, or not wanted. `unneeded` is by the
    subject of the deletion that reaps it. `finished` are those of requests that are over: they
    stay so, however old a list is, and any second sighting will do.
    """

    missing: Mapping[str, datetime] = field(default_factory=dict)
    surplus: Mapping[str, datetime] = field(default_factory=dict)
    unneeded: Mapping[str, datetime] = field(default_factory=dict)
    finished: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus or self.unneeded or self.finished)

    def seconds_to_belief(self, now: datetime) -> float | None:
        """Seconds until the first of those that are not believed yet may be; None without any."""
        first = itertools.chain(
            self.missing.values(), self.surplus.values(), self.unneeded.values()
        )
        left = ((time + BELIEVED_AFTER - now).total_seconds() for time in first)
        return min((seconds for seconds in left if seconds > 0), default=None)


def seen_since(
    before: Mapping[str, datetime], seen: Iterable[str], now: datetime
) -> dict[str, datetime]:
    """The first sighting, in a row, of each thing that is seen now. One in the future, from before
    the clock was set back, counts as now."""
    return {name: min(before.get(name, now), now) for name in seen}


def is_believed(name: str, first: Mapping[str, datetime], now: datetime) -> bool:
    """Whether what is seen now was first seen long enough ago."""
    return name in first and now - first[name] >= BELIEVED_AFTER
