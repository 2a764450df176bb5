"""`slurm-hooks events` as its users meet it: what is shown, what is chosen, what is a mistake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from slurm_hooks.cli.main import app
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.history.events import EventHistory
from tests.unit.cli.test_sync import COMMAND, configure

NOW = datetime.now(UTC)
AT_NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
REBOOT = Event(
    AT_NOON, EventKind.VM_REBOOT, "a3u", "1", "flexvm-a3u-0", "gpu 3", "71", "gpu_lost", "REBOOT", 7
)
STOP = Event(NOW - timedelta(hours=3), EventKind.REPAIRS_STOPPED, "a3u", "2", message="too many")
DRAIN = Event(NOW, EventKind.VM_SLURM_DRAIN, "cpu", "3", "flexvm-cpu-12", "odd \x1b[31m\n text")


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EventHistory:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    return EventHistory(configure(tmp_path) / "history.sqlite3")


@pytest.fixture
def filled(history: EventHistory) -> EventHistory:
    history.record([REBOOT, STOP, DRAIN], REBOOT.time_utc)
    return history


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["events", *arguments])


def test_events_are_lines_the_oldest_first(filled: EventHistory) -> None:
    first, second, third = run().stdout.splitlines()
    assert first == "2026-05-01T12:00:00Z VM_REBOOT flexvm-a3u-0: gpu 3 (job 7)"
    assert second.endswith("REPAIRS_STOPPED pool a3u: too many")
    assert third.endswith(r"VM_SLURM_DRAIN flexvm-cpu-12: odd \x1b[31m\n text")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--node", "flexvm-cpu-[0-20]"), [DRAIN]),
        (("--node", "flexvm-a3u-0,flexvm-cpu-12"), [REBOOT, DRAIN]),
        (("--pool", "a3u"), [REBOOT, STOP]),
        (("--pool", "a3u", "--pool", "cpu"), [REBOOT, STOP, DRAIN]),
        (("--type", "vm_reboot", "--type", "VM_SLURM_DRAIN"), [REBOOT, DRAIN]),
        (("--since", "4h"), [STOP, DRAIN]),
        (("--since", "120m"), [DRAIN]),
        (("--since", "2026-05-01T12:00Z"), [REBOOT, STOP, DRAIN]),
        (("--since", "2026-05-01T12:00:01"), [STOP, DRAIN]),
        (("--limit", "1"), [DRAIN]),
        (("--pool", "none"), []),
    ],
)
def test_options_choose(filled: EventHistory, options: tuple[str, ...], shown: list[Event]) -> None:
    lines = run(*options).stdout.splitlines()
    assert [line.split()[1] for line in lines] == [event.kind for event in shown]


def test_json_is_an_object_a_line_in_the_managed_services_words(filled: EventHistory) -> None:
    first, *_ = run("--json").stdout.splitlines()
    assert json.loads(first) == {
        "event_time": "2026-05-01T12:00:00+00:00",
        "event_type": "VM_REBOOT",
        "event_message": "gpu 3",
        "node": "flexvm-a3u-0",
        "pool": "a3u",
        "instance_id": "71",
        "check": "gpu_lost",
        "verdict": "REBOOT",
        "job_id": 7,
    }


def test_no_events_are_no_lines(history: EventHistory) -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--type", "VM_SCAN"), "VM_REBOOT"),
        (("--since", "yesterday"), "12h"),
        (("--node", "flexvm-[0-"), "ranges"),
    ],
)
def test_mistakes_are_told_with_a_remedy(
    filled: EventHistory, options: tuple[str, ...], told: str
) -> None:
    result = run(*options)
    assert result.exit_code == 2
    assert told in result.stderr


def test_unreadable_history_is_told(history: EventHistory) -> None:
    history.path.write_bytes(b"garbage" * 1000)
    result = run()
    assert result.exit_code == 2
    assert str(history.path) in result.stderr


@pytest.mark.slow
def test_follow_shows_what_comes_and_ends_at_ctrl_c(filled: EventHistory, tmp_path: Path) -> None:
    environment = {"SLURM_CONF": str(tmp_path / "slurm.conf"), "PATH": os.defpath}
    with subprocess.Popen(
        [str(COMMAND), "events", "--follow", "--pool", "a3u"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "VM_REBOOT" in process.stdout.readline()
        assert "REPAIRS_STOPPED" in process.stdout.readline()
        later = [Event(NOW, EventKind.VM_RETURNED, pool, pool) for pool in ("cpu", "a3u")]
        filled.record(later, NOW)
        assert "VM_RETURNED pool a3u" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
