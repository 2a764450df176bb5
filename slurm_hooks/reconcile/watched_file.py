"""A file that is replaced as a whole, by a rename, and whether it was since it was read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What tells one content of a file from the next without reading it."""

    inode: int
    mtime_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class WatchedFile:
    """A file as it was when looked at; without an identity it was not there."""

    path: Path
    identity: FileIdentity | None

    @classmethod
    def look_at(cls, path: Path) -> Self:
        """The file as it is now. Look before reading: what comes in between is seen later then."""
        try:
            status = path.stat()
        except OSError:
            return cls(path, None)
        return cls(path, FileIdentity(status.st_ino, status.st_mtime_ns, status.st_size))

    def is_replaced(self) -> bool:
        """Whether another file, or another content, stands there since."""
        return type(self).look_at(self.path) != self
