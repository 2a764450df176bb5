"""Managed instance groups, their members and their resize requests, zonal and regional."""

from __future__ import annotations

from collections.abc import Callable

from slurm_hooks.sandbox.emulator import groups, member_calls, resize_requests
from slurm_hooks.sandbox.emulator.http import shapes
from slurm_hooks.sandbox.emulator.http.dispatch import (
    AGGREGATED_PARAMETERS,
    LIST_PARAMETERS,
    ApiCall,
    ApiRoute,
    begins,
)
from slurm_hooks.sandbox.emulator.http.listing import Frame, Scoped, aggregated_list, plain_list
from slurm_hooks.sandbox.emulator.http.paging import Listable, page_of, read_query
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.places import Scope, ScopeKind
from slurm_hooks.sandbox.emulator.problems import invalid_field, required
from slurm_hooks.sandbox.emulator.records import Group, Json, Member, Operation
from slurm_hooks.sandbox.emulator.world import World

_BASE = "instanceGroupManagers"
_GROUP = f"{_BASE}/{{group}}"
_REQUESTS = f"{_GROUP}/resizeRequests"
_REQUEST = f"{_REQUESTS}/{{request}}"
_REQUEST_ID = frozenset({"requestId"})
_GRACEFUL = _REQUEST_ID | {"noGracefulShutdown"}
MemberMutation = Callable[[World, Call, Group, Json], Operation]


def _listable(world: World, scope: Scope | None) -> list[Listable[Group]]:
    return [
        Listable(group, group.name, group.created_utc.timestamp())
        for group in world.groups.values()
        if scope is None or group.scope == scope
    ]


def _list(world: World, call: ApiCall) -> Json:
    regional = call.scope.kind is ScopeKind.REGION
    kind = "regionInstanceGroupManagerList" if regional else "instanceGroupManagerList"
    frame = Frame(f"compute#{kind}", f"{call.scope}/{_BASE}")
    items = _listable(world, call.scope)
    return plain_list(world, call.query, frame, items, lambda one: shapes.group(world, one))


