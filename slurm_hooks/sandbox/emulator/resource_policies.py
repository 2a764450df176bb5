"""Resource policies: insert and delete. A workload policy may place the VMs of a group."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slurm_hooks.sandbox.emulator import operations
from slurm_hooks.sandbox.emulator.operations import Call, Draft
from slurm_hooks.sandbox.emulator.places import Scope
from slurm_hooks.sandbox.emulator.problems import (
    Findings,
    OperationFailure,
    already_exists,
    exists_already,
    failure,
    not_found,
    required,
)
from slurm_hooks.sandbox.emulator.records import Json, Operation
from slurm_hooks.sandbox.emulator.resource_names import check_name, parse_reference
from slurm_hooks.sandbox.emulator.world import World

_KINDS = (
    "workloadPolicy",
    "groupPlacementPolicy",
    "snapshotSchedulePolicy",
    "instanceSchedulePolicy",
    "diskConsistencyGroupPolicy",
)


@dataclass(slots=True, eq=False)
class ResourcePolicy:
    """A resource policy; `body` is as it was sent."""

    scope: Scope
    name: str
    policy_id: int
    created_utc: datetime
    body: Json

    @property
    def path(self) -> str:
        """Its path below the project."""
        return f"{self.scope}/resourcePolicies/{self.name}"


def insert(world: World, call: Call, scope: Scope, body: Json) -> Operation:
    """Begin the creation of a policy. Raises ApiError 400 or 409."""
    if "name" not in body:
        raise required("resource.name")
    findings = Findings()
    check_name(body["name"], "resource.name", findings)
    if sum(kind in body for kind in _KINDS) != 1:
        findings.add("resource", "", f"Exactly one of {', '.join(_KINDS)} must be given.")
    findings.check()
    policy = ResourcePolicy(scope, body["name"], world.identifiers.unique_id(), world.now, body)
    if (scope, policy.name) in world.policies:
        raise already_exists(world.path(policy.path))

    def accept() -> OperationFailure | None:
        if (scope, policy.name) in world.policies:
            return exists_already(world.path(policy.path))
        world.policies[scope, policy.name] = policy
        return None

    draft = Draft(scope, "compute.resourcePolicies.insert", policy.path, policy.policy_id)
    return operations.begin(world, call, draft, accept)


def find(world: World, scope: Scope, name: str) -> ResourcePolicy:
    """A policy by name. Raises ApiError 404."""
    policy = world.policies.get((scope, name))
    if policy is None:
        raise not_found(world.path(f"{scope}/resourcePolicies/{name}"))
    return policy


def delete(world: World, call: Call, scope: Scope, name: str) -> Operation:
    """Begin to delete a policy; the operation fails if a group uses it. Raises ApiError 404."""
    policy = find(world, scope, name)

    def complete() -> OperationFailure | None:
        for group in world.groups.values():
            link = group.body.get("resourcePolicies", {}).get("workloadPolicy", "")
            reference = parse_reference(link, "resourcePolicies")
            if reference and (reference.scope, reference.name) == (scope, name):
                text = f"The resource policy is used by '{world.path(group.path)}'"
                return failure("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", text)
        world.policies.pop((scope, name), None)
        return None

    draft = Draft(scope, "compute.resourcePolicies.delete", policy.path, policy.policy_id)
    return operations.begin(world, call, draft, None, complete)
