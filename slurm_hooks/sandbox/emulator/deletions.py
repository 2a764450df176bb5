"""The deletion of a group with all that is in it.

Requests that wait end CANCELLED at once. If VMs are being made for a request, the deletion waits
until that request has ended. The group stays listed until its last VM is gone.
"""

from __future__ import annotations

from datetime import timedelta

from slurm_hooks.sandbox.emulator import memberships, operations, request_states
from slurm_hooks.sandbox.emulator.operations import Call, Draft
from slurm_hooks.sandbox.emulator.problems import not_ready
from slurm_hooks.sandbox.emulator.records import Group, GroupState, Operation
from slurm_hooks.sandbox.emulator.world import World


def begin(world: World, call: Call, group: Group) -> Operation:
    """Begin to delete a group. Raises ApiError 400 while another operation holds it."""
    if group.state is not GroupState.READY:
        raise not_ready(world.path(group.path))
    draft = Draft(group.scope, "compute.instanceGroupManagers.delete", group.path, group.group_id)
    if world.next_operation_failure:
        return operations.begin(world, call, draft)
    operation = operations.open_ended(world, call, draft)
    group.state = GroupState.DELETING
    group.deletion = operation
    seconds = world.latency.group_delete_seconds
    group.deletion_due_utc = world.now + timedelta(seconds=seconds)
    world.after(seconds, lambda: proceed(world, group))
    for request in list(group.requests.values()):
        if request.state.is_active and not request.granted:
            request_states.cancel(world, request)
    proceed(world, group)
    return operation


def proceed(world: World, group: Group) -> None:
    """Take the next step of a group's deletion, if it is being deleted and one is possible."""
    if group.deletion is None or any(
        request.state.is_active for request in group.requests.values()
    ):
        return
    for member in list(group.members.values()):
        memberships.delete_member(world, group, member)
    due = group.deletion_due_utc is None or world.now >= group.deletion_due_utc
    if group.members or not due:
        return
    if world.groups.get((group.scope, group.name)) is group:
        del world.groups[group.scope, group.name]
        operations.finish(world, group.deletion, None)
