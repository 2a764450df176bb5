"""The conditions that hold, as the daemon last told them: a file of the spool for whoever asks.

Nothing is decided by it, and one that cannot be read or written tells nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_NAME = "conditions.json"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: its kind, what it means in words, what it is about, and more in words."""

    kind: str
    text: str
    subject: str
    detail: str = ""


class ConditionsFile:
    """The conditions of one cluster."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, conditions: Iterable[Condition]) -> None:
        """Replace what the file says."""
        text = json.dumps([asdict(condition) for condition in conditions])
        fresh = self._path.with_name(f".{self._path.name}.new")
        with contextlib.suppress(OSError):
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(self._path)

    def read(self) -> tuple[Condition, ...]:
        """What the file says; nothing where it cannot be read."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            return tuple(Condition(**members) for members in found)
        except (OSError, ValueError, TypeError):
            return ()
