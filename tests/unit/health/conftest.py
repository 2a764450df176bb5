"""The driver library, built once for a session, and a node of eight GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_hooks.health.driver.nvml import NvmlDriver
from slurm_hooks.sandbox.gpu.build import LIBRARY_NAME, build_driver_library
from tests.unit.health.node_roots import NodeRoot


@pytest.fixture(scope="session")
def driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built library; each node root copies it."""
    return build_driver_library(tmp_path_factory.mktemp("driver") / LIBRARY_NAME)


@pytest.fixture
def bare_node(tmp_path: Path, driver_library: Path) -> NodeRoot:
    """A node without GPUs and without a driver."""
    return NodeRoot(tmp_path / "node", driver_library)


@pytest.fixture
def node(bare_node: NodeRoot) -> NodeRoot:
    """A node of eight healthy GPUs."""
    return bare_node.with_gpus(8)


@pytest.fixture
def driver(node: NodeRoot) -> Iterator[NvmlDriver]:
    """The opened driver of `node`."""
    opened = node.driver()
    opened.open()
    yield opened
    opened.close()
