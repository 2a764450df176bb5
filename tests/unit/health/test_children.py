"""Programs that a health run starts: bounded, whatever they and their children do."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from slurm_hooks.health.children import run_program
from tests.waiting import wait_until

_ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def _run(script: str, seconds: float = 5.0) -> tuple[int | None, str]:
    ended = run_program(("/bin/sh", "-c", script), seconds, _ENVIRONMENT)
    return ended.status, ended.output


def test_the_status_and_both_outputs_are_told() -> None:
    assert _run("echo out; echo err >&2; exit 3") == (3, "out\nerr")


def test_an_end_by_signal_is_told_as_its_negative_number() -> None:
    assert _run("kill -9 $$") == (-9, "")


def test_a_program_that_does_not_end_is_left_behind_at_its_deadline() -> None:
    began = time.monotonic()

    status, output = _run("echo begun; trap '' TERM; while :; do sleep 1; done", 0.3)

    assert (status, output) == (None, "begun")
    assert time.monotonic() - began < 3


def test_all_of_its_group_is_killed_at_the_deadline(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    status, _ = _run(f"sleep 600 & echo $! > {note}; wait", 0.5)

    assert status is None
    child = int(note.read_text())
    wait_until("the end of the late program's child", lambda: not _runs(child), 5)


def test_a_child_that_keeps_the_output_open_does_not_keep_us() -> None:
    began = time.monotonic()

    status, output = _run("sleep 30 & echo done", 10)

    assert (status, output) == (0, "done")
    assert time.monotonic() - began < 5


def test_nothing_of_our_environment_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_X", "evil")

    assert _run("echo ${LD_PRELOAD_X:-clean}") == (0, "clean")


def test_a_program_that_is_not_there_raises() -> None:
    with pytest.raises(OSError, match="No such file"):
        run_program(("/no/such/program",), 1, _ENVIRONMENT)


def test_only_the_end_of_endless_output_is_kept() -> None:
    status, output = _run("yes abc | head -c 3000000; echo end")

    assert status == 0
    assert len(output) <= 1024 * 1024 and output.endswith("end")


def test_a_long_answer_is_whole() -> None:
    status, output = _run("echo begin; yes abc | head -c 800000; echo end")

    assert status == 0
    assert len(output) > 800000 and output.startswith("begin")


def _runs(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"
