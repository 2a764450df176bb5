"""Where a line of log goes."""

from __future__ import annotations

import stat
import syslog
from pathlib import Path

import pytest

from slurm_hooks.programs import log_line


def test_first_line_makes_the_directory_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "var" / "log" / "slurm-hooks" / "health.log"
    log_line.write(str(file), "prolog", "ERROR", "node drained", node="demo-a3u-1")
    assert "ERROR prolog[" in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) & 0o027 == 0


@pytest.mark.parametrize("text", ["a\x1b[2Kb", "a\rb", "a\u2028b", "a b\x07"])
def test_what_a_terminal_would_obey_is_written_out(text: str) -> None:
    line = log_line.format_line("epilog", "ERROR", text, name=text)
    assert line.removesuffix("\n").isprintable()


def test_line_whose_file_cannot_be_made_goes_to_syslog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(syslog, "syslog", lambda _, text: told.append(text))
    (tmp_path / "log").write_text("a file and no directory", encoding="ascii")
    log_line.write(str(tmp_path / "log" / "health.log"), "prolog", "ERROR", "node drained")
    (line,) = told
    assert "node drained" in line
    assert "log_file_error=" in line
