"""A project of the pure engine with a clock that only tests move: no HTTP, no processes."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_hooks.sandbox.emulator import groups, resize_requests, templates
from slurm_hooks.sandbox.emulator.engine import Engine
from slurm_hooks.sandbox.emulator.identifiers import Identifiers
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.places import (
    DEFAULT_ZONES,
    GLOBAL,
    Places,
    Scope,
    ScopeKind,
    zone_scope,
)
from slurm_hooks.sandbox.emulator.records import Group, Instance, Json, Operation, ResizeRequest
from slurm_hooks.sandbox.emulator.settings import Latency
from slurm_hooks.sandbox.emulator.world import World
from tests.flex_start import FLEX_START

ZONE = "us-central1-a"
ZONAL = zone_scope(ZONE)
REGIONAL = Scope(ScopeKind.REGION, "us-central1")
MACHINE_TYPE = "a3-ultragpu-8g"
START_UTC = datetime(2026, 1, 5, 17, 0, tzinfo=UTC)

TEMPLATE: Json = {
    "name": "t1",
    "properties": {
        "machineType": MACHINE_TYPE,
        **FLEX_START,
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {"sourceImage": "projects/demo/global/images/family/f"},
            }
        ],
        "networkInterfaces": [{"network": "global/networks/default"}],
        "labels": {"cluster": "demo"},
        "metadata": {"items": [{"key": "k", "value": "v"}]},
    },
}
STANDARD_TEMPLATE: Json = {
    "name": "standard",
    "properties": {
        **TEMPLATE["properties"],
        "machineType": "n2-standard-4",
        "scheduling": {"provisioningModel": "STANDARD"},
    },
}
ZONAL_GROUP: Json = {
    "name": "g1",
    "targetSize": 0,
    "versions": [{"instanceTemplate": "global/instanceTemplates/t1"}],
    "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
}
REGIONAL_GROUP: Json = {
    **ZONAL_GROUP,
    "distributionPolicy": {
        "targetShape": "ANY_SINGLE_ZONE",
        "zones": [{"zone": "zones/us-central1-a"}, {"zone": "zones/us-central1-b"}],
    },
    "updatePolicy": {"instanceRedistributionType": "NONE"},
}


def with_change(body: Json, path: str, value: Any) -> Json:
    """The body with the member at a dotted path replaced, or taken out for None."""
    changed = deepcopy(body)
    *parents, last = path.split(".")
    node = changed
    for parent in parents:
        node = node.setdefault(parent, {})
    if value is None:
        node.pop(last, None)
    else:
        node[last] = value
    return changed


class EmulatedProject:
    """The engine of one project, moved by `pass_time`."""

    def __init__(self, latency: Latency | None = None) -> None:
        identifiers = Identifiers("demo", 123456789012, random.Random(1))
        self.world = World(Places.of(DEFAULT_ZONES), identifiers, START_UTC, latency or Latency())
        self.engine = Engine(self.world)

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.engine.advance(self.world.now + timedelta(seconds=seconds))

    def pass_until(self, holds: Callable[[], bool]) -> None:
        """Let time pass in small steps until a condition holds."""
        for _ in range(10_000):
            if holds():
                return
            self.pass_time(0.1)
        raise AssertionError("the condition never holds")

    def finish(self, operation: Operation) -> Operation:
        """Let time pass until an operation is DONE."""
        self.pass_until(lambda: operation.end_time_utc is not None)
        return operation

    def add_template(self, body: Json | None = None, scope: Scope = GLOBAL) -> None:
        """Insert a template and wait for it."""
        self.finish(templates.insert(self.world, Call(), scope, deepcopy(body or TEMPLATE)))

    def add_group(self, body: Json | None = None, scope: Scope = ZONAL) -> Group:
        """Insert a group, with its template if that is missing, and wait for it."""
        wanted = deepcopy(body or ZONAL_GROUP)
        if (GLOBAL, "t1") not in self.world.templates:
            self.add_template()
        self.finish(groups.insert(self.world, Call(), scope, wanted))
        return self.world.groups[scope, wanted["name"]]

    def set_capacity(self, vms: int, machine_type: str = MACHINE_TYPE, zone: str = ZONE) -> None:
        """Set how many VMs a zone can hold."""
        self.world.capacity.set_limit(zone, machine_type, vms)

    def ask(
        self, group: Group, *names: str, request: str = "r1", body: Json | None = None
    ) -> ResizeRequest:
        """Insert a resize request for these VM names and wait for its operation."""
        wanted = body or {"name": request, "instances": [{"name": name} for name in names]}
        operation = self.finish(resize_requests.insert(self.world, Call(), group, wanted))
        assert operation.failure is None, operation.failure
        return group.requests[wanted["name"]]

    def instance(self, name: str, zone: str = ZONE) -> Instance:
        """A VM that must exist."""
        return self.world.instances[zone, name]

    def names(self) -> list[str]:
        """The names of all VMs."""
        return sorted(name for _, name in self.world.instances)
