"""Puts rendered texts into a directory without losing anybody's work.

Looks at every file first and writes none if one is somebody else's; then replaces each by a
rename, so that slurmctld never reads half a file.
"""

from __future__ import annotations

import enum
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from slurm_hooks.slurm.render import EPILOG_SCRIPTS, PROLOG_SCRIPTS
from slurm_hooks.slurm.render.lines import is_as_rendered

FILE_MODE = 0o644
"""slurm.conf and what it includes must be readable by all users of Slurm."""


class FileState(enum.StrEnum):
    """What became of a file."""

    WRITTEN = "written"
    REMOVED = "removed"
    UNCHANGED = "unchanged"


class ForeignFiles(Exception):
    """Files that render did not write, or that were edited since, stand in the way."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def write_files(directory: Path, texts: dict[str, str], force: bool) -> dict[str, FileState]:
    """Write texts by relative name. Raises ForeignFiles (unless forced) and OSError.

    A script that an earlier render wrote and this one does not is removed: nodes would run it on.
    """
    present = {name: _read(directory / name) for name in texts}
    foreign = tuple(
        name
        for name, content in present.items()
        if content is not None and content != texts[name].encode() and not _is_ours(content)
    )
    if foreign and not force:
        raise ForeignFiles(foreign)
    states = {}
    for name, text in texts.items():
        if present[name] == text.encode():
            states[name] = FileState.UNCHANGED
        else:
            _replace(directory / name, text)
            states[name] = FileState.WRITTEN
    for path in _old_scripts(directory, texts):
        path.unlink()
        states[str(path.relative_to(directory))] = FileState.REMOVED
    return states


def _old_scripts(directory: Path, texts: dict[str, str]) -> Iterator[Path]:
    for place in (PROLOG_SCRIPTS, EPILOG_SCRIPTS):
        for path in sorted((directory / place).glob("*.sh")):
            if f"{place}/{path.name}" not in texts and _is_ours(path.read_bytes()):
                yield path


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _is_ours(content: bytes) -> bool:
    return is_as_rendered(content.decode("utf-8", errors="replace"))


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(FILE_MODE)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
