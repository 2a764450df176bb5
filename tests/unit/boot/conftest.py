"""The VM of each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.boot.vms import Vm, good_vm


@pytest.fixture
def vm(tmp_path: Path) -> Iterator[Vm]:
    """A VM on which a boot goes well."""
    with good_vm(tmp_path) as vm:
        yield vm
