"""VMs from creation to removal.

    PENDING -> PROVISIONING -> STAGING -> RUNNING -> STOPPING -> gone
                                             |-> TERMINATED or REPAIRING (host error)

A VM that is STOPPING keeps its name and its capacity until its guest has stopped and the
stopping time has passed. What a group does about a VM that is gone is told by `gone_listeners`.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta

from slurm_hooks.sandbox.emulator import addresses, operations, quotas
from slurm_hooks.sandbox.emulator.operations import Draft
from slurm_hooks.sandbox.emulator.places import region_of, zone_scope
from slurm_hooks.sandbox.emulator.records import (
    LEAVING,
    Group,
    Instance,
    InstanceStatus,
    Json,
    MemberAction,
    Template,
)
from slurm_hooks.sandbox.emulator.schedule import Effect
from slurm_hooks.sandbox.emulator.world import World

_STOPPABLE = frozenset(InstanceStatus) - {InstanceStatus.STOPPING}


@dataclass(frozen=True, slots=True)
class VmRequest:
    """What a VM shall be. `properties` are those of an instance template."""

    zone: str
    name: str
    properties: Json
    run_duration_seconds: int | None = None
    group: Group | None = None
    template: Template | None = None


def create(world: World, wanted: VmRequest, waits: bool = False) -> Instance:
    """Make a VM. With `waits` it stays PENDING, without capacity, until `provision`."""
    properties = deepcopy(wanted.properties)
    if wanted.run_duration_seconds is not None:
        duration = {"seconds": str(wanted.run_duration_seconds)}
        properties.setdefault("scheduling", {})["maxRunDuration"] = duration
    instance = Instance(
        zone=wanted.zone,
        name=wanted.name,
        instance_id=world.identifiers.unique_id(),
        created_utc=world.now,
        properties=properties,
        network_ip=addresses.take(world),
        labels=dict(properties.get("labels", {})),
        metadata=_metadata(world, wanted),
        group=wanted.group,
        template=wanted.template,
        run_duration_seconds=wanted.run_duration_seconds,
        status=InstanceStatus.PENDING,
    )
    world.instances[instance.zone, instance.name] = instance
    if not waits:
        provision(world, instance)
    return instance


def _metadata(world: World, wanted: VmRequest) -> list[Json]:
    items = list(wanted.properties.get("metadata", {}).get("items", []))
    numbered = world.identifiers.numbered_path
    if wanted.template is not None:
        path = numbered(wanted.template.scope, "instanceTemplates", wanted.template.name)
        items.append({"key": "instance-template", "value": path})
    if wanted.group is not None:
        path = numbered(wanted.group.scope, "instanceGroupManagers", wanted.group.name)
        items.append({"key": "created-by", "value": path})
    return deepcopy(items)


def provision(world: World, instance: Instance) -> None:
    """Take capacity and quota for a PENDING VM and set it on its way to RUNNING."""
    world.capacity.take(instance.zone, instance.machine_type)
    world.quotas.take(region_of(instance.zone), quotas.needs_of(instance.properties))
    instance.status = InstanceStatus.PROVISIONING
    world.after(world.latency.provisioning_seconds, lambda: _stage(world, instance))


def _stage(world: World, instance: Instance) -> None:
    if instance.status is not InstanceStatus.PROVISIONING or instance.gone:
        return
    instance.status = InstanceStatus.STAGING
    boots = instance.boots
    world.after(world.latency.staging_seconds, lambda: _run(world, instance, boots))


def _run(world: World, instance: Instance, boots: int) -> None:
    starting = (InstanceStatus.STAGING, InstanceStatus.REPAIRING)
    if instance.status not in starting or instance.gone or instance.boots != boots:
        return
    instance.status = InstanceStatus.RUNNING
    instance.boots += 1
    instance.last_start_utc = world.now
    _settle_member(instance)
    _set_end_of_life(world, instance)
    world.guests.boot(instance)


def _settle_member(instance: Instance) -> None:
    member = instance.group.members.get(instance.name) if instance.group else None
    if member and member.instance is instance and member.action is not MemberAction.DELETING:
        member.action = MemberAction.NONE
        member.last_error = None


def _set_end_of_life(world: World, instance: Instance) -> None:
    if instance.run_duration_seconds is None:
        return
    instance.termination_time_utc = world.now + timedelta(seconds=instance.run_duration_seconds)
    boots = instance.boots
    delay = min(world.behaviour.expiry_delay_seconds, 30.0)

    def expire() -> None:
        if instance.boots == boots and not instance.gone:
            delete(world, instance)

    world.after(instance.run_duration_seconds + delay, expire)


def delete(world: World, instance: Instance) -> None:
    """Stop a VM in order and remove it. Does nothing if that is under way."""
    instance.is_to_go = True
    if instance.gone or instance.status not in _STOPPABLE:
        return
    if instance.status is InstanceStatus.PENDING:
        _remove(world, instance)
        return
    had_guest = instance.status is InstanceStatus.RUNNING
    instance.status = InstanceStatus.STOPPING
    instance.last_stop_utc = world.now
    _mark_member_leaving(world, instance)
    outstanding = {"guest", "time"}

    def settle(part: str) -> None:
        outstanding.discard(part)
        if not outstanding and not instance.gone:
            _remove(world, instance)

    world.after(world.latency.stopping_seconds, lambda: settle("time"))
    if had_guest:
        world.guests.shut_down(instance, lambda: settle("guest"))
    else:
        settle("guest")


def _mark_member_leaving(world: World, instance: Instance) -> None:
    """A VM that stops without its group's doing is deleted from it, or recreated by it, or its
    member is kept without a VM."""
    group = instance.group
    member = group.members.get(instance.name) if group else None
    if group is None or member is None or member.instance is not instance:
        return
    if member.action not in (*LEAVING, MemberAction.RECREATING):
        if group.replaces(member):
            member.action = MemberAction.RECREATING
        elif not world.behaviour.keeps_lost_members or member.template.is_flex_start:
            member.action = MemberAction.DELETING


def vanish(world: World, instance: Instance) -> None:
    """Remove a VM at once, whatever it does."""
    if instance.gone:
        return
    world.guests.power_off(instance)
    _remove(world, instance)


def _remove(world: World, instance: Instance) -> None:
    held = instance.status is not InstanceStatus.PENDING
    instance.gone = True
    del world.instances[instance.zone, instance.name]
    addresses.give_back(world, instance.network_ip)
    if held:
        world.capacity.give_back(instance.zone, instance.machine_type)
        world.quotas.give_back(region_of(instance.zone), quotas.needs_of(instance.properties))
    for listener in list(world.gone_listeners):
        listener(instance)


def host_error(world: World, instance: Instance) -> None:
    """The host fails: the VM is TERMINATED, or REPAIRING and RUNNING again if it may restart."""
    world.guests.power_off(instance)
    instance.last_stop_utc = world.now
    restarts = (
        bool(instance.scheduling.get("automaticRestart", True))
        and instance.provisioning_model == "STANDARD"
    )
    _note_event(world, instance, "hostError", "Instance terminated by Compute Engine.")
    if not restarts:
        instance.status = InstanceStatus.TERMINATED
        return
    instance.status = InstanceStatus.REPAIRING
    boots = instance.boots
    world.after(world.latency.staging_seconds, lambda: _run(world, instance, boots))


def move_to_another_host(world: World, instance: Instance, settled: Effect) -> None:
    """The VM stops in order, is REPAIRING, and runs again elsewhere; then `settled` is called."""
    instance.status = InstanceStatus.STOPPING
    instance.last_stop_utc = world.now

    def guest_ended() -> None:
        world.after(world.latency.stopping_seconds, repair)

    def repair() -> None:
        if instance.gone:
            return
        if instance.is_to_go:
            _remove(world, instance)
            return
        instance.status = InstanceStatus.REPAIRING
        instance.hosts += 1
        world.after(world.latency.staging_seconds, run_again)

    def run_again() -> None:
        if not instance.gone and instance.status is InstanceStatus.REPAIRING:
            _run(world, instance, instance.boots)
            settled()

    world.guests.shut_down(instance, guest_ended)


def preempt(world: World, instance: Instance) -> None:
    """Preempt a VM: deleted or TERMINATED, as its termination action says."""
    _note_event(world, instance, "preempted", "Instance was preempted.")
    if instance.scheduling.get("instanceTerminationAction", "STOP") == "DELETE":
        delete(world, instance)
        return
    _stop(world, instance)


def guest_shutdown(world: World, instance: Instance) -> None:
    """The guest powers itself off: the VM stops in order, is TERMINATED and stays listed."""
    _note_event(world, instance, "guestTerminate", "Instance terminated by guest OS shutdown.")
    _stop(world, instance)


def _stop(world: World, instance: Instance) -> None:
    instance.status = InstanceStatus.STOPPING
    instance.last_stop_utc = world.now

    def stopped() -> None:
        if not instance.gone:
            instance.status = InstanceStatus.TERMINATED

    def guest_ended() -> None:
        world.after(world.latency.stopping_seconds, stopped)

    world.guests.shut_down(instance, guest_ended)


def _note_event(world: World, instance: Instance, event: str, message: str) -> None:
    scope = zone_scope(instance.zone)
    draft = Draft(scope, f"compute.instances.{event}", instance.path, instance.instance_id)
    operations.system_event(world, draft, message)


def reset(world: World, instance: Instance) -> None:
    """Start the guest of a RUNNING VM anew, as a power button would."""
    if instance.status is InstanceStatus.RUNNING and not instance.gone:
        world.guests.power_off(instance)
        instance.last_start_utc = world.now
        world.guests.boot(instance)
