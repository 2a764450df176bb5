"""The ends of a box's log files, for whoever has to find out what went wrong."""

from __future__ import annotations

import os
from pathlib import Path

from slurm_hooks.sandbox.box.layout import Layout

_TAIL_LINES = 12
_TAIL_BYTES = 8_192


def log_tails(layout: Layout) -> str:
    """The last lines of every log file that is not empty, each under its path."""
    parts = []
    for path in sorted(layout.logs.glob("*.log")):
        lines = _last_lines(path)
        if lines:
            parts.append("\n".join([f"--- {path}", *lines]))
    return "\n".join(parts)


def _last_lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return text.splitlines()[-_TAIL_LINES:]
