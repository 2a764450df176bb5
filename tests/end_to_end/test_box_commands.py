"""`slurm-hooks sandbox`: a box comes, can be looked at and used, and goes without trace."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.box.state import Ports
from tests.end_to_end.leftovers import processes_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SANDBOX = [sys.executable, "-m", "slurm_hooks.cli.main", "sandbox"]


def sandbox(command: str, directory: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SANDBOX, command, "--dir", str(directory), *more],
        capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def expect_no_trace(directory: Path, ports: Ports) -> None:
    assert processes_of(directory) == {}
    assert not any(listens(port) for port in (ports.slurmctld, ports.emulator, ports.first_node))


def test_a_box_comes_up_is_used_and_goes_without_trace(box_directory: Path) -> None:
    up = sandbox("up", box_directory)
    assert up.returncode == 0, up.stderr
    ports = Box.open(box_directory).state.ports

    status = sandbox("status", box_directory, "--json")
    assert status.returncode == 0, status.stdout
    found = json.loads(status.stdout)
    assert [daemon["running"] for daemon in found["daemons"]] == [True] * 4
    assert {node["state"] for node in found["nodes"]} == {"idle~"}

    run = sandbox("run", box_directory, "--", "scontrol", "show", "config")
    assert f"SLURM_CONF              = {box_directory}/slurm.conf" in run.stdout

    down = sandbox("down", box_directory)
    assert down.returncode == 0, down.stderr
    expect_no_trace(box_directory, ports)
    assert not box_directory.exists()


def test_run_and_shell_use_the_box_and_no_other_slurm(box_directory: Path) -> None:
    assert sandbox("up", box_directory, "--no-daemon").returncode == 0
    shell = subprocess.run(
        [*SANDBOX, "shell", "--dir", str(box_directory)],
        input="echo conf=$SLURM_CONF user=$SLURM_USER\nsinfo -h -o %N\nexit 5\n",
        env={**os.environ, "SLURM_CONF": "/elsewhere/slurm.conf", "SLURM_USER": "elsewhere"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert f"conf={box_directory}/slurm.conf user=\nflexvm-a3u-[0-1]\n" in shell.stdout
    assert "(slurm sandbox)" in shell.stderr
    assert shell.returncode == 5
    assert sandbox("run", box_directory, "--", "sh", "-c", "exit 7").returncode == 7
    assert sandbox("run", box_directory, "--", "no-such-program").returncode == 1
    daemons = Box.open(box_directory).state.daemons
    assert "slurm-hooksd" not in daemons


@pytest.mark.parametrize("moment", ["starting munged", "starting slurmctld"])
def test_an_interrupt_while_the_box_comes_up_leaves_logs_alone(
    box_directory: Path, moment: str
) -> None:
    with subprocess.Popen(
        [*SANDBOX, "up", "--dir", str(box_directory)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as up:  # fmt: skip
        assert up.stderr is not None
        while moment not in up.stderr.readline():
            assert up.poll() is None
        ports = Box.open(box_directory).state.ports
        os.killpg(up.pid, signal.SIGINT)
        said = up.stderr.read()
        assert up.wait(timeout=60) == 130
    assert f"the logs are in {box_directory}/logs" in said
    expect_no_trace(box_directory, ports)


def test_a_killed_up_leaves_nothing(box_directory: Path) -> None:
    with subprocess.Popen(
        [*SANDBOX, "up", "--dir", str(box_directory)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as up:  # fmt: skip
        assert up.stderr is not None
        while "starting slurmctld" not in up.stderr.readline():
            assert up.poll() is None
        ports = Box.open(box_directory).state.ports
        up.kill()
    wait_until("nothing is left", lambda: not processes_of(box_directory), 30)
    expect_no_trace(box_directory, ports)
    assert not box_directory.exists()


def test_commands_without_a_box_say_how_to_get_one(box_directory: Path) -> None:
    for command in ("status", "down", "shell"):
        answer = sandbox(command, box_directory)
        assert answer.returncode == 1
        assert "start one with `slurm-hooks sandbox up`" in answer.stderr
