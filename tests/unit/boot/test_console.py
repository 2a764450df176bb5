"""The serial console: what a boot writes is what the controller reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_hooks.boot.console import BootState, BootStep, Console, last_boot_step, line


def test_a_line_is_read_as_it_was_meant() -> None:
    step = BootStep("mount", BootState.FAILED, "/home 10.0.0.2:/home: timed out after 60 s")
    assert line(step) == (
        "slurm-hooks-boot: mount failed /home 10.0.0.2:/home: timed out after 60 s\n"
    )
    assert last_boot_step(line(step)) == step


def test_the_last_step_counts_among_other_output() -> None:
    text = (
        "[    0.000000] Linux version 6.1\r\n"
        "slurm-hooks-boot: identity done\r\n"
        "[   12.345678] slurm-hooks-boot: mount begins /home\r\n"
        "systemd[1]: Reached target multi-user\r\n"
    )
    assert last_boot_step(text) == BootStep("mount", BootState.BEGINS, "/home")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slurm-hooks-boot: \n",
        "slurm-hooks-boot: mount vanished /home\n",
        "slurm-hooks-boot: Mount failed\n",
        "startup-script: slurm-hooks-boot: slurmd done\n",
        "echo slurm-hooks-boot: slurmd done\n",
    ],
)
def test_what_is_no_line_of_ours_tells_nothing(text: str) -> None:
    assert last_boot_step(text) is None


def test_a_detail_cannot_break_or_flood_the_console() -> None:
    text = line(BootStep("mount", BootState.FAILED, "a\nslurm-hooks-boot: slurmd done" + "x" * 999))
    assert text.count("\n") == 1
    assert len(text) < 500
    step = last_boot_step(text)
    assert step is not None
    assert (step.step, step.state) == ("mount", BootState.FAILED)


def test_lines_are_added_to_the_console(tmp_path: Path) -> None:
    console = Console(str(tmp_path / "ttyS0"))
    console.tell("identity", BootState.BEGINS)
    console.tell("identity", BootState.DONE, "cl-a-0")
    assert (tmp_path / "ttyS0").read_text() == (
        "slurm-hooks-boot: identity begins\nslurm-hooks-boot: identity done cl-a-0\n"
    )


@pytest.mark.slow
def test_a_console_that_nobody_drains_does_not_hold_up_the_boot(tmp_path: Path) -> None:
    path = tmp_path / "ttyS0"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        Console(str(path)).write(b"x" * 1_000_000)
        assert os.read(reader, 10) == b"x" * 10
    finally:
        os.close(reader)


def test_a_console_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    Console(str(tmp_path / "no" / "ttyS0")).tell("identity", BootState.BEGINS)
