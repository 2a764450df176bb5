"""Commands end at their deadline, whatever they do, and see only what they are given."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from slurm_hooks.slurm.process import CommandFailure, SubprocessRunner
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PATH = {"PATH": "/usr/bin:/bin"}


def test_result_has_status_output_and_errors() -> None:
    result = SubprocessRunner().run(["sh", "-c", "echo out; echo err >&2; exit 3"], PATH, 10)
    assert (result.exit_status, result.stdout, result.stderr) == (3, "out\n", "err\n")


def test_command_sees_only_the_given_environment() -> None:
    result = SubprocessRunner().run(["/usr/bin/env"], {"A": "1"}, 10)
    assert result.stdout == "A=1\n"


def test_arguments_are_never_a_shells() -> None:
    result = SubprocessRunner().run(["echo", "$(id)", "a b", ";"], PATH, 10)
    assert result.stdout == "$(id) a b ;\n"


def test_command_is_killed_at_its_deadline_with_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 300 & echo $! > {pid_file}; trap '' TERM; wait"
    start = time.monotonic()
    with pytest.raises(CommandFailure, match=r"no answer within 0\.5 s"):
        SubprocessRunner().run(["sh", "-c", script], PATH, 0.5)
    assert time.monotonic() - start < 10
    child = int(pid_file.read_text())
    wait_until("the child is gone", lambda: not is_alive(child), 10)


def test_child_that_keeps_the_output_open_does_not_hold_us(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    start = time.monotonic()
    result = SubprocessRunner().run(
        ["sh", "-c", f"sleep 30 & echo $! > {pid_file}; echo done"], PATH, 20
    )
    assert result.stdout == "done\n"
    assert time.monotonic() - start < 10
    os.kill(int(pid_file.read_text()), 9)


def test_too_much_output_is_an_error_not_a_shorter_answer() -> None:
    runner = SubprocessRunner(max_output_bytes=1_000)
    with pytest.raises(CommandFailure, match="more than 1000 bytes"):
        runner.run(["head", "-c", "1001", "/dev/zero"], PATH, 10)
    assert len(runner.run(["head", "-c", "1000", "/dev/zero"], PATH, 10).stdout) == 1_000


@pytest.mark.parametrize(
    "command", [["no-such-command"], ["echo", "a\0b"], ["echo", "x" * 200_000]]
)
def test_command_that_cannot_start_is_a_failure(command: list[str]) -> None:
    with pytest.raises(CommandFailure, match="cannot start"):
        SubprocessRunner().run(command, PATH, 10)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
