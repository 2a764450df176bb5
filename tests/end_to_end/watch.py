"""What can be seen of a cluster from now on: outages in our log, nodes that serve."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.end_to_end.fleet import Fleet

GLANCE_SECONDS = 0.1

NOTICED_SECONDS = 60
"""Reads are tried again for a while before a system counts as not readable."""


@dataclass
class Watch:
    """Sees an outage of one system begin and end, each told once."""

    fleet: Fleet
    system: str

    def __post_init__(self) -> None:
        self._begun, self._ended = len(self._beginnings()), len(self._ends())

    def wait_until_noticed(self) -> None:
        """Wait until the outage is told, and for another pass."""
        self.fleet.box.wait_until(
            f"no {self.system} to be noticed",
            lambda: len(self._beginnings()) > self._begun,
            NOTICED_SECONDS,
        )
        self.fleet.wait_for_passes(1)

    def wait_until_over(self) -> None:
        """Wait until its end is told, and see that each was told once."""
        self.fleet.box.wait_until(
            f"{self.system} to be back", lambda: len(self._ends()) > self._ended, NOTICED_SECONDS
        )
        assert len(self._beginnings()) == self._begun + 1
        assert len(self._ends()) == self._ended + 1

    def has_noticed_nothing(self) -> bool:
        """Whether no outage has begun since."""
        return len(self._beginnings()) == self._begun

    def _beginnings(self) -> list[str]:
        return self.fleet.log_lines(f'not readable.*subject="?{self.system}')

    def _ends(self) -> list[str]:
        return self.fleet.log_lines(f'condition over.*UNAVAILABLE.*subject="?{self.system}')


@dataclass(frozen=True)
class Glance:
    """Whether a node took jobs at some time."""

    time_utc: datetime
    is_up: bool


@contextmanager
def glances(fleet: Fleet, node: str) -> Iterator[list[Glance]]:
    """Look at a node again and again until the block ends."""
    seen: list[Glance] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(GLANCE_SECONDS):
            # The node may have changed since, but was as it is told after this time.
            time_utc = datetime.now(UTC)
            seen.append(Glance(time_utc, fleet.is_up(node)))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        is_over.set()
        watcher.join()


def served_between(seen: list[Glance], since: datetime, until: datetime) -> list[Glance]:
    """The glances between two times at which the node took jobs; fails without any glance."""
    between = [glance for glance in seen if since < glance.time_utc < until]
    assert between, f"nobody looked between {since} and {until}"
    return [glance for glance in between if glance.is_up]
