"""The emulator's time: the real one plus what tests have added. It never runs backwards."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """Real time that can be moved forward."""

    def __init__(self) -> None:
        self._start_utc = datetime.now(UTC)
        self._start_monotonic = time.monotonic()
        self._added = timedelta(0)

    def now(self) -> datetime:
        """The emulator's time, in UTC."""
        passed = timedelta(seconds=time.monotonic() - self._start_monotonic)
        return self._start_utc + passed + self._added

    def advance(self, seconds: float) -> None:
        """Move the time forward. Raises ValueError for a negative number."""
        if seconds < 0:
            raise ValueError("the clock only moves forward")
        self._added += timedelta(seconds=seconds)
