"""A spool that cannot be read or changed costs hints, never a pass and what it remembers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from slurm_hooks.programs import spool
from slurm_hooks.reconcile.resume_calls import UNFINISHED_KEPT_SECONDS, CallsDirectory
from slurm_hooks.slurm.hostlist import expand
from tests.unit.reconcile.builders import N0
from tests.unit.reconcile.scenario import Scenario


def test_pass_remembers_what_it_saw_although_a_call_cannot_be_removed(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path)
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    obstacle = Path(spool.requests_directory(str(tmp_path))) / f"1{spool.SUFFIX}"
    obstacle.mkdir(parents=True)

    scenario.compute.state.hidden.add(N0)
    scenario.run()
    assert scenario.passes.has_sightings, "the missing VM of a running job"
    assert obstacle.exists()
    assert scenario.slurm.jobs[job_id].is_active


def test_spool_that_is_no_directory_has_no_calls_and_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Path(spool.requests_directory(str(tmp_path))).touch()
    calls = CallsDirectory(tmp_path, expand)
    assert calls.read() == calls.read() == ()
    assert caplog.text.count("spool not read") == 1


def test_call_that_cannot_be_removed_is_read_and_reported_once_and_goes_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = spool.write_call(str(tmp_path), "resume", N0, None)
    calls = CallsDirectory(tmp_path, expand)
    assert [call.nodes for call in calls.read()] == [(N0,)]

    file = Path(spool.requests_directory(str(tmp_path))) / name
    file.unlink()
    file.mkdir()
    calls.forget(name)
    calls.remove_spent()
    assert calls.read() == ()
    assert caplog.text.count("not removed") == 1

    file.rmdir()
    file.touch()
    calls.remove_spent()
    assert not file.exists()


def unfinished_call(spool_directory: Path, age_seconds: int) -> Path:
    """What a program leaves that is killed while it writes a call."""
    finished = spool.write_call(str(spool_directory), "resume", N0, None)
    directory = Path(spool.requests_directory(str(spool_directory)))
    unfinished = (directory / finished).rename(directory / f".{finished}")
    written = time.time() - age_seconds
    os.utime(unfinished, (written, written))
    return unfinished


def test_call_that_nobody_will_finish_is_removed_and_one_being_written_is_not(
    tmp_path: Path,
) -> None:
    old = unfinished_call(tmp_path, UNFINISHED_KEPT_SECONDS + 60)
    young = unfinished_call(tmp_path, UNFINISHED_KEPT_SECONDS - 60)
    calls = CallsDirectory(tmp_path, expand)

    assert calls.read() == ()
    assert old.exists(), "reading changes nothing"
    calls.remove_spent()
    assert not old.exists()
    assert young.exists()


def test_program_whose_unfinished_call_was_removed_leaves_no_call_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = CallsDirectory(tmp_path, expand)
    rename = os.rename

    def rename_after_an_hour(unfinished: str, place: str) -> None:
        long_ago = time.time() - UNFINISHED_KEPT_SECONDS - 1
        os.utime(unfinished, (long_ago, long_ago))
        calls.read()
        calls.remove_spent()
        rename(unfinished, place)

    monkeypatch.setattr("os.rename", rename_after_an_hour)
    with pytest.raises(FileNotFoundError):
        spool.write_call(str(tmp_path), "resume", N0, None)
    assert os.listdir(spool.requests_directory(str(tmp_path))) == []  # noqa: PTH208
