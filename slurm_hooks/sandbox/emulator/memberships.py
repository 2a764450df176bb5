"""Members of groups: how they join, and what a group does when one of its VMs is gone."""

from __future__ import annotations

from collections.abc import Iterable

from slurm_hooks.sandbox.emulator import instances
from slurm_hooks.sandbox.emulator.problems import ErrorEntry
from slurm_hooks.sandbox.emulator.records import (
    LEAVING,
    Group,
    GroupState,
    Instance,
    Member,
    MemberAction,
    MemberError,
    ResizeRequest,
)
from slurm_hooks.sandbox.emulator.world import World

MAX_MEMBERS = 1000
_KEPT_ERRORS = 100


def join(group: Group, names: Iterable[str], request: ResizeRequest | None = None) -> list[Member]:
    """Add members without VMs."""
    joined = [Member(name, group.template, request=request) for name in names]
    for member in joined:
        group.members[member.name] = member
    return joined


def leave(group: Group, member: Member) -> None:
    """Take a member out."""
    if group.members.get(member.name) is member:
        del group.members[member.name]


def delete_member(world: World, group: Group, member: Member) -> None:
    """Delete a member with its VM."""
    if member.action in LEAVING:
        return
    if member.instance is None:
        leave(group, member)
        return
    member.action = MemberAction.DELETING
    instances.delete(world, member.instance)


def automatic_names(world: World, group: Group, count: int) -> list[str]:
    """New names `BASE-xxxx`, none of them in use."""
    names: list[str] = []
    while len(names) < count:
        name = f"{group.base_instance_name}-{world.identifiers.suffix()}"
        if name not in names and not name_in_use(world, group, name):
            names.append(name)
    return names


def name_in_use(world: World, group: Group, name: str) -> bool:
    """Whether a member or a VM that the group could meet has that name, also one on its way out."""
    return name in group.members or any((zone, name) in world.instances for zone in group.zones)


def note_error(world: World, group: Group, member: Member, entry: ErrorEntry) -> None:
    """Note a failed attempt of a member, once per kind of error."""
    if member.last_error != entry:
        error = MemberError(entry, member.name, member.action, member.template, world.now)
        group.errors = [*group.errors[-_KEPT_ERRORS:], error]
    member.last_error = entry


def on_gone(world: World, instance: Instance) -> None:
    """React to a VM that is gone: have it recreated, or let its member leave.

    A Flex-start VM is never recreated. That a VM which went by itself lowers the target size of
    a group without repairs is our reading of the documentation; with `keeps_lost_members` the
    group keeps its size and the member, and does nothing about it.
    """
    group = instance.group
    member = group.members.get(instance.name) if group else None
    if group is None or member is None or member.instance is not instance:
        return
    member.instance = None
    is_kept = member.action not in LEAVING and group.replaces(member)
    is_recreated = member.action is MemberAction.RECREATING and group.state is GroupState.READY
    if is_kept or is_recreated:
        member.action = MemberAction.RECREATING
        member.template = group.template
    elif _is_left_as_it_is(world, member):
        member.action = MemberAction.NONE
    else:
        leave(group, member)


def _is_left_as_it_is(world: World, member: Member) -> bool:
    """Whether a member of a group without repairs stays when its VM went by itself."""
    keeps = world.behaviour.keeps_lost_members and not member.template.is_flex_start
    return keeps and member.action not in LEAVING
