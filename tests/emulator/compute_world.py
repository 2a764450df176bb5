"""What the contract of ComputeClient is tested on: the fake, or the emulator behind real HTTP.

A world is a client and the few things that only the service's side can do. Waiting is on a
condition and has a deadline: the fake gets there at once, the emulator by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.model import (
    GroupReference,
    GroupSpecification,
    Operation,
    RequestReference,
    RequestSpecification,
    Scope,
    ScopeKind,
    TemplateSpecification,
)
from slurm_hooks.compute.ownership import Mark, encode, labels_of

CLUSTER = "demo"
ZONE = "us-central1-a"
REGION = "us-central1"
ZONES = ("us-central1-a", "us-central1-b")
GLOBAL = Scope(ScopeKind.GLOBAL, "")
ZONAL = Scope(ScopeKind.ZONE, ZONE)
REGIONAL = Scope(ScopeKind.REGION, REGION)
MACHINE_TYPE = "a3-ultragpu-8g"
MARK = Mark(CLUSTER, "a3u", "g1")

Value = TypeVar("Value")


class World(Protocol):
    """A ComputeClient and the service's side of it."""

    @property
    def client(self) -> ComputeClient:
        """The client under test."""

    def have_no_capacity(self) -> None:
        """Requests, and VMs that are created by name, wait from now on."""

    def have_capacity(self) -> None:
        """There is capacity for all again."""

    def grant(self, reference: RequestReference) -> None:
        """There is capacity for this waiting request."""

    def fail(self, reference: RequestReference, code: str) -> None:
        """The service gives this waiting request up."""

    def eventually(self, read: Callable[[], Value], holds: Callable[[Value], bool]) -> Value:
        """Read until the condition holds; fail the test when it never does."""


def template_specification(name: str = "a3u-g1") -> TemplateSpecification:
    """A FLEX_START template with our labels."""
    return TemplateSpecification(
        name=name,
        machine_type=MACHINE_TYPE,
        provisioning_model="FLEX_START",
        source_image="projects/debian-cloud/global/images/family/debian-12",
        network="projects/demo/global/networks/default",
        subnetwork="projects/demo/regions/us-central1/subnetworks/default",
        run_duration_seconds=3600,
        boot_disk_type="hyperdisk-balanced",
        accelerator_count=8,
        labels=tuple(labels_of(MARK).items()),
    )


def group_reference(scope: Scope, name: str = "demo-a3u-g1") -> GroupReference:
    """The group that the tests use."""
    return GroupReference(scope, name)


def request_reference(scope: Scope, name: str) -> RequestReference:
    """A request in that group."""
    return RequestReference(group_reference(scope), name)


def request_specification(
    reference: RequestReference, *names: str, description: str = encode(MARK)
) -> RequestSpecification:
    """A request for an hour of these VMs, marked as ours."""
    return RequestSpecification(reference, names, description, run_duration_seconds=3600)


def finish(world: World, operation: Operation) -> Operation:
    """The operation as it ends."""
    return world.eventually(lambda: world.client.get_operation(operation), lambda now: now.done)


def make_template(world: World) -> None:
    """Insert the template and wait for it."""
    start = world.client.insert_template(GLOBAL, template_specification(), "template")
    assert finish(world, start).error is None


def make_group(world: World, scope: Scope) -> GroupReference:
    """Insert template and group and wait for both."""
    make_template(world)
    reference = group_reference(scope)
    specification = GroupSpecification(reference, "a3u-g1", encode(MARK), ZONES)
    assert finish(world, world.client.insert_group(specification, "group")).error is None
    return reference
