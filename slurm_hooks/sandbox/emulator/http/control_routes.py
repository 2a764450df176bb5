"""The control surface under /emulator/v1, documented in docs/emulator.md."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from slurm_hooks.sandbox.emulator import (
    faults,
    gpu_faults,
    instances,
    operations,
    request_states,
    settings,
    waiting,
)
from slurm_hooks.sandbox.emulator.http.project_control_routes import (
    PROJECT_CONTROLS,
    Control,
    NoSuchThing,
)
from slurm_hooks.sandbox.emulator.http.service import Service
from slurm_hooks.sandbox.emulator.identifiers import utc_timestamp
from slurm_hooks.sandbox.emulator.problems import ErrorEntry, failure
from slurm_hooks.sandbox.emulator.records import (
    Instance,
    InstanceStatus,
    Json,
    RequestState,
    ResizeRequest,
)
from slurm_hooks.sandbox.emulator.world import World

_PREFIX = "/emulator/v1"


def control_routes(service: Service) -> list[Route]:
    """All routes of the control surface."""
    table: list[tuple[str, str, Control]] = [
        ("GET", "status", _status),
        ("GET", "capacity", _capacities),
        ("PUT", "capacity", _set_capacity),
        ("GET", "latency", _latency),
        ("PUT", "latency", _set_latency),
        ("GET", "behaviour", _behaviour),
        ("PUT", "behaviour", _set_behaviour),
        ("GET", "faults", _faults),
        ("POST", "faults", _add_fault),
        ("DELETE", "faults", _clear_faults),
        ("POST", "stuckOperations/release", _release_stuck),
        ("POST", "resizeRequests/{name}/fail", _fail_request),
        ("POST", "resizeRequests/{name}/grant", _grant_request),
        ("POST", "instances/{name}/gpuFault", _break_gpu),
        ("PUT", "instances/{name}/gpuState", _set_gpu_state),
        ("POST", "instances/{name}/{event}", _instance_event),
        ("PUT", "quotas", _set_quota),
        ("PUT", "unreachable", _set_unreachable),
        ("POST", "clock", _advance_clock),
        ("GET", "calls", _calls),
        ("DELETE", "calls", _clear_calls),
        ("POST", "shutdown", _shutdown),
        *PROJECT_CONTROLS,
    ]
    return [
        Route(f"{_PREFIX}/{path}", _endpoint(service, control), methods=[method])
        for method, path, control in table
    ]


def _endpoint(service: Service, control: Control) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            payload = await request.body()
            body = json.loads(payload) if payload.strip() else {}
            if not isinstance(body, dict):
                raise ValueError("a JSON object is required")
            service.advance()
            result = control(service, dict(request.path_params), body)
        except NoSuchThing as error:
            return JSONResponse({"error": str(error)}, 404)
        except (ValueError, TypeError, KeyError) as error:
            text = f"missing member {error}" if isinstance(error, KeyError) else str(error)
            return JSONResponse({"error": text}, 400)
        service.touch()
        return JSONResponse(result)

    return answer


def _status(service: Service, names: dict[str, str], body: Json) -> Json:
    world = service.world
    return {
        "ready": True,
        "project": world.identifiers.project,
        "projectNumber": world.identifiers.project_number,
        "now": utc_timestamp(world.now),
        "instances": len(world.instances),
        "resizeRequests": sum(len(group.requests) for group in world.groups.values()),
        "groups": len(world.groups),
        "templates": len(world.templates),
    }


def _capacities(service: Service, names: dict[str, str], body: Json) -> Json:
    table = service.world.capacity
    pairs = sorted(set(table.limits) | {pair for pair, used in table.used.items() if used})
    items = [
        {
            "zone": zone,
            "machineType": machine,
            "vms": table.limits.get((zone, machine), table.default),
            "used": table.used[zone, machine],
        }
        for zone, machine in pairs
    ]
    return {"default": table.default, "capacity": items}


def _set_capacity(service: Service, names: dict[str, str], body: Json) -> Json:
    vms = body["vms"]
    if vms is not None and (isinstance(vms, bool) or not isinstance(vms, int) or vms < 0):
        raise ValueError("vms must be a whole number of at least 0, or null")
    if body["zone"] not in service.world.places.zones:
        raise ValueError(f"zone {body['zone']!r} is not served")
    service.world.capacity.set_limit(body["zone"], str(body["machineType"]), vms)
    waiting.request_round(service.world)
    return _capacities(service, names, body)


def _latency(service: Service, names: dict[str, str], body: Json) -> Json:
    return settings.to_json(service.world.latency)


def _set_latency(service: Service, names: dict[str, str], body: Json) -> Json:
    service.world.latency = settings.changed(service.world.latency, body)
    return _latency(service, names, body)


def _behaviour(service: Service, names: dict[str, str], body: Json) -> Json:
    return settings.to_json(service.world.behaviour)


def _set_behaviour(service: Service, names: dict[str, str], body: Json) -> Json:
    service.world.behaviour = settings.changed(service.world.behaviour, body)
    return _behaviour(service, names, body)


def _faults(service: Service, names: dict[str, str], body: Json) -> Json:
    return {"faults": [fault.to_json() for fault in service.faults.faults]}


def _add_fault(service: Service, names: dict[str, str], body: Json) -> Json:
    fault = faults.parse(body)
    service.faults.faults.append(fault)
    return fault.to_json()


def _clear_faults(service: Service, names: dict[str, str], body: Json) -> Json:
    service.faults.faults.clear()
    return {}


def _release_stuck(service: Service, names: dict[str, str], body: Json) -> Json:
    code = str(body.get("code", ""))
    reason = failure(code, str(body.get("message", ""))) if code else None
    return {"released": operations.release_stuck(service.world, reason)}


def _find_request(world: World, name: str) -> ResizeRequest:
    for group in world.groups.values():
        if name in group.requests:
            return group.requests[name]
    raise NoSuchThing(f"there is no resize request {name!r}")


def _fail_request(service: Service, names: dict[str, str], body: Json) -> Json:
    request = _find_request(service.world, names["name"])
    if not request.state.is_active:
        raise ValueError(f"the request is {request.state} already")
    entry = ErrorEntry(str(body["code"]), str(body.get("message", "")))
    request_states.fail(service.world, request, entry)
    return {"state": str(request.state)}


def _grant_request(service: Service, names: dict[str, str], body: Json) -> Json:
    request = _find_request(service.world, names["name"])
    if request.state is not RequestState.ACCEPTED or request.granted:
        raise ValueError(f"the request is {request.state} and does not wait")
    waiting.grant(service.world, request, request.group.zones[0])
    return {"state": str(request.state)}


def _find_instance(world: World, name: str) -> Instance:
    for instance in world.instances.values():
        if instance.name == name:
            return instance
    raise NoSuchThing(f"there is no instance {name!r}")


def _instance_event(service: Service, names: dict[str, str], body: Json) -> Json:
    world = service.world
    instance = _find_instance(world, names["name"])
    running = instance.status is InstanceStatus.RUNNING
    match names["event"]:
        case "terminate":
            instances.delete(world, instance)
        case "vanish":
            instances.vanish(world, instance)
        case "hostError" if running:
            instances.host_error(world, instance)
        case "preempt" if running:
            instances.preempt(world, instance)
        case "guestKill" if running:
            world.guests.kill(instance)
        case "guestShutdown" if running:
            instances.guest_shutdown(world, instance)
        case "hostError" | "preempt" | "guestKill" | "guestShutdown":
            raise ValueError(f"the instance is {instance.status}, not RUNNING")
        case event:
            raise NoSuchThing(f"there is no event {event!r}")
    return {"status": str(instance.status), "gone": instance.gone}


def _break_gpu(service: Service, names: dict[str, str], body: Json) -> Json:
    instance = _find_instance(service.world, names["name"])
    return gpu_faults.break_gpu(service.node_roots, instance, body)


def _set_gpu_state(service: Service, names: dict[str, str], body: Json) -> Json:
    instance = _find_instance(service.world, names["name"])
    return gpu_faults.set_gpu_state(service.node_roots, instance, body)


def _set_quota(service: Service, names: dict[str, str], body: Json) -> Json:
    if body["region"] not in ("", *service.world.places.regions):
        raise ValueError(f"region {body['region']!r} is not served")
    pair = (str(body["region"]), str(body["metric"]))
    service.world.quotas.limits[pair] = float(body["limit"])
    waiting.request_round(service.world)
    return {"region": pair[0], "metric": pair[1], "limit": float(body["limit"])}


def _set_unreachable(service: Service, names: dict[str, str], body: Json) -> Json:
    zones = frozenset(body["zones"])
    unknown = zones - frozenset(service.world.places.zones)
    if unknown:
        raise ValueError(f"zones that are not served: {', '.join(sorted(unknown))}")
    service.world.unreachable_zones = zones
    return {"zones": sorted(zones)}


def _advance_clock(service: Service, names: dict[str, str], body: Json) -> Json:
    service.clock.advance(float(body["advanceSeconds"]))
    return {"now": utc_timestamp(service.advance())}


def _calls(service: Service, names: dict[str, str], body: Json) -> Json:
    calls: list[dict[str, Any]] = list(service.calls)
    return {"calls": calls}


def _clear_calls(service: Service, names: dict[str, str], body: Json) -> Json:
    service.calls.clear()
    return {}


def _shutdown(service: Service, names: dict[str, str], body: Json) -> Json:
    service.shutdown_wanted.set()
    return {}
