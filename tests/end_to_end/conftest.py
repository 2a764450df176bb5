"""Boxes for end-to-end tests: made on demand, and gone after the test whatever happened in it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.box.layout import Layout
from tests.end_to_end.fleet import AT_ONCE, Fleet, example_document, short_times, write_cluster
from tests.end_to_end.leftovers import processes_of

_PROGRAMS = ("munged", "slurmctld", "slurmd", "scontrol")

FAST_LATENCY = {
    "operationSeconds": 0.1,
    "groupInsertSeconds": 0.3,
    "requestAcceptSeconds": 0.1,
    "capacityCheckSeconds": 0.5,
    "provisioningSeconds": 0.1,
    "stagingSeconds": 0.2,
    "stoppingSeconds": 0.5,
    "groupDeleteSeconds": 0.3,
}
"""The emulator's latencies where a test is not about them."""


@contextmanager
def place_for_a_box() -> Iterator[Path]:
    """A directory for a box, short enough for sockets; nothing of the box survives the block."""
    path = ":".join(["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/bin"])
    missing = [name for name in _PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    parent = Path(tempfile.mkdtemp(prefix="box-", dir="/tmp"))
    directory = parent / "b"
    try:
        yield directory
    finally:
        Box(Layout(directory)).stop()
        shutil.rmtree(parent)
    assert processes_of(directory) == {}


@contextmanager
def fleet_without_capacity(path: Path, nodes: int) -> Iterator[Fleet]:
    """A fleet of one dynamic pool whose requests wait until a test says otherwise.

    `path` is where its cluster file is written.
    """
    write_cluster(path, static=0, nodes=nodes, policy=AT_ONCE)
    options = replace(short_times(FAST_LATENCY), capacity=0)
    with (
        place_for_a_box() as directory,
        Box.start(directory, cluster_file=path, options=options) as box,
    ):
        yield Fleet(box)


@pytest.fixture
def box_directory() -> Iterator[Path]:
    """A place for the box of one test."""
    with place_for_a_box() as directory:
        yield directory


@pytest.fixture
def start_box(box_directory: Path, tmp_path: Path) -> Callable[..., Box]:
    """`Box.start` in the test's directory with fast latencies; one box a test."""

    def start(**options: Any) -> Box:
        file = tmp_path / "example.json"
        file.write_text(json.dumps(example_document()), encoding="utf-8")
        given = {"cluster_file": file, "latency": FAST_LATENCY, **options}
        return Box.start(box_directory, **given)

    return start


@pytest.fixture
def start_fleet(start_box: Callable[..., Box], tmp_path: Path) -> Callable[..., Fleet]:
    """A box with three nodes of which `static` always exist, under short times and a policy."""

    def start(static: int, **policy: int) -> Fleet:
        file = write_cluster(tmp_path / "cluster.json", static=static, nodes=3, policy=policy)
        return Fleet(start_box(cluster_file=file, options=short_times(FAST_LATENCY)))

    return start
