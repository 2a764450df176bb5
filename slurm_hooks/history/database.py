"""A small SQLite file in the spool that outlives kill -9 at any moment.

Each call opens the file anew: it may be moved away, or put back, at any time. Who cannot read it
knows nothing, which is never the same as nothing being in it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BUSY_SECONDS = 2.0
"""How long a call waits while another process writes: commands of a person do."""


class HistoryUnavailable(Exception):
    """The history cannot be read or written; the text says which file and why."""


@dataclass(frozen=True, slots=True)
class Database:
    """One file with one schema. `schema` creates what is not there yet."""

    path: Path
    schema: str
    version: int

    @contextlib.contextmanager
    def connection(self, *, create: bool) -> Iterator[sqlite3.Connection]:
        """An open file; who writes uses it as a context, too. Raises HistoryUnavailable."""
        try:
            if create:
                self._create()
            with contextlib.closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as connection:
                self._prepare(connection)
                yield connection
        except (sqlite3.Error, OSError, ValueError) as error:
            raise HistoryUnavailable(f"{self.path}: {error}") from error

    def _create(self) -> None:
        """SQLite would make a file that the group may read, and root one that the daemon, whose
        the directory is, may not."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.path, flags, 0o600)
        try:
            if os.geteuid() == 0:
                owner = self.path.parent.stat()
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
        finally:
            os.close(descriptor)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = FULL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == self.version:
            return
        if version != 0:
            raise HistoryUnavailable(
                f"{self.path}: written by another version of slurm-hooks (schema {version})"
            )
        connection.executescript(
            f"BEGIN IMMEDIATE; {self.schema} PRAGMA user_version = {self.version}; COMMIT;"
        )
