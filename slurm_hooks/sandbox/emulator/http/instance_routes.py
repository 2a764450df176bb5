"""VMs, unmanaged views of groups, machine types."""

from __future__ import annotations

from collections.abc import Callable

from slurm_hooks.sandbox.emulator import (
    groups,
    host_reports,
    instance_calls,
    machine_types,
    standalone,
)
from slurm_hooks.sandbox.emulator.http import instance_shapes, shapes
from slurm_hooks.sandbox.emulator.http.dispatch import (
    AGGREGATED_PARAMETERS,
    LIST_PARAMETERS,
    ApiCall,
    ApiRoute,
    begins,
)
from slurm_hooks.sandbox.emulator.http.listing import Frame, Scoped, aggregated_list, plain_list
from slurm_hooks.sandbox.emulator.http.paging import Listable
from slurm_hooks.sandbox.emulator.identifiers import timestamp
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.places import region_of, zone_scope
from slurm_hooks.sandbox.emulator.problems import invalid_field, not_found
from slurm_hooks.sandbox.emulator.records import Group, Instance, Json, Operation
from slurm_hooks.sandbox.emulator.world import World

_BASE = "instances"
_INSTANCE = f"{_BASE}/{{instance}}"
_REQUEST_ID = frozenset({"requestId"})
_STOP = _REQUEST_ID | {"noGracefulShutdown", "discardLocalSsd"}
Verb = Callable[[World, Call, str, str], Operation]
BodyVerb = Callable[[World, Call, str, str, Json], Operation]


def _listable(world: World, zone: str | None) -> list[Listable[Instance]]:
    return [
        Listable(instance, instance.name, instance.created_utc.timestamp())
        for instance in world.instances.values()
        if zone is None or instance.zone == zone
    ]


