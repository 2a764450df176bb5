"""VMs outside of groups: `instances.insert`.

Without capacity or quota the operation fails, and shows its error while it still runs, as a
recorded one does. A Flex-start VM waits in PENDING as long as its `requestValidForDuration` says.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime, timedelta

from slurm_hooks.sandbox.emulator import instances, operations, quotas, template_rules, templates
from slurm_hooks.sandbox.emulator.durations import VALIDITY_SECONDS, seconds_of
from slurm_hooks.sandbox.emulator.instances import VmRequest
from slurm_hooks.sandbox.emulator.operations import Call, Draft
from slurm_hooks.sandbox.emulator.places import region_of, zone_scope
from slurm_hooks.sandbox.emulator.problems import (
    Findings,
    OperationFailure,
    already_exists,
    failure,
    invalid_field,
    quota_message,
    required,
)
from slurm_hooks.sandbox.emulator.records import Instance, Json, Operation
from slurm_hooks.sandbox.emulator.resource_names import check_name, parse_reference
from slurm_hooks.sandbox.emulator.waiting import run_seconds
from slurm_hooks.sandbox.emulator.world import World

_NOT_PROPERTIES = ("name", "params", "hostname", "deletionProtection")


def insert(world: World, call: Call, zone: str, body: Json, source_template: str) -> Operation:
    """Begin the creation of a VM. Raises ApiError 400, 404 or 409."""
    if "name" not in body:
        raise required("resource.name")
    findings = Findings()
    check_name(body["name"], "resource.name", findings)
    properties = _properties(world, zone, body, source_template, findings)
    valid_seconds = _validity(body, findings)
    findings.check()
    template_rules.complete(properties, world.identifiers.project)
    wanted = VmRequest(zone, body["name"], properties, run_seconds(properties["scheduling"]))
    path = f"zones/{zone}/instances/{wanted.name}"
    if (zone, wanted.name) in world.instances:
        raise already_exists(world.path(path))
    draft = Draft(
        zone_scope(zone), "insert", path, world.identifiers.unique_id(), starts_pending=True
    )
    if world.next_operation_failure:
        return operations.begin(world, call, draft)
    operation = operations.open_ended(world, call, draft)
    instance = instances.create(world, wanted, waits=True)
    operation.target_id = instance.instance_id
    give_up_utc = world.now + timedelta(seconds=valid_seconds)
    _attempt(world, operation, instance, give_up_utc)
    return operation


def _properties(
    world: World, zone: str, body: Json, source_template: str, findings: Findings
) -> Json:
    properties: Json = {}
    if source_template:
        reference = parse_reference(source_template, "instanceTemplates")
        if reference is None:
            raise invalid_field("sourceInstanceTemplate", source_template, "The URL is malformed.")
        template = templates.find(world, reference.scope, reference.name)
        properties = deepcopy(template.properties)
    own = {key: deepcopy(value) for key, value in body.items() if key not in _NOT_PROPERTIES}
    _make_bare(own, "machineType", "machineTypes", zone, "resource", findings)
    for index, disk in enumerate(own.get("disks", [])):
        field = f"resource.disks[{index}].initializeParams"
        _make_bare(disk.get("initializeParams", {}), "diskType", "diskTypes", zone, field, findings)
    properties |= own
    if not findings.refusals:
        template_rules.check_machine_properties(properties, "resource", findings)
    return properties


def _make_bare(
    node: Json, key: str, collection: str, zone: str, prefix: str, findings: Findings
) -> None:
    """A VM names its types by URLs of its zone, a template by bare names; make it the latter."""
    if key not in node:
        return
    reference = parse_reference(node[key], collection)
    if reference is None:
        findings.add(f"{prefix}.{key}", node[key], "The URL is malformed.")
    elif reference.scope != zone_scope(zone):
        findings.add(f"{prefix}.{key}", node[key], "It lies in another zone.")
    else:
        node[key] = reference.name


def _validity(body: Json, findings: Findings) -> int:
    duration = body.get("params", {}).get("requestValidForDuration")
    name = "resource.params.requestValidForDuration"
    if duration is None or str(duration.get("seconds")) == "0":
        return 0
    return seconds_of(duration, name, VALIDITY_SECONDS, findings) or 0


def _attempt(world: World, operation: Operation, instance: Instance, give_up_utc: datetime) -> None:
    if instance.gone:
        operations.finish(world, operation, failure("RESOURCE_NOT_FOUND", "It was deleted."))
        return
    problem = _problem(world, instance)
    if problem is None:
        instances.provision(world, instance)
        seconds = world.latency.provisioning_seconds
        world.after(seconds, lambda: operations.finish(world, operation, None))
    elif world.now < give_up_utc:
        seconds = world.latency.capacity_check_seconds
        world.after(seconds, lambda: _attempt(world, operation, instance, give_up_utc))
    else:
        instances.delete(world, instance)
        operation.failure = problem
        seconds = world.latency.operation_seconds
        world.after(seconds, lambda: operations.finish(world, operation, problem))


def _problem(world: World, instance: Instance) -> OperationFailure | None:
    needs = quotas.needs_of(instance.properties)
    exceeded = world.quotas.exceeded_by(region_of(instance.zone), needs)
    if exceeded:
        text = quota_message(exceeded.metric, exceeded.limit, exceeded.region)
        return failure("QUOTA_EXCEEDED", text)
    if world.capacity.has_room(instance.zone, instance.machine_type, 1):
        return None
    zone = world.path(f"zones/{instance.zone}")
    text = f"The zone '{zone}' does not have enough resources available to fulfill the request."
    return failure("ZONE_RESOURCE_POOL_EXHAUSTED", text)
