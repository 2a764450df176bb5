"""A VM of a box ends as a whole, however its end comes and whatever its processes do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.layout import Layout, claim_directory
from tests.end_to_end.leftovers import processes_of
from tests.waiting import wait_until

NODE = "flexvm-a3u-0"

SLURMD = """\
#!/bin/sh
# As slurmd does: a step manager that leaves its parent's session and tree, and a job below it.
(setsid sh -c 'trap "" TERM HUP; sleep 300 & echo $! > job.pid; wait' "$SLURM_CONF" &)
exec sleep 300
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = claim_directory(tmp_path / "box")
    layout.create()
    program = layout.programs / "slurmd"
    program.write_text(SLURMD)
    program.chmod(0o755)
    return layout


@pytest.fixture
def guest(layout: Layout) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        *(sys.executable, "-m", "slurm_hooks.sandbox.box.guest"),
        *("--dir", str(layout.directory), "--slurmd", str(layout.programs / "slurmd")),
    ]
    environment = {**os.environ, "SLURM_HOOKS_VM_NAME": NODE}
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:
        job = layout.node_spools / NODE / "job.pid"
        wait_until("the job runs", job.exists, 20)
        assert layout.guest(NODE).exists()
        yield process
        process.kill()


def expect_nothing_left(layout: Layout) -> None:
    wait_until("no process is left", lambda: not processes_of(layout.directory), 10)
    assert not (layout.node_spools / NODE).exists()
    assert not layout.guest(NODE).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_vm_leaves_no_process(
    layout: Layout, guest: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    guest.send_signal(number)
    assert guest.wait(timeout=10) == 0
    expect_nothing_left(layout)


def test_a_killed_vm_leaves_no_process(layout: Layout, guest: subprocess.Popen[bytes]) -> None:
    os.killpg(guest.pid, signal.SIGKILL)
    assert guest.wait(timeout=10) == -signal.SIGKILL
    expect_nothing_left(layout)


def test_a_vm_whose_slurmd_dies_ends_with_an_error(
    layout: Layout, guest: subprocess.Popen[bytes]
) -> None:
    slurmd = next(
        pid for pid, text in processes_of(layout.directory).items() if text.startswith("sleep 300")
        and (layout.node_spools / NODE / "job.pid").read_text().strip() != str(pid)
    )  # fmt: skip
    os.kill(slurmd, signal.SIGKILL)
    assert guest.wait(timeout=10) == 1
    expect_nothing_left(layout)


def test_a_vm_ends_with_whoever_started_it(layout: Layout) -> None:
    command = [
        *(sys.executable, "-m", "slurm_hooks.sandbox.box.guest"),
        *("--dir", str(layout.directory), "--slurmd", str(layout.programs / "slurmd")),
    ]
    environment = {**os.environ, "SLURM_HOOKS_VM_NAME": NODE}
    script = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    with subprocess.Popen(
        [sys.executable, "-c", script, *command], env=environment, start_new_session=True
    ) as emulator:
        job = layout.node_spools / NODE / "job.pid"
        wait_until("the job runs", job.exists, 20)
        emulator.kill()
    expect_nothing_left(layout)
