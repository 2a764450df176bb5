"""Templates, operations, zones, regions and the project."""

from __future__ import annotations

from slurm_hooks.sandbox.emulator import operations, resource_policies, templates
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
from slurm_hooks.sandbox.emulator.places import GLOBAL, Scope
from slurm_hooks.sandbox.emulator.records import Json, Operation, Template
from slurm_hooks.sandbox.emulator.resource_policies import ResourcePolicy
from slurm_hooks.sandbox.emulator.world import World

_TEMPLATES = "instanceTemplates"
_TEMPLATE = f"{_TEMPLATES}/{{template}}"
_POLICIES = "resourcePolicies"
_POLICY_PATH = f"{_POLICIES}/{{policy}}"
_OPERATIONS = "operations"
_OPERATION = f"{_OPERATIONS}/{{operation}}"
_REQUEST_ID = frozenset({"requestId"})


def _templates(world: World, scope: Scope | None) -> list[Listable[Template]]:
    return [
        Listable(template, template.name, template.created_utc.timestamp())
        for template in world.templates.values()
        if scope is None or template.scope == scope
    ]


def _template_list(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#instanceTemplateList", f"{call.scope}/{_TEMPLATES}")
    items = _templates(world, call.scope)
    return plain_list(world, call.query, frame, items, lambda one: shapes.template(world, one))


def _template_aggregated(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#instanceTemplateAggregatedList", f"aggregated/{_TEMPLATES}")
    items = [
        Listable(Scoped(one.item.scope, one.item), one.name, one.created)
        for one in _templates(world, None)
    ]
    scopes = [GLOBAL, *(scope for scope in world.places.scopes if scope.region == scope.name)]
    return aggregated_list(
        world, call, frame, scopes, items, lambda one: shapes.template(world, one)
    )


def _template_get(world: World, call: ApiCall) -> Json:
    return shapes.template(world, templates.find(world, call.scope, call.names["template"]))


def _template_insert(world: World, call: ApiCall) -> Operation:
    return templates.insert(world, call.call, call.scope, call.body)


def _template_delete(world: World, call: ApiCall) -> Operation:
    return templates.delete(world, call.call, call.scope, call.names["template"])


def _operations(world: World, scope: Scope | None) -> list[Listable[Operation]]:
    return [
        Listable(operation, operation.name, operation.insert_time_utc.timestamp())
        for operation in world.operations.values()
        if scope is None or operation.scope == scope
    ]


def _operation_list(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#operationList", f"{call.scope}/{_OPERATIONS}")
    items = _operations(world, call.scope)
    return plain_list(world, call.query, frame, items, lambda one: shapes.operation(world, one))


def _operation_aggregated(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#operationAggregatedList", f"aggregated/{_OPERATIONS}")
    items = [
        Listable(Scoped(one.item.scope, one.item), one.name, one.created)
        for one in _operations(world, None)
    ]
    scopes = [GLOBAL, *world.places.scopes]
    return aggregated_list(
        world, call, frame, scopes, items, lambda one: shapes.operation(world, one)
    )


def _operation_get(world: World, call: ApiCall) -> Json:
    return shapes.operation(world, operations.find(world, call.scope, call.names["operation"]))


def _operation_delete(world: World, call: ApiCall) -> Json:
    operations.delete(world, call.scope, call.names["operation"])
    return {}


def _zone_list(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#zoneList", "zones")
    items = [Listable(zone, zone) for zone in world.places.zones]
    return plain_list(world, call.query, frame, items, lambda one: instance_shapes.zone(world, one))


def _region_list(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#regionList", "regions")
    items = [Listable(region, region) for region in world.places.regions]
    return plain_list(
        world, call.query, frame, items, lambda one: instance_shapes.region(world, one)
    )


def _zone_get(world: World, call: ApiCall) -> Json:
    return instance_shapes.zone(world, call.scope.name)


def _region_get(world: World, call: ApiCall) -> Json:
    return instance_shapes.region(world, call.scope.name)


def _project_get(world: World, call: ApiCall) -> Json:
    return instance_shapes.project(world)


def _policy(world: World, policy: ResourcePolicy) -> Json:
    return {
        **policy.body,
        "kind": "compute#resourcePolicy",
        "id": str(policy.policy_id),
        "creationTimestamp": timestamp(policy.created_utc),
        **shapes.place(world, policy.scope),
        "selfLink": shapes.link(world, policy.path),
        "status": "READY",
    }


def _policy_list(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#resourcePolicyList", f"{call.scope}/{_POLICIES}")
    items = [
        Listable(policy, policy.name, policy.created_utc.timestamp())
        for policy in world.policies.values()
        if policy.scope == call.scope
    ]
    return plain_list(world, call.query, frame, items, lambda one: _policy(world, one))


def _policy_aggregated(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#resourcePolicyAggregatedList", f"aggregated/{_POLICIES}")
    items = [
        Listable(Scoped(policy.scope, policy), policy.name, policy.created_utc.timestamp())
        for policy in world.policies.values()
    ]
    scopes = [scope for scope in world.places.scopes if scope.region == scope.name]
    return aggregated_list(world, call, frame, scopes, items, lambda one: _policy(world, one))


def _policy_get(world: World, call: ApiCall) -> Json:
    return _policy(world, resource_policies.find(world, call.scope, call.names["policy"]))


def _policy_insert(world: World, call: ApiCall) -> Operation:
    return resource_policies.insert(world, call.call, call.scope, call.body)


def _policy_delete(world: World, call: ApiCall) -> Operation:
    return resource_policies.delete(world, call.call, call.scope, call.names["policy"])


POLICY_ROUTES = (
    ApiRoute("GET", _POLICIES, _policy_list, "", LIST_PARAMETERS, "lists"),
    ApiRoute("POST", _POLICIES, begins(_policy_insert), "ResourcePolicy", _REQUEST_ID, "mutations"),
    ApiRoute("GET", _POLICY_PATH, _policy_get),
    ApiRoute("DELETE", _POLICY_PATH, begins(_policy_delete), "", _REQUEST_ID, "mutations"),
)
"""Served under regions/{region}."""

TEMPLATE_ROUTES = (
    ApiRoute("GET", _TEMPLATES, _template_list, "", LIST_PARAMETERS | {"view"}, "lists"),
    ApiRoute(
        "POST", _TEMPLATES, begins(_template_insert), "InstanceTemplate", _REQUEST_ID, "mutations"
    ),
    ApiRoute("GET", _TEMPLATE, _template_get, "", frozenset({"view"})),
    ApiRoute("DELETE", _TEMPLATE, begins(_template_delete), "", _REQUEST_ID, "mutations"),
)
"""Served under global and regions/{region}."""

OPERATION_ROUTES = (
    ApiRoute("GET", _OPERATIONS, _operation_list, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", _OPERATION, _operation_get, "", frozenset(), "operation reads"),
    ApiRoute("DELETE", _OPERATION, _operation_delete, "", frozenset(), "mutations"),
)
"""Served in every scope; `wait` is a route of its own."""

OPERATION_WAIT = ApiRoute(
    "POST", f"{_OPERATION}/wait", _operation_get, "", frozenset(), "operation reads"
)

AGGREGATED_TEMPLATES = ApiRoute(
    "GET", _TEMPLATES, _template_aggregated, "", AGGREGATED_PARAMETERS, "lists"
)
AGGREGATED_POLICIES = ApiRoute(
    "GET", _POLICIES, _policy_aggregated, "", AGGREGATED_PARAMETERS, "lists"
)
AGGREGATED_OPERATIONS = ApiRoute(
    "GET", _OPERATIONS, _operation_aggregated, "", AGGREGATED_PARAMETERS, "lists"
)
ZONE_LIST = ApiRoute("GET", "zones", _zone_list, "", LIST_PARAMETERS, "lists")
REGION_LIST = ApiRoute("GET", "regions", _region_list, "", LIST_PARAMETERS, "lists")
ZONE_GET = ApiRoute("GET", "", _zone_get)
REGION_GET = ApiRoute("GET", "", _region_get)
PROJECT_GET = ApiRoute("GET", "", _project_get)
