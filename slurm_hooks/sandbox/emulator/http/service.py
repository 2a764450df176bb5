"""What the HTTP side shares: the engine with its clock, faults, the log of calls, rate limits."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from slurm_hooks.sandbox.emulator.clock import Clock
from slurm_hooks.sandbox.emulator.engine import Engine
from slurm_hooks.sandbox.emulator.faults import FaultTable
from slurm_hooks.sandbox.emulator.identifiers import utc_timestamp
from slurm_hooks.sandbox.emulator.problems import rate_limit_exceeded
from slurm_hooks.sandbox.emulator.world import World

_KEPT_CALLS = 20_000
_LONGEST_SLEEP_SECONDS = 0.5


@dataclass(slots=True)
class RateLimiter:
    """Counts calls by group of methods; the counts start anew with each clock minute."""

    minute: int = -1
    counts: Counter[str] = field(default_factory=Counter)

    def check(self, world: World, group: str) -> None:
        """Count a call. Raises ApiError 403 `rateLimitExceeded` beyond the limit."""
        limit = world.behaviour.calls_per_minute
        minute = int(world.now.timestamp() // 60)
        if minute != self.minute:
            self.minute = minute
            self.counts.clear()
        self.counts[group] += 1
        if limit and self.counts[group] > limit:
            raise rate_limit_exceeded(group, world.identifiers.project_number)


class Service:
    """One emulator: everything that runs in its event loop shares this, and nothing else."""

    def __init__(self, engine: Engine, clock: Clock, node_roots: Path | None = None) -> None:
        self.engine = engine
        self.clock = clock
        self.node_roots = node_roots
        self.faults = FaultTable()
        self.rate_limiter = RateLimiter()
        self.calls: deque[dict[str, Any]] = deque(maxlen=_KEPT_CALLS)
        self.shutdown_wanted = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def world(self) -> World:
        """The engine's world."""
        return self.engine.world

    def advance(self) -> datetime:
        """Bring the engine to the present."""
        now = self.clock.now()
        self.engine.advance(now)
        return now

    def perform(self, effect: Callable[[], None]) -> None:
        """Let something happen in the present, and what follows from it."""
        self.advance()
        effect()
        self.touch()

    def touch(self) -> None:
        """Say that the schedule may have changed."""
        self.advance()
        self._changed.set()

    async def run_schedule(self) -> None:
        """Advance the engine whenever something falls due, for ever."""
        while True:
            now = self.advance()
            due = self.world.schedule.next_time_utc()
            wait_seconds = _LONGEST_SLEEP_SECONDS
            if due is not None:
                wait_seconds = min(wait_seconds, max(0.001, (due - now).total_seconds()))
            self._changed.clear()
            # Not wait_for: in Python 3.11 that swallows a cancellation that comes with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_seconds):
                    await self._changed.wait()

    def note_call(self, method: str, path: str, status: int, seconds: float) -> None:
        """Remember a call that was answered; status 0 means that it was dropped."""
        self.calls.append(
            {
                "method": method,
                "path": path,
                "status": status,
                "seconds": round(seconds, 6),
                "time": utc_timestamp(self.clock.now()),
            }
        )
