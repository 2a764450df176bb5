"""The worlds that the contract of ComputeClient is tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import ErrorDetail, RequestReference
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.compute_world import MACHINE_TYPE, ZONES, Value, World
from tests.emulator.running import emulator_in_thread
from tests.fakes.compute import FakeCompute
from tests.waiting import eventually


class FakeWorld:
    """The fake: nothing moves by itself, so waiting means to move it."""

    def __init__(self) -> None:
        self._fake = FakeCompute()

    @property
    def client(self) -> ComputeClient:
        """See World."""
        return self._fake

    def have_no_capacity(self) -> None:
        """The fake has none for requests unless told."""
        self._fake.state.refusal = ErrorDetail("ZONE_RESOURCE_POOL_EXHAUSTED")

    def have_capacity(self) -> None:
        """See World."""
        self._fake.state.refusal = None

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


class EmulatorWorld:
    """The real client before an emulator."""

    def __init__(self, control: EmulatorControl) -> None:
        self._control = control
        self._client = GoogleComputeClient("demo", control.url, "anonymous")

    @property
    def client(self) -> ComputeClient:
        """See World."""
        return self._client

    def have_no_capacity(self) -> None:
        """See World."""
        for zone in ZONES:
            self._control.set_capacity(zone, MACHINE_TYPE, 0)

    def have_capacity(self) -> None:
        """See World."""
        for zone in ZONES:
            self._control.set_capacity(zone, MACHINE_TYPE, None)

    def grant(self, reference: RequestReference) -> None:
        """See World."""
        self._control.grant_resize_request(reference.name)

    def fail(self, reference: RequestReference, code: str) -> None:
        """See World."""
        self._control.fail_resize_request(reference.name, code)

    def eventually(self, read: Callable[[], Value], holds: Callable[[Value], bool]) -> Value:
        """See World."""
        return eventually(read, holds)


@pytest.fixture
def emulator() -> Iterator[EmulatorControl]:
    """An emulator with an empty project."""
    with emulator_in_thread() as control:
        yield control


@pytest.fixture(params=["fake", pytest.param("emulator", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest) -> World:
    """A client with an empty project behind it."""
    if request.param == "fake":
        return FakeWorld()
    return EmulatorWorld(request.getfixturevalue("emulator"))
