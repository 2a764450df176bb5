"""No daemon of a box outlives its supervisor, and no box its maker unless it was let go."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box import supervision
from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.box.configuration import BoxOptions
from slurm_hooks.sandbox.box.layout import BoxError, Layout
from slurm_hooks.sandbox.box.startup import prepare, start_daemon
from slurm_hooks.sandbox.box.state import BoxState, DaemonName
from tests.end_to_end.leftovers import processes_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

MAKER = """\
import signal, sys
from pathlib import Path
from tests.end_to_end.test_box_supervisor import start_with_munged
from slurm_hooks.sandbox.box import supervision
from slurm_hooks.sandbox.box.layout import Layout
state = start_with_munged(Path(sys.argv[1]))
if sys.argv[2] == "release":
    supervision.request_release(Layout(state.directory))
print("up", flush=True)
signal.pause()
"""


def start_with_munged(directory: Path) -> BoxState:
    state = prepare(directory, None, BoxOptions(), sys.executable)
    supervision.start_supervisor(state)
    start_daemon(state, DaemonName.MUNGED)
    return state


def make_and_kill_the_maker(directory: Path, how: str) -> None:
    command = [sys.executable, "-c", MAKER, str(directory), how]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as maker:
        assert maker.stdout is not None
        assert maker.stdout.readline() == "up\n"
        maker.kill()


def test_daemons_end_with_a_killed_supervisor_and_down_removes_the_rest(
    box_directory: Path,
) -> None:
    state = start_with_munged(box_directory)
    box = Box.open(box_directory)
    supervisor = box.state.supervisor
    assert supervisor is not None
    assert box.munged.is_running

    supervisor.send_signal(signal.SIGKILL)

    wait_until("no process is left", lambda: not processes_of(state.directory), 10)
    box.stop()
    assert not box_directory.exists()


def test_a_box_goes_with_its_killed_maker(box_directory: Path) -> None:
    make_and_kill_the_maker(box_directory, "hold")
    wait_until("no process is left", lambda: not processes_of(box_directory), 15)
    assert not box_directory.exists()


def test_a_box_that_was_let_go_outlives_its_maker(box_directory: Path) -> None:
    make_and_kill_the_maker(box_directory, "release")
    box = Box.open(box_directory)
    assert box.munged.is_running
    box.stop()
    assert not box_directory.exists()


def test_a_killed_daemon_is_seen_and_can_be_started_again(box_directory: Path) -> None:
    start_with_munged(box_directory)
    box = Box.open(box_directory)
    box.munged.kill(signal.SIGKILL)
    wait_until("its end is recorded", lambda: box.munged.state.exit_status == -signal.SIGKILL, 5)
    box.munged.start()
    assert box.munged.is_running


def test_a_daemon_is_not_started_twice(box_directory: Path) -> None:
    start_with_munged(box_directory)
    with pytest.raises(BoxError, match="runs already"):
        Box.open(box_directory).munged.start()


def test_a_second_box_in_the_same_directory_is_refused(box_directory: Path) -> None:
    start_with_munged(box_directory)
    with pytest.raises(BoxError, match="a box runs in"):
        prepare(box_directory, None, BoxOptions(), sys.executable)
    assert Box.open(box_directory).munged.is_running


def test_logs_stay_when_asked_for_and_go_with_the_next_box(box_directory: Path) -> None:
    start_with_munged(box_directory)
    Box.open(box_directory).stop(keep_logs=True)
    assert {path.name for path in box_directory.iterdir()} == {"box.json", "logs"}
    assert Layout(box_directory).log("munged").stat().st_size > 0

    prepare(box_directory, None, BoxOptions(), sys.executable)
    assert not Layout(box_directory).log("munged").exists()
