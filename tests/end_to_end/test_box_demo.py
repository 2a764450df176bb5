"""The demo succeeds only if its story happened, and leaves nothing however it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.leftovers import processes_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ALL_STEPS = 14
WAITING = "capacity: the resize request waits"


@contextmanager
def demo(directory: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "slurm_hooks.cli.main", "sandbox", "demo"]
    with subprocess.Popen(
        [*command, "--dir", str(directory)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "COLUMNS": "120", "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    pytest.fail(f"the demo ended before it said {text!r}")


def rest_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.read()


def test_the_story_happens_in_under_three_minutes_and_leaves_nothing(box_directory: Path) -> None:
    with demo(box_directory) as process:
        said = rest_of(process)
        assert process.wait(timeout=180) == 0, said
    assert said.count("happened │") == ALL_STEPS
    assert "AdminComment=slurm-hooks: waiting for capacity" in said
    assert "flexvm-a3u-1 has GPUs 0,1,2,3,4,5,6,7" in said
    assert processes_of(box_directory) == {}
    assert not box_directory.exists()


@pytest.mark.parametrize("moment", ["starting slurmctld", WAITING, "boots a slurmd"])
def test_an_interrupt_leaves_nothing(box_directory: Path, moment: str) -> None:
    with demo(box_directory) as process:
        read_until(process, moment)
        os.killpg(process.pid, signal.SIGINT)
        said = rest_of(process)
        assert process.wait(timeout=60) == 130
    assert "interrupted" in said
    assert processes_of(box_directory) == {}


def test_an_interrupt_while_the_box_is_taken_down_leaves_nothing(box_directory: Path) -> None:
    with demo(box_directory) as process:
        read_until(process, WAITING)
        os.killpg(process.pid, signal.SIGINT)
        read_until(process, "taking the box down")
        os.killpg(process.pid, signal.SIGINT)
        said = rest_of(process)
        assert process.wait(timeout=60) == 130
        assert processes_of(box_directory) == {}
    assert "interrupted" in said
    assert not box_directory.exists()


def test_a_killed_demo_leaves_nothing(box_directory: Path) -> None:
    with demo(box_directory) as process:
        read_until(process, "boots a slurmd")
        process.kill()
        process.wait()
    wait_until("no process is left", lambda: not processes_of(box_directory), 30)
    assert not box_directory.exists()


def test_a_step_that_does_not_happen_is_named_and_the_logs_stay(box_directory: Path) -> None:
    with demo(box_directory) as process:
        read_until(process, WAITING)
        Box.open(box_directory).emulator.kill()
        said = rest_of(process)
        assert process.wait(timeout=60) == 1
    assert "did not happen │" in said
    assert re.search("not reached +│", said)
    assert "this step did not happen: the zone has no capacity" in said
    assert f"the logs are in {box_directory}/logs" in said
    assert (box_directory / "logs" / "slurmctld.log").exists()
    assert processes_of(box_directory) == {}
