"""The recorded data that tests read: the folder `shared` beside the repository.

It is not part of the repository, so tests that need it are skipped where it is absent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared_file(relative: str) -> Path:
    """A file below the shared folder; skips the test that asks when it is not there."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"needs {path}, which is not part of the repository")
    return path
