"""Calls to Google's services beside Compute Engine: who calls, may they, is the API enabled.

Their errors have another form than Compute Engine's: a status word and details, no reasons.
Who calls is told by the token that the metadata server of a VM gives out; any other call is one of
the project's `caller`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from slurm_hooks.sandbox.emulator.http.callers import member_of
from slurm_hooks.sandbox.emulator.http.service import Service
from slurm_hooks.sandbox.emulator.iam import Policy
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.world import World

_SYSTEM_PARAMETERS = frozenset({"alt", "$alt", "fields", "prettyPrint", "quotaUser", "key"})
_STATUS_WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
}
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class ServiceError(Exception):
    """A call that is refused. `reason` is that of an ErrorInfo detail, if it has one."""

    def __init__(self, status: int, message: str, reason: str = "", **metadata: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.metadata = metadata

    def to_json(self) -> Json:
        """The body of the answer."""
        error: Json = {"code": self.status, "message": str(self)}
        error["status"] = _STATUS_WORDS[self.status]
        if self.reason:
            detail = {"@type": _ERROR_INFO, "reason": self.reason, "domain": "googleapis.com"}
            error["details"] = [detail | {"metadata": self.metadata}]
        return {"error": error}


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """A checked call. `names` are the path's parameters, `member` is who calls."""

    names: Mapping[str, str]
    query: Mapping[str, str]
    body: Json
    member: str

    def require(self, world: World, permission: str, resource: str, *policies: Policy) -> None:
        """Raise 403 unless the caller may do this on the project or by one of the policies."""
        if not world.project.allows(self.member, permission, world.now, *policies):
            text = f"Permission '{permission}' denied on resource '{resource}'."
            raise ServiceError(
                403, text, "IAM_PERMISSION_DENIED", permission=permission, resource=resource
            )


Handler = Callable[[World, ServiceCall], Json]


@dataclass(frozen=True, slots=True)
class ServiceRoute:
    """One method of a service, e.g. of `secretmanager.googleapis.com`. `members` are those that
    its body may have, `parameters` those of its query."""

    service: str
    method: str
    path: str
    handler: Handler
    members: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()


def service_route(service: Service, route: ServiceRoute) -> Route:
    """The Starlette route of a method."""
    return Route(route.path, _endpoint(service, route), methods=[route.method])


def _endpoint(service: Service, route: ServiceRoute) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        payload = await request.body()
        try:
            return JSONResponse(_perform(service, route, request, payload))
        except ServiceError as error:
            return JSONResponse(error.to_json(), error.status)

    return answer


def _perform(service: Service, route: ServiceRoute, request: Request, payload: bytes) -> Json:
    service.advance()
    world = service.world
    names = request.path_params
    _check_project(world, names)
    _check_enabled(world, route.service)
    unknown = set(request.query_params) - route.parameters - _SYSTEM_PARAMETERS
    if unknown:
        raise ServiceError(400, f"Unknown query parameters: {', '.join(sorted(unknown))}")
    body = _checked_body(route, payload)
    call = ServiceCall(names, dict(request.query_params), body, _member(world, request))
    try:
        return route.handler(world, call)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ServiceError(400, f"Invalid body: {error!r}") from None
    finally:
        service.touch()


def _check_project(world: World, names: Mapping[str, Any]) -> None:
    identifiers = world.identifiers
    ours = (identifiers.project, str(identifiers.project_number), "-")
    if names.get("project", "-") not in ours:
        text = f"The caller does not have permission on project {names['project']!r}."
        raise ServiceError(403, text, "IAM_PERMISSION_DENIED")


def _check_enabled(world: World, name: str) -> None:
    if name in world.project.enabled_services:
        return
    consumer = f"projects/{world.identifiers.project_number}"
    text = f"{name} has not been used in {consumer} before or it is disabled."
    raise ServiceError(403, text, "SERVICE_DISABLED", service=name, consumer=consumer)


def _checked_body(route: ServiceRoute, payload: bytes) -> Json:
    if not payload.strip():
        return {}
    try:
        body = json.loads(payload)
    except ValueError as error:
        raise ServiceError(400, f"Invalid JSON payload: {error}") from None
    if not isinstance(body, dict):
        raise ServiceError(400, "Invalid JSON payload: a JSON object is required.")
    unknown = set(body) - route.members
    if unknown:
        text = f"Invalid JSON payload: unknown names {', '.join(sorted(unknown))}"
        raise ServiceError(400, text)
    return body


def _member(world: World, request: Request) -> str:
    member = member_of(world, request)
    if not member:
        raise ServiceError(401, "The token belongs to no VM that is there.", "ACCESS_TOKEN_EXPIRED")
    return member
