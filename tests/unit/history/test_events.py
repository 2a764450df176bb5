"""The history of events is complete or unavailable, never less, whatever happens to its file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.history.events import KEPT, EventHistory, Filter, HistoryUnavailable
from tests.waiting import wait_until

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
REBOOT = Event(
    NOW, EventKind.VM_REBOOT, "a3u", "1", "flexvm-a3u-0", "text", "71", "gpu_lost", "REBOOT", 7
)


@pytest.fixture
def history(tmp_path: Path) -> EventHistory:
    return EventHistory(tmp_path / "history.sqlite3")


def event(key: str, minutes_ago: float = 0, **changes: object) -> Event:
    changed = replace(REBOOT, key=key, time_utc=NOW - timedelta(minutes=minutes_ago))
    return replace(changed, **changes)  # type: ignore[arg-type]


def keys(events: list[Event] | tuple[Event, ...]) -> list[str]:
    return [one.key for one in events]


def read(history: EventHistory, limit: int = -1, **chosen: object) -> list[str]:
    found = history.read(Filter(**chosen), limit)  # type: ignore[arg-type]
    return [recorded.event.key for recorded in found]


def test_event_comes_back_as_it_was(history: EventHistory) -> None:
    of_pool = Event(NOW, EventKind.REPAIRS_STOPPED, "a3u", "2")
    history.record([REBOOT, of_pool], NOW)
    assert history.recent(NOW) == (REBOOT, of_pool)


def test_nothing_recorded_is_an_empty_history(history: EventHistory) -> None:
    assert history.recent(NOW) == ()
    assert not history.path.exists()


def test_sighting_is_recorded_once(history: EventHistory) -> None:
    history.record([REBOOT], NOW)
    history.record([event("1", minutes_ago=-5, message="again"), event("2")], NOW)
    assert history.recent(NOW - timedelta(days=1)) == (REBOOT, event("2"))


def test_older_events_are_not_recent(history: EventHistory) -> None:
    history.record([event("old", 61), event("edge", 60), event("new", 1)], NOW)
    assert keys(history.recent(NOW - timedelta(hours=1))) == ["edge", "new"]


def test_stop_of_a_pool_is_recent_however_old(history: EventHistory) -> None:
    stop = event("stop", 0, kind=EventKind.REPAIRS_STOPPED, node="")
    history.record([stop, event("reboot")], NOW)
    later = NOW + 2 * KEPT
    history.record([event("later", time_utc=later)], later)
    assert keys(history.recent(later)) == ["stop", "later"]


def test_events_are_dropped_after_ninety_days(history: EventHistory) -> None:
    history.record([event("old"), event("young", minutes_ago=-1)], NOW)
    history.record([], NOW + KEPT + timedelta(seconds=1))
    assert read(history) == ["young"]


def test_events_are_chosen_by_what_they_are_about(history: EventHistory) -> None:
    other = event("other", 5, node="flexvm-b-1", pool="b", kind=EventKind.VM_RETURNED)
    history.record([event("first", 10), other, event("last")], NOW)
    assert read(history, nodes=("flexvm-b-1",)) == ["other"]
    assert read(history, pools=("a3u", "none")) == ["first", "last"]
    assert read(history, kinds=(EventKind.VM_RETURNED,)) == ["other"]
    assert read(history, since_utc=NOW - timedelta(minutes=5)) == ["other", "last"]
    assert read(history, pools=("a3u",), since_utc=NOW) == ["last"]
    assert read(history, limit=2) == ["other", "last"]
    assert read(history, after_id=2) == ["last"]


def test_time_of_another_zone_is_kept_in_utc(history: EventHistory) -> None:
    from zoneinfo import ZoneInfo

    history.record([event("1", time_utc=NOW.astimezone(ZoneInfo("Asia/Tokyo")))], NOW)
    assert history.recent(NOW) == (REBOOT,)


def test_only_the_owner_may_read_the_file(history: EventHistory) -> None:
    before = os.umask(0)
    try:
        history.record([REBOOT], NOW)
    finally:
        os.umask(before)
    assert history.path.stat().st_mode & 0o777 == 0o600


def test_garbage_is_no_empty_history(history: EventHistory) -> None:
    history.path.write_bytes(b"no database at all" * 100)
    for call in (lambda: history.recent(NOW), lambda: history.record([REBOOT], NOW)):
        with pytest.raises(HistoryUnavailable, match=r"history\.sqlite3"):
            call()


def test_file_of_a_later_version_is_left_alone(history: EventHistory) -> None:
    history.record([REBOOT], NOW)
    with sqlite3.connect(history.path) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(HistoryUnavailable, match="another version"):
        history.record([event("2")], NOW)


def test_event_of_an_unknown_kind_is_no_licence_to_forget_it(history: EventHistory) -> None:
    history.record([REBOOT], NOW)
    with sqlite3.connect(history.path) as connection:
        connection.execute("UPDATE events SET kind = 'VM_SCAN_ERROR'")
    with pytest.raises(HistoryUnavailable):
        history.recent(NOW)


def test_directory_that_is_gone_makes_the_history_unavailable(tmp_path: Path) -> None:
    with pytest.raises(HistoryUnavailable):
        EventHistory(tmp_path / "gone" / "history.sqlite3").record([REBOOT], NOW)


def test_writer_that_holds_the_file_for_long_makes_it_unavailable(
    history: EventHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_hooks.history.database.BUSY_SECONDS", 0.05)
    history.record([REBOOT], NOW)
    holder = sqlite3.connect(history.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(HistoryUnavailable, match="locked"):
        history.record([event("2")], NOW)
    holder.execute("ROLLBACK")
    holder.close()
    history.record([event("2")], NOW)
    assert read(history) == ["1", "2"]


_ENDLESS_WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.history.events import EventHistory
history, number = EventHistory(Path(sys.argv[1])), 0
while True:
    now = datetime.now(UTC)
    pair = [Event(now, EventKind.VM_REBOOT, "a3u", f"{number} {half}") for half in "ab"]
    history.record(pair, now)
    print(number, flush=True)
    number += 1
"""


@pytest.mark.slow
def test_writer_that_is_killed_loses_nothing_that_it_recorded(history: EventHistory) -> None:
    for _ in range(5):
        history.path.unlink(missing_ok=True)
        with subprocess.Popen(
            [sys.executable, "-c", _ENDLESS_WRITER, str(history.path)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            wait_until("the first record", lambda: history.path.exists(), 20)
            told = writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            told += writer.stdout.read()
        last = int(told.split()[-1])
        found = read(history)
        assert len(found) % 2 == 0
        assert found[: 2 * last + 2] == [f"{n} {half}" for n in range(last + 1) for half in "ab"]
