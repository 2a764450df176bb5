"""What our log says of outages of one system, from now on."""

from __future__ import annotations

from dataclasses import dataclass

from tests.end_to_end.fleet import Fleet

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
