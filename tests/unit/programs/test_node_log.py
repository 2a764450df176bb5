"""The log of a node's programs stays small, and loses no line to those who write it at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_hooks.programs import node_log

_SMALL = 20_000


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(node_log, "LARGEST_BYTES", _SMALL)
    return tmp_path / "health.log"


def old(log: Path) -> Path:
    return log.with_name(log.name + node_log.OLD_SUFFIX)


def write(log: Path, message: str) -> None:
    node_log.write(str(log), "prolog", "ERROR", message)


def test_full_log_becomes_the_old_one(log: Path) -> None:
    log.write_text("x" * _SMALL)
    write(log, "node drained")
    assert "node drained" in log.read_text()
    assert old(log).read_text() == "x" * _SMALL


def test_log_with_room_left_stays(log: Path) -> None:
    write(log, "first")
    write(log, "second")
    assert len(log.read_text().splitlines()) == 2
    assert not old(log).exists()


def test_log_never_has_more_than_two_files_of_its_size(log: Path) -> None:
    for number in range(1_000):
        write(log, f"{number} {'x' * 100}")
    assert sorted(path.name for path in log.parent.iterdir()) == ["health.log", "health.log.1"]
    assert log.stat().st_size + old(log).stat().st_size < 2 * (_SMALL + 1_000)


def test_file_that_another_program_has_put_aside_already_is_not_put_aside_again(log: Path) -> None:
    """It was full when we looked, and is a new one by the time we have the lock."""
    log.write_text("x" * _SMALL)
    descriptor = os.open(log, os.O_RDONLY)
    write(log, "by the other program")
    node_log._put_aside(str(log), descriptor)
    os.close(descriptor)
    assert old(log).read_text() == "x" * _SMALL
    assert "by the other program" in log.read_text()


_WRITER = """
import sys
from slurm_hooks.programs import node_log
node_log.LARGEST_BYTES = int(sys.argv[2])
for number in range(200):
    node_log.write(sys.argv[1], sys.argv[3], "ERROR", f"line-{number:03d}")
"""


def test_programs_that_write_at_once_lose_no_line(log: Path) -> None:
    """Together they fill the file once, so that nothing may be missing from both."""
    size = str(4 * 200 * 50 * 2 // 3)
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(log), size, f"writer-{name}"])
        for name in "abcd"
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    lines = (old(log).read_text() + log.read_text()).splitlines()
    told = sorted((line.split()[2].partition("[")[0], line.split()[3]) for line in lines)
    assert told == [
        (f"writer-{name}", f"line-{number:03d}") for name in "abcd" for number in range(200)
    ]


def test_log_that_cannot_be_put_aside_is_written_all_the_same(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: str) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "rename", refuse)
    log.write_text("x" * _SMALL)
    write(log, "node drained")
    assert "node drained" in log.read_text()
