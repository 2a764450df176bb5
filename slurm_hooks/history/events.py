"""The history of events, in a file of the spool.

What it holds is needed to keep within limits that span days, so a failed read is never an empty
history.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from slurm_hooks.history.database import Database
from slurm_hooks.history.database import HistoryUnavailable as HistoryUnavailable
from slurm_hooks.history.event import Event, EventKind

FILE_NAME = "history.sqlite3"
KEPT = timedelta(days=90)
SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    time_utc TEXT NOT NULL,
    kind TEXT NOT NULL,
    pool TEXT NOT NULL,
    node TEXT NOT NULL,
    message TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    check_name TEXT NOT NULL,
    verdict TEXT NOT NULL,
    job_id INTEGER
);
CREATE INDEX IF NOT EXISTS events_by_time ON events (time_utc);
"""
_COLUMNS = "key, time_utc, kind, pool, node, message, instance_id, check_name, verdict, job_id"
_OF_POOLS = (EventKind.REPAIRS_STOPPED, EventKind.REPAIRS_RESUMED)
"""Kept for ever: a pool whose repairs are stopped stays so until a person says otherwise."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events to read; what is empty or None excludes none. `since_utc` is inclusive."""

    since_utc: datetime | None = None
    nodes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    kinds: tuple[EventKind, ...] = ()
    after_id: int = 0


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event of the history with its number there; later ones have greater numbers."""

    number: int
    event: Event


class EventHistory:
    """The events of one cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path, _SCHEMA, SCHEMA_VERSION)

    def record(self, events: Iterable[Event], now: datetime) -> None:
        """Add the events that are not in the history yet, all or none, and drop those of more than
        90 days before `now`. They are on the disk when this returns. Raises HistoryUnavailable."""
        rows = [_row(event) for event in events]
        with self._database.connection(create=True) as connection, connection:
            connection.executemany(
                f"INSERT OR IGNORE INTO events ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)", rows
            )
            connection.execute(
                "DELETE FROM events WHERE time_utc < ? AND kind NOT IN (?,?)",
                (_text(now - KEPT), *_OF_POOLS),
            )

    def recent(self, since_utc: datetime) -> tuple[Event, ...]:
        """The events since then, and all that stopped or resumed the repairs of a pool; the oldest
        first. None where nothing was ever recorded. Raises HistoryUnavailable."""
        found = self._select(
            "time_utc >= ? OR kind IN (?,?)", (_text(since_utc), *_OF_POOLS), "time_utc, id", -1
        )
        return tuple(recorded.event for recorded in found)

    def read(self, chosen: Filter, limit: int = -1) -> list[Recorded]:
        """The latest events that fit, at most `limit` of them, the oldest first.

        Raises HistoryUnavailable.
        """
        conditions, values = ["id > ?"], [chosen.after_id, *_values_of(chosen)]
        conditions += ["time_utc >= ?"] if chosen.since_utc else []
        for column, wanted in (
            ("node", chosen.nodes),
            ("pool", chosen.pools),
            ("kind", chosen.kinds),
        ):
            conditions += [f"{column} IN ({','.join('?' * len(wanted))})"] if wanted else []
        return self._select(" AND ".join(conditions), values, "id DESC", limit)[::-1]

    def _select(
        self, condition: str, values: Iterable[object], order: str, limit: int
    ) -> list[Recorded]:
        if not self.path.exists():
            return []
        with self._database.connection(create=False) as connection:
            rows = connection.execute(
                f"SELECT id, {_COLUMNS} FROM events WHERE {condition} ORDER BY {order} LIMIT ?",
                (*values, limit),
            ).fetchall()
            return [_recorded(row) for row in rows]


def _values_of(chosen: Filter) -> list[object]:
    since = [_text(chosen.since_utc)] if chosen.since_utc else []
    return [*since, *chosen.nodes, *chosen.pools, *chosen.kinds]


def _row(event: Event) -> tuple[object, ...]:
    return (
        event.key,
        _text(event.time_utc),
        event.kind.value,
        event.pool,
        event.node,
        event.message,
        event.instance_id,
        event.check,
        event.verdict,
        event.job_id,
    )


def _recorded(row: tuple[object, ...]) -> Recorded:
    number, key, time_utc, kind, pool, node, message, instance_id, check, verdict, job_id = row
    event = Event(
        time_utc=datetime.fromisoformat(str(time_utc)),
        kind=EventKind(str(kind)),
        pool=str(pool),
        key=str(key),
        node=str(node),
        message=str(message),
        instance_id=str(instance_id),
        check=str(check),
        verdict=str(verdict),
        job_id=int(str(job_id)) if job_id is not None else None,
    )
    return Recorded(int(str(number)), event)


def _text(time_utc: datetime) -> str:
    """A time of fixed width, so that texts sort as times do."""
    return time_utc.astimezone(UTC).isoformat(timespec="microseconds")
