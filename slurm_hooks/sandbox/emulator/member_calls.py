"""Calls on members of a group: create, delete, recreate and abandon by name.

A member with a VM is named by its URL, one without by its bare name, never mixed in one call.
"""

from __future__ import annotations

from collections.abc import Callable

from slurm_hooks.sandbox.emulator import instances, memberships, operations, waiting
from slurm_hooks.sandbox.emulator.operations import Call, Draft
from slurm_hooks.sandbox.emulator.problems import (
    Findings,
    OperationFailure,
    failure,
    invalid_field,
    required,
)
from slurm_hooks.sandbox.emulator.records import (
    LEAVING,
    Group,
    Json,
    Member,
    MemberAction,
    Operation,
)
from slurm_hooks.sandbox.emulator.resource_names import NAME, check_name, parse_reference
from slurm_hooks.sandbox.emulator.world import World

_KIND = "compute.instanceGroupManagers"
_MAX_INSTANCES = 1000
Effect = Callable[[Member], None]


def create_instances(world: World, call: Call, group: Group, body: Json) -> Operation:
    """Begin to add members with the given names. Raises ApiError 400."""
    items = body.get("instances", [])
    if not items:
        raise required("resource.instances")
    findings = Findings()
    names = [item.get("name", "") for item in items]
    for index, name in enumerate(names):
        check_name(name, f"resource.instances[{index}].name", findings)
    if len(set(names)) != len(names):
        findings.add("resource.instances", "", "A name is given twice.")
    findings.check()

    def accept() -> OperationFailure | None:
        policy = group.body["updatePolicy"]
        if policy["type"] == "PROACTIVE" and policy["replacementMethod"] == "SUBSTITUTE":
            text = "createInstances needs OPPORTUNISTIC updates or replacementMethod RECREATE."
            return failure("CONDITION_NOT_MET", text)
        for name in names:
            if memberships.name_in_use(world, group, name):
                return failure("ALREADY_EXISTS", f"The instance '{name}' already exists")
        if len(group.members) + len(names) > memberships.MAX_MEMBERS:
            return failure("LIMIT_EXCEEDED", "Exceeded limit 'MAX_INSTANCES_IN_INSTANCE_GROUP'.")
        memberships.join(group, names)
        waiting.start_round(world)
        return None

    draft = Draft(group.scope, f"{_KIND}.createInstances", group.path, group.group_id)
    return operations.begin(world, call, draft, accept)


def delete_instances(world: World, call: Call, group: Group, body: Json) -> Operation:
    """Begin to delete members with their VMs; the target size goes down. Raises ApiError 400."""

    def effect(member: Member) -> None:
        memberships.delete_member(world, group, member)

    return _on_members(world, call, group, body, "deleteInstances", effect)


def recreate_instances(world: World, call: Call, group: Group, body: Json) -> Operation:
    """Begin to replace members' VMs under the same names. Raises ApiError 400 for Flex-start."""
    if group.template.is_flex_start:
        raise invalid_field("resource.instances", "", "Flex-start VMs cannot be recreated.")

    def effect(member: Member) -> None:
        if member.instance is not None:
            member.action = MemberAction.RECREATING
            instances.delete(world, member.instance)

    return _on_members(world, call, group, body, "recreateInstances", effect)


def abandon_instances(world: World, call: Call, group: Group, body: Json) -> Operation:
    """Begin to let VMs leave the group and live on. Raises ApiError 400."""

    def effect(member: Member) -> None:
        if member.instance is not None:
            member.instance.group = None
        memberships.leave(group, member)

    return _on_members(world, call, group, body, "abandonInstances", effect)


def _on_members(
    world: World, call: Call, group: Group, body: Json, method: str, effect: Effect
) -> Operation:
    entries = body.get("instances", [])
    if not entries:
        raise required("resource.instances")
    if len(entries) > _MAX_INSTANCES:
        raise invalid_field("resource.instances", len(entries), "At most 1000 are allowed.")
    if len({"/" in entry for entry in entries}) > 1:
        raise invalid_field("resource.instances", "", "URLs and names cannot be mixed.")
    skips = bool(body.get("skipInstancesOnValidationError", False))

    def accept() -> OperationFailure | None:
        chosen = []
        for entry in entries:
            if not _is_well_formed(entry, group):
                text = f"Invalid value for field 'instances': '{entry}'. The URL is malformed."
                return failure("INVALID_USAGE", text)
            member = _eligible(group, entry)
            if member is not None:
                chosen.append(member)
            elif not skips:
                text = f"The instance '{entry}' is not a member that {method} can work on."
                return failure("INVALID_USAGE", text)
        for member in chosen:
            effect(member)
        return None

    draft = Draft(group.scope, f"{_KIND}.{method}", group.path, group.group_id)
    return operations.begin(world, call, draft, accept)


def _is_well_formed(entry: str, group: Group) -> bool:
    if "/" not in entry:
        return NAME.fullmatch(entry) is not None
    reference = parse_reference(entry, "instances")
    return reference is not None and reference.scope.name in group.zones


def _eligible(group: Group, entry: str) -> Member | None:
    """The member that an entry names, if it can be worked on.

    Not: one on its way out, one of a request that has not ended, a member with a VM by its bare
    name, and one without a VM by URL.
    """
    reference = parse_reference(entry, "instances")
    member = group.members.get(reference.name if reference else entry)
    if member is None or member.action in LEAVING:
        return None
    if member.request is not None and member.request.state.is_active:
        return None
    if (member.instance is not None) != (reference is not None):
        return None
    if member.instance and reference and member.instance.zone != reference.scope.name:
        return None
    return member
