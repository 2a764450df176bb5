"""The mark of a cluster that is deleted: as long as it lies in the spool, no pass acts.

Whoever deletes must know that no pass is still at work. Passes look for the mark when they begin,
and write down that they have seen it: then the one before is over.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

MARK_FILE = "deleting"
OBEYED_FILE = "deleting.obeyed"


def mark(spool_directory: Path) -> None:
    """Let no further pass act. Raises OSError."""
    (spool_directory / OBEYED_FILE).unlink(missing_ok=True)
    (spool_directory / MARK_FILE).touch(mode=0o644)


def unmark(spool_directory: Path) -> None:
    """Let passes act again. Raises OSError."""
    (spool_directory / MARK_FILE).unlink(missing_ok=True)
    (spool_directory / OBEYED_FILE).unlink(missing_ok=True)


def is_marked(spool_directory: Path) -> bool:
    """Whether the cluster is being deleted, or was."""
    return (spool_directory / MARK_FILE).exists()


def is_obeyed(spool_directory: Path) -> bool:
    """Whether a pass has begun since the mark was set, so that none acts any more."""
    return (spool_directory / OBEYED_FILE).exists()


def obey(spool_directory: Path) -> bool:
    """Whether the pass that begins must not act; for the one who runs passes alone."""
    if not is_marked(spool_directory):
        return False
    with contextlib.suppress(OSError):
        (spool_directory / OBEYED_FILE).touch(mode=0o644)
    return True
