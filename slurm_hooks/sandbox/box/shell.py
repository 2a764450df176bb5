"""An interactive shell that says which cluster its Slurm commands talk to."""

from __future__ import annotations

import shlex
from pathlib import Path

from slurm_hooks.sandbox.box.box import Box


def write_startup_file(box: Box) -> Path:
    """Write the file that bash reads instead of ~/.bashrc, and return its path.

    The user's own file is read first, since it may set PATH and the prompt.
    """
    environment = box.environment
    settings = "\n".join(
        f"export {name}={shlex.quote(environment[name])}" for name in ("PATH", "SLURM_CONF")
    )
    path = box.layout.directory / "bashrc"
    path.write_text(
        f"[ -r ~/.bashrc ] && . ~/.bashrc\n{settings}\nPS1='(slurm sandbox) \\w \\$ '\n",
        encoding="utf-8",
    )
    return path
