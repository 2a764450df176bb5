"""Puts rendered texts into a directory without losing anybody's work.

Looks at every file first and writes none if one is somebody else's; then replaces each by a
rename, so that slurmctld never reads half a file.
"""

from __future__ import annotations

import contextlib
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
    states = look_at_files(directory, texts, force)
    for name, state in states.items():
        if state is FileState.WRITTEN:
            replace_file(directory / name, texts[name])
        elif state is FileState.REMOVED:
            (directory / name).unlink(missing_ok=True)
    return states


def look_at_files(directory: Path, texts: dict[str, str], force: bool) -> dict[str, FileState]:
    """What `write_files` would do. Raises ForeignFiles (unless forced) and OSError."""
    present = {name: _read(directory / name) for name in texts}
    foreign = tuple(
        name
        for name, content in present.items()
        if content is not None and content != texts[name].encode() and not _is_ours(content)
    )
    if foreign and not force:
        raise ForeignFiles(foreign)
    states = {
        name: FileState.UNCHANGED if present[name] == text.encode() else FileState.WRITTEN
        for name, text in texts.items()
    }
    for path in _old_scripts(directory, texts):
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


def replace_file(path: Path, text: str) -> None:
    """Put a text in the place of a file, whole or not at all; its owner stays. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(FILE_MODE)
        _keep_owner(path, Path(temporary))
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _keep_owner(path: Path, replacement: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        before, now = path.stat(), replacement.stat()
        if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
            os.chown(replacement, before.st_uid, before.st_gid)
