"""What a box has left behind, seen from outside of it."""

from __future__ import annotations

import os
from pathlib import Path


def processes_of(directory: Path) -> dict[int, str]:
    """Running processes that name the directory in their command or environment."""
    wanted = os.fsencode(directory)
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            texts = command + b"\0" + (entry / "environ").read_bytes()
        except OSError:
            continue  # it has just ended, or is another user's
        if wanted in texts:
            found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found
