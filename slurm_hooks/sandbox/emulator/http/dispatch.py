"""From an HTTP request to a handler and back: scope, parameters, body, replay, errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from slurm_hooks.sandbox.emulator import bodies
from slurm_hooks.sandbox.emulator.http import shapes
from slurm_hooks.sandbox.emulator.http.callers import member_of
from slurm_hooks.sandbox.emulator.http.cut_lists import cut_list
from slurm_hooks.sandbox.emulator.http.permissions import permission_of
from slurm_hooks.sandbox.emulator.http.service import Service
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.places import GLOBAL, Scope, ScopeKind
from slurm_hooks.sandbox.emulator.problems import (
    ApiError,
    Refusal,
    condition_not_met,
    invalid,
    invalid_field,
    not_found,
    required,
    unreachable,
)
from slurm_hooks.sandbox.emulator.project import COMPUTE
from slurm_hooks.sandbox.emulator.records import Json, Operation
from slurm_hooks.sandbox.emulator.resource_names import checked_request_id
from slurm_hooks.sandbox.emulator.world import World

_SYSTEM_PARAMETERS = frozenset(
    {"alt", "$alt", "fields", "key", "prettyPrint", "quotaUser", "userIp", "$.xgafv", "trace"}
)
LIST_PARAMETERS = frozenset(
    {"filter", "maxResults", "orderBy", "pageToken", "returnPartialSuccess"}
)
AGGREGATED_PARAMETERS = LIST_PARAMETERS | {"includeAllScopes", "serviceProjectNumber"}


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A checked call. `names` are the path's parameters, `body` holds no output-only member."""

    scope: Scope
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: Json
    call: Call


Handler = Callable[[World, ApiCall], Json]
Mutation = Callable[[World, ApiCall], Operation]


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One method of the API. `path` follows the scope; `message` is the body's schema.

    `rate_group` is the group of methods whose calls are counted together; `in_any_project` is for
    what belongs to others, such as public images.
    """

    method: str
    path: str
    handler: Handler
    message: str = ""
    parameters: frozenset[str] = field(default_factory=frozenset)
    rate_group: str = "reads"
    in_any_project: bool = False


def begins(mutation: Mutation) -> Handler:
    """A handler that answers with the operation that a mutation begins."""

    def handler(world: World, call: ApiCall) -> Json:
        return shapes.operation(world, mutation(world, call))

    return handler


def endpoint(
    service: Service, route: ApiRoute, kind: ScopeKind
) -> Callable[[Request], Awaitable[Response]]:
    """The Starlette endpoint of a route in one kind of scope."""

    async def answer(request: Request) -> Response:
        try:
            if request.method == "GET" and service.world.latency.read_seconds:
                await asyncio.sleep(service.world.latency.read_seconds)
            payload = await request.body()
            body = _perform(service, route, kind, request, payload)
            body = cut_list(body, request.scope.get("list_fault"))
        except ApiError as error:
            return error_answer(error)
        return JSONResponse(body)

    return answer


def error_answer(error: ApiError) -> JSONResponse:
    """The answer for a refused call."""
    return JSONResponse(error.to_json(), error.status)


def _perform(
    service: Service, route: ApiRoute, kind: ScopeKind, request: Request, payload: bytes
) -> Json:
    service.advance()
    world = service.world
    if not route.in_any_project:
        check_project(world, request.path_params)
    check_enabled(world)
    if not route.in_any_project:
        check_permission(world, request, permission_of(route.method, route.path, kind))
    scope = checked_scope(world, kind, request.path_params)
    service.rate_limiter.check(world, route.rate_group)
    query = _checked_query(route, request)
    call = Call(
        key=f"{request.method} {request.url.path}",
        request_id=checked_request_id(query.get("requestId", "")),
        user=f"emulator@{world.identifiers.project}.iam.gserviceaccount.com",
    )
    replay = world.replays.get(call.request_id) if call.request_id else None
    if replay is not None:
        if replay.call != call.key:
            raise condition_not_met("The request ID was used for another request.")
        return shapes.operation(world, replay.operation)
    body = _checked_body(route, payload)
    world.next_operation_failure = request.scope.get("operation_failure")
    world.next_operation_is_stuck = request.scope.get("operation_is_stuck", False)
    try:
        return route.handler(world, ApiCall(scope, request.path_params, query, body, call))
    finally:
        world.next_operation_failure = None
        world.next_operation_is_stuck = False
        service.touch()


def check_project(world: World, names: Mapping[str, str]) -> None:
    """Raise ApiError 404 for another project than ours."""
    identifiers = world.identifiers
    project = names["project"]
    if project not in (identifiers.project, str(identifiers.project_number)):
        raise not_found(f"projects/{project}")


def check_enabled(world: World) -> None:
    """Raise ApiError 403 `accessNotConfigured` while the project has not enabled the API."""
    if COMPUTE not in world.project.enabled_services:
        text = f"{COMPUTE} has not been used in project {world.identifiers.project_number} before."
        raise ApiError(
            403, [Refusal(text, "accessNotConfigured")], "usageLimits", "PERMISSION_DENIED"
        )


def check_permission(world: World, request: Request, permission: str) -> None:
    """Raise ApiError 403 `forbidden` for a caller without the permission, 401 for a dead token."""
    member = member_of(world, request)
    if not member:
        raise ApiError(401, [Refusal("Invalid Credentials", "authError", "Authorization")])
    if not world.project.allows(member, permission, world.now):
        resource = f"projects/{world.identifiers.project}"
        text = f"Required '{permission}' permission for '{resource}'"
        raise ApiError(403, [Refusal(text, "forbidden")])


def checked_scope(world: World, kind: ScopeKind, names: Mapping[str, str]) -> Scope:
    """The scope of a path. Raises ApiError 400 for an unknown place, 503 for one out of reach."""
    if kind is ScopeKind.GLOBAL:
        return GLOBAL
    word = str(kind)[:-1]
    scope = Scope(kind, names[word])
    if not world.places.has(scope):
        raise invalid_field(word, scope.name, f"Unknown {word}.")
    if scope.name in world.unreachable_zones:
        raise unreachable(scope.name)
    return scope


def _checked_query(route: ApiRoute, request: Request) -> dict[str, str]:
    query = dict(request.query_params)
    for name in query:
        if name not in route.parameters and name not in _SYSTEM_PARAMETERS:
            raise invalid_field(name, query[name], "Unknown query parameter.")
    return query


def _checked_body(route: ApiRoute, payload: bytes) -> Json:
    if not route.message:
        if payload.strip() not in (b"", b"{}"):
            raise invalid("The method takes no body.")
        return {}
    if not payload.strip():
        raise required("resource")
    return bodies.checked(route.message, _parsed(payload))


def _parsed(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except ValueError as error:
        raise ApiError(400, [Refusal(f"Parse Error: {error}", "parseError")]) from None
