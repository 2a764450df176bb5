"""The states of a resize request and what each change does to the group.

    CREATING -> ACCEPTED -> SUCCEEDED | FAILED | CANCELLED,  CREATING -> FAILED | CANCELLED

Invariant: a request that ended FAILED or CANCELLED has no member and no VM that stays.
"""

from __future__ import annotations

from collections import Counter

from slurm_hooks.sandbox.emulator import memberships
from slurm_hooks.sandbox.emulator.problems import ErrorEntry
from slurm_hooks.sandbox.emulator.quotas import ACTIVE_RESIZE_REQUESTS
from slurm_hooks.sandbox.emulator.records import Instance, RequestState, ResizeRequest
from slurm_hooks.sandbox.emulator.world import World

ONE_ACTIVE = Counter({ACTIVE_RESIZE_REQUESTS: 1})


def succeed(world: World, request: ResizeRequest) -> None:
    """All VMs exist."""
    _settle(world, request, RequestState.SUCCEEDED)


def fail(world: World, request: ResizeRequest, error: ErrorEntry) -> None:
    """End an active request for good and roll back what it has made."""
    if request.state.is_active:
        request.error = error
        _settle(world, request, RequestState.FAILED)


def cancel(world: World, request: ResizeRequest) -> None:
    """End an active request by order and roll back what it has made."""
    _settle(world, request, RequestState.CANCELLED)


def on_gone(world: World, instance: Instance) -> None:
    """A VM that is lost before the set stands makes the whole request fail."""
    member = instance.group.members.get(instance.name) if instance.group else None
    request = member.request if member and member.instance is instance else None
    if request is not None and request.state.is_active:
        fail(world, request, ErrorEntry("INTERNAL_ERROR", "An instance was lost while created."))


def _roll_back(world: World, request: ResizeRequest) -> None:
    for member in request.members:
        if request.group.members.get(member.name) is member:
            memberships.delete_member(world, request.group, member)


def _settle(world: World, request: ResizeRequest, state: RequestState) -> None:
    if not request.state.is_active:
        return
    request.state = state
    request.last_attempt_error = None
    if state is not RequestState.SUCCEEDED:
        _roll_back(world, request)
    world.quotas.give_back(request.group.scope.region, ONE_ACTIVE)
    world.after(world.behaviour.final_request_retention_seconds, lambda: forget(request))
    for listener in world.settled_listeners:
        listener(request.group)


def forget(request: ResizeRequest) -> None:
    """Drop a request; its VMs stay."""
    if request.group.requests.get(request.name) is request:
        del request.group.requests[request.name]
