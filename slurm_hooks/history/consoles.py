"""What replaced VMs had written to their serial consoles, kept for the operator, bounded."""

from __future__ import annotations

from pathlib import Path

MOST_KEPT = 200
LARGEST_BYTES = 1024 * 1024


class ConsolesDirectory:
    """One file a VM, the latest ones; the oldest go when there are too many."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, node: str, instance_id: str, text: str) -> Path:
        """Keep the end of a console's text and return its file. Raises OSError."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / f"{node}-{instance_id}.txt"
        path.write_bytes(text.encode("utf-8", "replace")[-LARGEST_BYTES:])
        for old in self._oldest_first()[:-MOST_KEPT]:
            old.unlink(missing_ok=True)
        return path

    def _oldest_first(self) -> list[Path]:
        return sorted(self._directory.glob("*.txt"), key=lambda path: path.stat().st_mtime)