def _aggregated(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#instanceGroupManagerAggregatedList", f"aggregated/{_BASE}")
    items = [
        Listable(Scoped(one.item.scope, one.item), one.name, one.created)
        for one in _listable(world, None)
    ]
    scopes = world.places.scopes
    return aggregated_list(world, call, frame, scopes, items, lambda one: shapes.group(world, one))


def _get(world: World, call: ApiCall) -> Json:
    return shapes.group(world, groups.find(world, call.scope, call.names["group"]))


def _insert(world: World, call: ApiCall) -> Operation:
    return groups.insert(world, call.call, call.scope, call.body)


def _delete(world: World, call: ApiCall) -> Operation:
    return groups.delete(world, call.call, call.scope, call.names["group"])


def _patch(world: World, call: ApiCall) -> Operation:
    return groups.patch(world, call.call, call.scope, call.names["group"], call.body)


def _set_template(world: World, call: ApiCall) -> Operation:
    return groups.set_template(world, call.call, call.scope, call.names["group"], call.body)


def _resize(world: World, call: ApiCall) -> Operation:
    text = call.query.get("size")
    if text is None:
        raise required("size")
    if not text.isascii() or not text.isdigit():
        raise invalid_field("size", text, "A number of at least 0 is required.")
    return groups.resize(world, call.call, call.scope, call.names["group"], int(text))


def _on_members(mutation: MemberMutation) -> Callable[[World, ApiCall], Operation]:
    def handler(world: World, call: ApiCall) -> Operation:
        group = groups.ready(world, call.scope, call.names["group"])
        return mutation(world, call.call, group, call.body)

    return handler


def _list_members(world: World, call: ApiCall) -> Json:
    group = groups.find(world, call.scope, call.names["group"])
    if call.query.get("orderBy"):
        raise invalid_field("orderBy", call.query["orderBy"], "Not supported here.")
    paged = group.body["listManagedInstancesResults"] == "PAGINATED"
    members = [Listable(member, member.name) for member in group.members.values()]

    def shape(member: Member) -> Json:
        return shapes.member(world, group, member)

    if not paged:
        keep = read_query({"filter": call.query.get("filter", "")}).keep
        ordered = sorted(members, key=lambda one: one.name)
        shown = [one for one in (shape(member.item) for member in ordered) if keep(one)]
        return {"managedInstances": shown} if shown else {}
    page = page_of(members, read_query(call.query), shape)
    return shapes.without_unset(
        {
            "managedInstances": [one for _, one in page.entries] or None,
            "nextPageToken": page.next_token or None,
        }
    )


def _list_errors(world: World, call: ApiCall) -> Json:
    group = groups.find(world, call.scope, call.names["group"])
    for name in ("filter", "orderBy"):
        if call.query.get(name):
            raise invalid_field(name, call.query[name], "Not supported here.")
    errors = [Listable(error, f"{index:06d}") for index, error in enumerate(reversed(group.errors))]
    page = page_of(
        errors, read_query(call.query), lambda one: shapes.member_error(world, group, one)
    )
    return shapes.without_unset(
        {
            "items": [one for _, one in page.entries] or None,
            "nextPageToken": page.next_token or None,
        }
    )


def _list_requests(world: World, call: ApiCall) -> Json:
    group = groups.find(world, call.scope, call.names["group"])
    regional = call.scope.kind is ScopeKind.REGION
    kind = "regionInstanceGroupManager" if regional else "instanceGroupManager"
    frame = Frame(f"compute#{kind}ResizeRequestList", f"{group.path}/resizeRequests")
    items = [
        Listable(request, request.name, request.created_utc.timestamp())
        for request in group.requests.values()
    ]
    return plain_list(
        world, call.query, frame, items, lambda one: shapes.resize_request(world, one)
    )


def _get_request(world: World, call: ApiCall) -> Json:
    group = groups.find(world, call.scope, call.names["group"])
    request = resize_requests.find(world, group, call.names["request"])
    return shapes.resize_request(world, request)


def _insert_request(world: World, call: ApiCall) -> Operation:
    group = groups.find(world, call.scope, call.names["group"])
    return resize_requests.insert(world, call.call, group, call.body)


def _cancel_request(world: World, call: ApiCall) -> Operation:
    group = groups.find(world, call.scope, call.names["group"])
    return resize_requests.cancel(world, call.call, group, call.names["request"])


def _delete_request(world: World, call: ApiCall) -> Operation:
    group = groups.find(world, call.scope, call.names["group"])
    return resize_requests.delete(world, call.call, group, call.names["request"])


def _no_autoscalers(world: World, call: ApiCall) -> Json:
    """Clients ask whether a group is autoscaled; here none ever is."""
    regional = call.scope.kind is ScopeKind.REGION
    kind = "regionAutoscalerList" if regional else "autoscalerList"
    frame = Frame(f"compute#{kind}", f"{call.scope}/autoscalers")
    none: list[Listable[Group]] = []
    return plain_list(world, call.query, frame, none, lambda one: shapes.group(world, one))


def _member_route(name: str, mutation: MemberMutation, message: str) -> ApiRoute:
    return ApiRoute(
        "POST",
        f"{_GROUP}/{name}",
        begins(_on_members(mutation)),
        message,
        _GRACEFUL,
        "mutations",
    )


def _message(word: str) -> str:
    return f"InstanceGroupManagers{word}InstancesRequest"


GROUP_ROUTES = (
    ApiRoute("GET", "autoscalers", _no_autoscalers, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", _BASE, _list, "", LIST_PARAMETERS, "lists"),
    ApiRoute("POST", _BASE, begins(_insert), "InstanceGroupManager", _REQUEST_ID, "mutations"),
    ApiRoute("GET", _GROUP, _get),
    ApiRoute("DELETE", _GROUP, begins(_delete), "", _GRACEFUL, "mutations"),
    ApiRoute("PATCH", _GROUP, begins(_patch), "InstanceGroupManager", _REQUEST_ID, "mutations"),
    ApiRoute(
        "POST",
        f"{_GROUP}/setInstanceTemplate",
        begins(_set_template),
        "InstanceGroupManagersSetInstanceTemplateRequest",
        _REQUEST_ID,
        "mutations",
    ),
    ApiRoute("POST", f"{_GROUP}/resize", begins(_resize), "", _REQUEST_ID | {"size"}, "mutations"),
    ApiRoute("POST", f"{_GROUP}/listManagedInstances", _list_members, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", f"{_GROUP}/listErrors", _list_errors, "", LIST_PARAMETERS, "lists"),
    _member_route("createInstances", member_calls.create_instances, _message("Create")),
    _member_route("deleteInstances", member_calls.delete_instances, _message("Delete")),
    _member_route("recreateInstances", member_calls.recreate_instances, _message("Recreate")),
    _member_route("abandonInstances", member_calls.abandon_instances, _message("Abandon")),
    ApiRoute("GET", _REQUESTS, _list_requests, "", LIST_PARAMETERS, "lists"),
    ApiRoute(
        "POST",
        _REQUESTS,
        begins(_insert_request),
        "InstanceGroupManagerResizeRequest",
        _REQUEST_ID,
        "mutations",
    ),
    ApiRoute("GET", _REQUEST, _get_request),
    ApiRoute("DELETE", _REQUEST, begins(_delete_request), "", _REQUEST_ID, "mutations"),
    ApiRoute("POST", f"{_REQUEST}/cancel", begins(_cancel_request), "", _REQUEST_ID, "mutations"),
)
"""Served under zones/{zone} and regions/{region}."""

AGGREGATED_GROUPS = ApiRoute("GET", _BASE, _aggregated, "", AGGREGATED_PARAMETERS, "lists")
