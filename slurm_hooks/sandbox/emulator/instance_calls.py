"""Calls on single VMs: delete, reset, labels, metadata; and look-up."""

from __future__ import annotations

from collections.abc import Callable

from slurm_hooks.sandbox.emulator import instances, operations
from slurm_hooks.sandbox.emulator.identifiers import fingerprint
from slurm_hooks.sandbox.emulator.operations import Call, Draft
from slurm_hooks.sandbox.emulator.places import zone_scope
from slurm_hooks.sandbox.emulator.problems import (
    condition_not_met,
    invalid,
    not_found,
    not_ready,
    required,
)
from slurm_hooks.sandbox.emulator.records import Instance, InstanceStatus, Json, Operation
from slurm_hooks.sandbox.emulator.world import World


def find(world: World, zone: str, name: str) -> Instance:
    """A VM by name or id. Raises ApiError 404."""
    instance = world.instances.get((zone, name))
    if instance is not None:
        return instance
    for candidate in world.instances.values():
        if candidate.zone == zone and str(candidate.instance_id) == name:
            return candidate
    raise not_found(world.path(f"zones/{zone}/instances/{name}"))


def begin(
    world: World,
    call: Call,
    instance: Instance,
    operation_type: str,
    accept: Callable[[], None] | None = None,
    complete: Callable[[], None] | None = None,
) -> Operation:
    """Begin a plain operation on a VM."""
    draft = Draft(
        zone_scope(instance.zone),
        operation_type,
        instance.path,
        instance.instance_id,
        starts_pending=True,
    )
    return operations.begin(world, call, draft, accept, complete)


def delete(world: World, call: Call, zone: str, name: str) -> Operation:
    """Begin to delete a VM; the operation is DONE when it is gone. Raises ApiError 404."""
    instance = find(world, zone, name)
    if world.next_operation_failure:
        return begin(world, call, instance, "delete")
    draft = Draft(
        zone_scope(zone), "delete", instance.path, instance.instance_id, starts_pending=True
    )
    operation = operations.open_ended(world, call, draft)

    def gone(other: Instance) -> None:
        if other is instance:
            operations.finish(world, operation, None)
            world.gone_listeners.remove(gone)

    world.gone_listeners.append(gone)
    instances.delete(world, instance)
    return operation


def reset(world: World, call: Call, zone: str, name: str) -> Operation:
    """Begin to reset a RUNNING VM. Raises ApiError 404 or 400."""
    instance = find(world, zone, name)
    if instance.status is not InstanceStatus.RUNNING:
        raise not_ready(world.path(instance.path))
    return begin(world, call, instance, "reset", complete=lambda: instances.reset(world, instance))


def refuse_power_state(world: World, call: Call, zone: str, name: str) -> Operation:
    """Refuse stop, start, suspend and resume: Flex-start VMs have none, the emulator neither."""
    instance = find(world, zone, name)
    raise invalid(
        f"The resource '{world.path(instance.path)}' ({instance.provisioning_model}) cannot be "
        "stopped, started, suspended or resumed; it can only be deleted."
    )


def set_labels(world: World, call: Call, zone: str, name: str, body: Json) -> Operation:
    """Begin to replace a VM's labels. Raises ApiError 404, 400, or 412 on an old fingerprint."""
    instance = find(world, zone, name)
    _check_fingerprint(body, "labelFingerprint", fingerprint(instance.labels))

    def accept() -> None:
        instance.labels = dict(body.get("labels", {}))

    return begin(world, call, instance, "setLabels", accept)


def set_metadata(world: World, call: Call, zone: str, name: str, body: Json) -> Operation:
    """Begin to replace a VM's metadata. Raises ApiError 404, 400, or 412 on an old fingerprint."""
    instance = find(world, zone, name)
    _check_fingerprint(body, "fingerprint", fingerprint(instance.metadata))

    def accept() -> None:
        instance.metadata = list(body.get("items", []))

    return begin(world, call, instance, "setMetadata", accept)


def _check_fingerprint(body: Json, member: str, current: str) -> None:
    given = body.get(member)
    if not given:
        raise required(f"resource.{member}")
    if given != current:
        raise condition_not_met("Labels or metadata fingerprint either invalid or out of date.")
