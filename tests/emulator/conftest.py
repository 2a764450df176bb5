"""The worlds that the contract of ComputeClient is tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.model import RequestReference
from tests.emulator.compute_world import Value, World
from tests.fakes.compute import FakeCompute


class FakeWorld:
    """The fake: nothing moves by itself, so waiting means to move it."""

    def __init__(self) -> None:
        self._fake = FakeCompute()

    @property
    def client(self) -> ComputeClient:
        """See World."""
        return self._fake

    def have_no_capacity(self) -> None:
        """The fake never has capacity unless told."""

    def grant(self, reference: RequestReference) -> None:
        """See World."""
        self._fake.state.grant(reference)

    def fail(self, reference: RequestReference, code: str) -> None:
        """See World."""
        self._fake.state.fail(reference, code)

    def eventually(self, read: Callable[[], Value], holds: Callable[[Value], bool]) -> Value:
        """See World. Five steps bring any VM to its end."""
        for _ in range(5):
            value = read()
            if holds(value):
                return value
            self._fake.state.step()
        value = read()
        assert holds(value), f"still {value}"
        return value


@pytest.fixture(params=["fake"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A client with an empty project behind it."""
    yield FakeWorld()
