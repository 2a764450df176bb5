"""Answers recorded from real daemons, one and the same small cluster on each version."""

from __future__ import annotations

from pathlib import Path

RECORDED = Path(__file__).resolve().parents[2] / "data" / "slurm"


def recorded(version: str, name: str) -> str:
    """The text of a recorded answer, for example `recorded("22.05", "nodes.txt")`."""
    return (RECORDED / version / name).read_text()