def _list(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#instanceList", f"{call.scope}/{_BASE}")
    items = _listable(world, call.scope.name)
    return plain_list(
        world, call.query, frame, items, lambda one: instance_shapes.instance(world, one)
    )


def _aggregated(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#instanceAggregatedList", f"aggregated/{_BASE}")
    items = [
        Listable(Scoped(zone_scope(one.item.zone), one.item), one.name, one.created)
        for one in _listable(world, None)
    ]
    scopes = [zone_scope(zone) for zone in world.places.zones]
    return aggregated_list(
        world, call, frame, scopes, items, lambda one: instance_shapes.instance(world, one)
    )


def _get(world: World, call: ApiCall) -> Json:
    found = instance_calls.find(world, call.scope.name, call.names["instance"])
    return instance_shapes.instance(world, found)


def _insert(world: World, call: ApiCall) -> Operation:
    source = call.query.get("sourceInstanceTemplate", "")
    return standalone.insert(world, call.call, call.scope.name, call.body, source)


def _verb(verb: Verb) -> Callable[[World, ApiCall], Operation]:
    return lambda world, call: verb(world, call.call, call.scope.name, call.names["instance"])


def _body_verb(verb: BodyVerb) -> Callable[[World, ApiCall], Operation]:
    return lambda world, call: verb(
        world, call.call, call.scope.name, call.names["instance"], call.body
    )


def _serial_port(world: World, call: ApiCall) -> Json:
    found = instance_calls.find(world, call.scope.name, call.names["instance"])
    start_text = call.query.get("start", "0")
    if not start_text.removeprefix("-").isdigit():
        raise invalid_field("start", start_text, "A number is required.")
    if call.query.get("port", "1") not in ("1", "2", "3", "4"):
        raise invalid_field("port", call.query["port"], "Must be from 1 to 4.")
    output = world.guests.serial_output(found) if call.query.get("port", "1") == "1" else b""
    start = int(start_text)
    start = max(0, len(output) + start) if start < 0 else min(start, len(output))
    return {
        "kind": "compute#serialPortOutput",
        "contents": output[start:].decode(errors="replace"),
        "start": str(start),
        "next": str(len(output)),
        "selfLink": shapes.link(world, f"{found.path}/serialPort"),
    }


def _machine_type_list(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#machineTypeList", f"{call.scope}/machineTypes")
    zone, withheld = call.scope.name, world.project.withheld
    items = [
        Listable(machine, machine.name)
        for machine in machine_types.listed()
        if (zone, "machineTypes", machine.name) not in withheld
    ]
    return plain_list(
        world,
        call.query,
        frame,
        items,
        lambda one: instance_shapes.machine_type(world, zone, one),
    )


def _machine_type(world: World, call: ApiCall) -> Json:
    name = call.names["machine_type"]
    found = machine_types.find(name)
    if found is None or (call.scope.name, "machineTypes", name) in world.project.withheld:
        raise not_found(world.path(f"{call.scope}/machineTypes/{name}"))
    return instance_shapes.machine_type(world, call.scope.name, found)


def _unmanaged_view(world: World, group: Group) -> Json:
    """The instance group that belongs to a managed one."""
    zone = group.zones[0]
    network = f"regions/{region_of(zone)}/subnetworks/default"
    return {
        "kind": "compute#instanceGroup",
        "id": str(group.group_id + 1),
        "creationTimestamp": timestamp(group.created_utc),
        "name": group.name,
        "description": f"This instance group is controlled by Instance Group Manager "
        f"'{group.name}'. To modify instances in this group, use the Instance Group Manager API.",
        **shapes.place(world, group.scope),
        "network": shapes.link(world, "global/networks/default"),
        "subnetwork": shapes.link(world, network),
        "fingerprint": groups.fingerprint_of(group),
        "size": sum(member.instance is not None for member in group.members.values()),
        "selfLink": shapes.link(world, f"{group.scope}/instanceGroups/{group.name}"),
    }


def _unmanaged_get(world: World, call: ApiCall) -> Json:
    return _unmanaged_view(world, groups.find(world, call.scope, call.names["group"]))


def _unmanaged_list(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#instanceGroupList", f"{call.scope}/instanceGroups")
    items = [
        Listable(group, group.name, group.created_utc.timestamp())
        for group in world.groups.values()
        if group.scope == call.scope
    ]
    return plain_list(world, call.query, frame, items, lambda one: _unmanaged_view(world, one))


def _unmanaged_instances(world: World, call: ApiCall) -> Json:
    group = groups.find(world, call.scope, call.names["group"])
    frame = Frame(
        "compute#instanceGroupsListInstances", f"{call.scope}/instanceGroups/{group.name}"
    )
    items = [
        Listable(member.instance, member.name)
        for member in group.members.values()
        if member.instance is not None
    ]
    return plain_list(
        world,
        call.query,
        frame,
        items,
        lambda one: {"instance": shapes.link(world, one.path), "status": str(one.status)},
    )


def _mutation(method: str, path: str, verb: Verb) -> ApiRoute:
    return ApiRoute(method, path, begins(_verb(verb)), "", _STOP, "mutations")


INSTANCE_ROUTES = (
    ApiRoute("GET", _BASE, _list, "", LIST_PARAMETERS, "lists"),
    ApiRoute(
        "POST",
        _BASE,
        begins(_insert),
        "Instance",
        _REQUEST_ID | {"sourceInstanceTemplate"},
        "mutations",
    ),
    ApiRoute("GET", _INSTANCE, _get),
    _mutation("DELETE", _INSTANCE, instance_calls.delete),
    _mutation("POST", f"{_INSTANCE}/reset", instance_calls.reset),
    _mutation("POST", f"{_INSTANCE}/stop", instance_calls.refuse_power_state),
    _mutation("POST", f"{_INSTANCE}/start", instance_calls.refuse_power_state),
    _mutation("POST", f"{_INSTANCE}/suspend", instance_calls.refuse_power_state),
    _mutation("POST", f"{_INSTANCE}/resume", instance_calls.refuse_power_state),
    ApiRoute(
        "POST",
        f"{_INSTANCE}/setLabels",
        begins(_body_verb(instance_calls.set_labels)),
        "InstancesSetLabelsRequest",
        _REQUEST_ID,
        "mutations",
    ),
    ApiRoute(
        "POST",
        f"{_INSTANCE}/setMetadata",
        begins(_body_verb(instance_calls.set_metadata)),
        "Metadata",
        _REQUEST_ID,
        "mutations",
    ),
    ApiRoute(
        "POST",
        f"{_INSTANCE}/reportHostAsFaulty",
        begins(_body_verb(host_reports.report)),
        "InstancesReportHostAsFaultyRequest",
        _REQUEST_ID,
        "mutations",
    ),
    ApiRoute(
        "GET", f"{_INSTANCE}/serialPort", _serial_port, "", frozenset({"port", "start"}), "reads"
    ),
    ApiRoute("GET", "machineTypes", _machine_type_list, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", "machineTypes/{machine_type}", _machine_type),
)
"""Served under zones/{zone}."""

UNMANAGED_ROUTES = (
    ApiRoute("GET", "instanceGroups", _unmanaged_list, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", "instanceGroups/{group}", _unmanaged_get),
    ApiRoute(
        "POST",
        "instanceGroups/{group}/listInstances",
        _unmanaged_instances,
        "InstanceGroupsListInstancesRequest",
        LIST_PARAMETERS,
        "lists",
    ),
)
"""Served under zones/{zone} and regions/{region}."""

AGGREGATED_INSTANCES = ApiRoute("GET", _BASE, _aggregated, "", AGGREGATED_PARAMETERS, "lists")
