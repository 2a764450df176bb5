"""Who gets capacity when: rounds over all that waits, in order of creation.

A round tries each waiting resize request (all of its VMs or none), then each single member. One
that does not fit is passed over; a later one that fits is served. Rounds repeat while anything
waits.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.sandbox.emulator import (
    instances,
    machine_types,
    memberships,
    quotas,
    request_states,
)
from slurm_hooks.sandbox.emulator.durations import REQUEST_SECONDS, SCHEDULING_SECONDS, seconds_of
from slurm_hooks.sandbox.emulator.instances import VmRequest
from slurm_hooks.sandbox.emulator.problems import ErrorEntry, Findings, quota_message
from slurm_hooks.sandbox.emulator.records import (
    Group,
    GroupState,
    Member,
    MemberAction,
    RequestState,
    ResizeRequest,
    Template,
)
from slurm_hooks.sandbox.emulator.world import World

_MAKING = (MemberAction.CREATING, MemberAction.RECREATING)


def start_round(world: World) -> None:
    """Try everything that waits now, and again later as long as something waits."""
    for request in _waiting_requests(world):
        attempt(world, request)
    for group, member in _waiting_members(world):
        _attempt_member(world, group, member)
    if not world.round_is_scheduled and _anything_waits(world):
        world.round_is_scheduled = True
        world.after(world.latency.capacity_check_seconds, lambda: _next_round(world))


def request_round(world: World) -> None:
    """Have one round at this moment, however often it is asked for."""
    if not world.round_is_due:
        world.round_is_due = True
        world.after(0, lambda: _due_round(world))


def _due_round(world: World) -> None:
    world.round_is_due = False
    start_round(world)


def _next_round(world: World) -> None:
    world.round_is_scheduled = False
    start_round(world)


def _anything_waits(world: World) -> bool:
    return bool(_waiting_requests(world)) or any(True for _ in _waiting_members(world))


def _waiting_requests(world: World) -> list[ResizeRequest]:
    waiting = [
        request
        for group in world.groups.values()
        for request in group.requests.values()
        if request.state is RequestState.ACCEPTED and not request.granted
    ]
    return sorted(waiting, key=lambda request: request.created_utc)


def _waiting_members(world: World) -> Iterator[tuple[Group, Member]]:
    for group in list(world.groups.values()):
        if group.state is not GroupState.READY:
            continue
        for member in list(group.members.values()):
            if member.request is not None and member.action is not MemberAction.RECREATING:
                continue
            pending = member.instance is None or member.instance.status == "PENDING"
            if member.action in _MAKING and pending:
                yield group, member


def attempt(world: World, request: ResizeRequest) -> None:
    """Grant a waiting request if quota and capacity allow all of its VMs, else say why not."""
    age_seconds = (world.now - request.created_utc).total_seconds()
    if age_seconds > world.behaviour.request_lifetime_seconds:
        text = "Resize request could not provision queued instances in the allocated time."
        request_states.fail(world, request, ErrorEntry("LIMIT_EXCEEDED", text))
        return
    count = len(request.members)
    request.last_attempt_error = _quota_error(world, request.group, count)
    if request.last_attempt_error:
        return
    zone = _zone_with_room(world, request.group, request.group.template, count)
    if zone is None:
        request.last_attempt_error = _stockout(request.group.template, request.group.zones)
        return
    grant(world, request, zone)


def grant(world: World, request: ResizeRequest, zone: str) -> None:
    """Make all VMs of a request. It is SUCCEEDED once they all exist."""
    taken = [member.name for member in request.members if (zone, member.name) in world.instances]
    if taken:
        text = f"The resource '{world.path(f'zones/{zone}/instances/{taken[0]}')}' already exists"
        request_states.fail(world, request, ErrorEntry("ALREADY_EXISTS", text))
        return
    request.granted = True
    request.last_attempt_error = None
    for member in request.members:
        _make(world, request.group, member, zone, _run_seconds(request))
    world.after(world.latency.provisioning_seconds, lambda: request_states.succeed(world, request))


def _run_seconds(request: ResizeRequest) -> int | None:
    if request.run_duration is not None:
        return seconds_of(request.run_duration, "", REQUEST_SECONDS, Findings())
    return run_seconds(request.group.template.scheduling)


def run_seconds(scheduling: dict[str, object]) -> int | None:
    """How long a VM of that scheduling may run; None without a limit."""
    duration = scheduling.get("maxRunDuration")
    if not isinstance(duration, dict):
        return None
    return seconds_of(duration, "", SCHEDULING_SECONDS, Findings())


def _make(world: World, group: Group, member: Member, zone: str, seconds: int | None) -> None:
    wanted = VmRequest(
        zone, member.name, member.template.properties, seconds, group, member.template
    )
    member.instance = instances.create(world, wanted)
    member.last_error = None


def _attempt_member(world: World, group: Group, member: Member) -> None:
    error = _quota_error(world, group, 1)
    zone = None if error else _zone_with_room(world, group, member.template, 1)
    if zone is None:
        memberships.note_error(
            world, group, member, error or _stockout(member.template, group.zones)
        )
        _show_pending(world, group, member)
        return
    if member.instance is not None:
        member.instance.zone = _moved(world, member, zone)
        member.last_error = None
        instances.provision(world, member.instance)
        return
    _make(world, group, member, zone, run_seconds(member.template.scheduling))


def _moved(world: World, member: Member, zone: str) -> str:
    instance = member.instance
    if instance is not None and instance.zone != zone:
        del world.instances[instance.zone, instance.name]
        world.instances[zone, instance.name] = instance
    return zone


def _show_pending(world: World, group: Group, member: Member) -> None:
    """A Flex-start member without a resize request waits as a VM in PENDING."""
    if member.instance is None and member.template.is_flex_start:
        seconds = run_seconds(member.template.scheduling)
        properties, template = member.template.properties, member.template
        wanted = VmRequest(group.zones[0], member.name, properties, seconds, group, template)
        member.instance = instances.create(world, wanted, waits=True)


def _quota_error(world: World, group: Group, count: int) -> ErrorEntry | None:
    needs = quotas.needs_of(group.template.properties, count)
    exceeded = world.quotas.exceeded_by(group.scope.region, needs)
    if exceeded is None:
        return None
    text = quota_message(exceeded.metric, exceeded.limit, exceeded.region)
    return ErrorEntry("QUOTA_EXCEEDED", text)


def _zone_with_room(world: World, group: Group, template: Template, count: int) -> str | None:
    machine = template.properties["machineType"]
    for zone in group.zones:
        if world.capacity.has_room(zone, machine, count):
            return zone
    return None


def _stockout(template: Template, zones: tuple[str, ...]) -> ErrorEntry:
    """The error of a request that waits for capacity, with the recorded kind of detail."""
    machine = machine_types.find(template.properties["machineType"])
    gpus = f"{machine.accelerator_type}:{machine.accelerator_count}" if machine else ""
    detail = {
        "errorInfo": {
            "reason": "resource_availability",
            "domain": "compute.googleapis.com",
            "metadatas": {
                "vmType": template.properties["machineType"],
                "attachment": gpus if machine and machine.accelerator_type else "",
                "zone": zones[0] if len(zones) == 1 else "",
                "zonesAvailable": "",
            },
        }
    }
    text = "There are currently not enough resources available to fulfill the request."
    return ErrorEntry("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", text, (detail,))
