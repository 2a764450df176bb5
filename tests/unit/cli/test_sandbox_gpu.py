"""`slurm-hooks sandbox gpu` tells how a GPU can be broken, and where there is no box."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from slurm_hooks.cli.main import app
from slurm_hooks.sandbox.node.faults import GpuFaultKind

WIDE = {"COLUMNS": "300", "TERMINAL_WIDTH": "300"}


def test_help_names_every_fault_there_is() -> None:
    said = CliRunner().invoke(app, ["sandbox", "gpu", "--help"], env=WIDE).output
    for kind in GpuFaultKind:
        assert str(kind) in said


def test_node_of_no_box_is_told_in_one_line(tmp_path: Path) -> None:
    arguments = ["sandbox", "gpu", "flexvm-a3u-0", "--fault", "lost", "--dir", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "no box in" in result.stderr
