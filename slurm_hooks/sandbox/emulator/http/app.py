"""The ASGI application: all routes of the API and of the control surface, faults in front."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from slurm_hooks.sandbox.emulator import operations
from slurm_hooks.sandbox.emulator.http.batches import Batches
from slurm_hooks.sandbox.emulator.http.catalogue_routes import (
    GLOBAL_CATALOGUE,
    ZONAL_CATALOGUE,
)
from slurm_hooks.sandbox.emulator.http.control_routes import control_routes
from slurm_hooks.sandbox.emulator.http.dispatch import (
    ApiRoute,
    check_project,
    checked_scope,
    endpoint,
    error_answer,
)
from slurm_hooks.sandbox.emulator.http.front import Front
from slurm_hooks.sandbox.emulator.http.group_routes import AGGREGATED_GROUPS, GROUP_ROUTES
from slurm_hooks.sandbox.emulator.http.instance_routes import (
    AGGREGATED_INSTANCES,
    INSTANCE_ROUTES,
    UNMANAGED_ROUTES,
)
from slurm_hooks.sandbox.emulator.http.network_routes import (
    GLOBAL_NETWORKS,
    REGIONAL_NETWORKS,
    ZONAL_RESERVATIONS,
)
from slurm_hooks.sandbox.emulator.http.project_routes import (
    AGGREGATED_OPERATIONS,
    AGGREGATED_POLICIES,
    AGGREGATED_TEMPLATES,
    OPERATION_ROUTES,
    OPERATION_WAIT,
    POLICY_ROUTES,
    PROJECT_GET,
    REGION_GET,
    REGION_LIST,
    TEMPLATE_ROUTES,
    ZONE_GET,
    ZONE_LIST,
)
from slurm_hooks.sandbox.emulator.http.project_services import PROJECT_SERVICES
from slurm_hooks.sandbox.emulator.http.quota_services import QUOTA_SERVICES
from slurm_hooks.sandbox.emulator.http.service import Service
from slurm_hooks.sandbox.emulator.http.service_dispatch import service_route
from slurm_hooks.sandbox.emulator.http.storage_services import STORAGE_SERVICES
from slurm_hooks.sandbox.emulator.places import ScopeKind
from slurm_hooks.sandbox.emulator.problems import ApiError, Refusal
from slurm_hooks.sandbox.emulator.records import OperationStatus

_PROJECT = "/compute/v1/projects/{project}"
_PREFIXES = {
    ScopeKind.ZONE: f"{_PROJECT}/zones/{{zone}}",
    ScopeKind.REGION: f"{_PROJECT}/regions/{{region}}",
    ScopeKind.GLOBAL: f"{_PROJECT}/global",
}
_SERVICES = (*PROJECT_SERVICES, *QUOTA_SERVICES, *STORAGE_SERVICES)
_LOCATED = (ScopeKind.ZONE, ScopeKind.REGION)
_WAIT_STEP_SECONDS = 0.05
Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(service: Service) -> Batches:
    """The application of one emulator."""
    others = (service_route(service, route) for route in _SERVICES)
    routes = [*_api_routes(service), *others, *control_routes(service)]
    handlers = {404: _no_such_path, 405: _no_such_path}
    front = Front(service, Starlette(routes=routes, exception_handlers=handlers))
    return Batches(front)


def _api_routes(service: Service) -> list[Route]:
    served = [
        (GROUP_ROUTES, _LOCATED),
        (UNMANAGED_ROUTES, _LOCATED),
        (INSTANCE_ROUTES, (ScopeKind.ZONE,)),
        (TEMPLATE_ROUTES, (ScopeKind.GLOBAL, ScopeKind.REGION)),
        (OPERATION_ROUTES, tuple(ScopeKind)),
        (ZONAL_CATALOGUE, (ScopeKind.ZONE,)),
        (ZONAL_RESERVATIONS, (ScopeKind.ZONE,)),
        (REGIONAL_NETWORKS, (ScopeKind.REGION,)),
        (GLOBAL_NETWORKS, (ScopeKind.GLOBAL,)),
        (GLOBAL_CATALOGUE, (ScopeKind.GLOBAL,)),
        (POLICY_ROUTES, (ScopeKind.REGION,)),
        ((ZONE_GET,), (ScopeKind.ZONE,)),
        ((REGION_GET,), (ScopeKind.REGION,)),
    ]
    routes = [
        _route(service, route, kind, _PREFIXES[kind])
        for table, kinds in served
        for route in table
        for kind in kinds
    ]
    aggregated: Iterable[ApiRoute] = (
        AGGREGATED_GROUPS,
        AGGREGATED_INSTANCES,
        AGGREGATED_OPERATIONS,
        AGGREGATED_POLICIES,
        AGGREGATED_TEMPLATES,
    )
    for route in aggregated:
        routes.append(_route(service, route, ScopeKind.GLOBAL, f"{_PROJECT}/aggregated"))
    for route in (ZONE_LIST, REGION_LIST, PROJECT_GET):
        routes.append(_route(service, route, ScopeKind.GLOBAL, _PROJECT))
    for kind, prefix in _PREFIXES.items():
        path = f"{prefix}/{OPERATION_WAIT.path}"
        routes.append(Route(path, _wait(service, kind), methods=["POST"]))
    return routes


def _route(service: Service, route: ApiRoute, kind: ScopeKind, prefix: str) -> Route:
    path = f"{prefix}/{route.path}" if route.path else prefix
    return Route(path, endpoint(service, route, kind), methods=[route.method])


def _wait(service: Service, kind: ScopeKind) -> Endpoint:
    """`operations.wait`: holds until the operation is DONE or the time is up, then shows it."""
    answer = endpoint(service, OPERATION_WAIT, kind)

    async def wait(request: Request) -> Response:
        deadline = time.monotonic() + service.world.behaviour.wait_seconds
        try:
            check_project(service.world, request.path_params)
            scope = checked_scope(service.world, kind, request.path_params)
            operation = operations.find(service.world, scope, request.path_params["operation"])
        except ApiError as error:
            return error_answer(error)
        while operation.status is not OperationStatus.DONE and time.monotonic() < deadline:
            await asyncio.sleep(_WAIT_STEP_SECONDS)
        return await answer(request)

    return wait


async def _no_such_path(request: Request, error: Exception) -> Response:
    text = f"There is no method {request.method} {request.url.path}"
    return error_answer(ApiError(404, [Refusal(text, "notFound")]))
