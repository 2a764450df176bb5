"""A real client before a server that answers what a test tells it to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.retry import RetryPolicy
from tests.fakes.canned_server import CannedServer, canned_server

QUICK = RetryPolicy(
    request_timeout_seconds=5.0,
    attempts=3,
    total_seconds=10.0,
    transient_pause_seconds=0.001,
    longest_pause_seconds=0.002,
    rate_pause_seconds=0.003,
)


@pytest.fixture
def server() -> Iterator[CannedServer]:
    """A server on a free port."""
    with canned_server() as running:
        yield running


@pytest.fixture
def client(server: CannedServer) -> GoogleComputeClient:
    """The real client, with pauses of milliseconds."""
    return GoogleComputeClient("demo", server.url, "anonymous", QUICK)
