"""Resize requests: what insert, cancel and delete demand and begin.

Source: Compute Engine's pages on resize requests and recorded answers of GKE. Where the answer
is not known, the emulator picks the one that a careless client survives least.
"""

from __future__ import annotations

from slurm_hooks.sandbox.emulator import memberships, operations, request_states, waiting
from slurm_hooks.sandbox.emulator.durations import REQUEST_SECONDS, seconds_of
from slurm_hooks.sandbox.emulator.operations import Call, Draft
from slurm_hooks.sandbox.emulator.places import ScopeKind
from slurm_hooks.sandbox.emulator.problems import (
    ErrorEntry,
    Findings,
    OperationFailure,
    already_exists,
    condition_not_met,
    failure,
    not_found,
    not_ready,
    quota_exceeded,
    required,
)
from slurm_hooks.sandbox.emulator.records import (
    Group,
    GroupState,
    Json,
    Operation,
    RequestState,
    ResizeRequest,
)
from slurm_hooks.sandbox.emulator.resource_names import check_name
from slurm_hooks.sandbox.emulator.settings import LateCancel
from slurm_hooks.sandbox.emulator.world import World

_TOO_LATE = "Cancelling resize request that has reached a final state is not possible."
_KIND = "compute.instanceGroupManagerResizeRequests"


def insert(world: World, call: Call, group: Group, body: Json) -> Operation:
    """Begin the creation of a resize request. Raises ApiError 400, 403 or 409."""
    if group.state is not GroupState.READY:
        raise not_ready(world.path(group.path))
    _check_body(body, group)
    _check_group(group)
    path = f"{group.path}/resizeRequests/{body['name']}"
    if body["name"] in group.requests:
        raise already_exists(world.path(path))
    region = group.scope.region
    exceeded = world.quotas.exceeded_by(region, request_states.ONE_ACTIVE)
    if exceeded:
        raise quota_exceeded(exceeded.metric, exceeded.limit, exceeded.region)
    request = ResizeRequest(
        group=group,
        name=body["name"],
        request_id=world.identifiers.unique_id(),
        created_utc=world.now,
        members=[],
        named="instances" in body,
        run_duration=body.get("requestedRunDuration"),
        description=body.get("description"),
    )
    # The operation names the group, not the request: gcloud appends the request's name itself.
    draft = Draft(group.scope, f"{_KIND}.insert", group.path, group.group_id)
    return operations.begin(world, call, draft, lambda: _accept(world, request, body))


def _accept(world: World, request: ResizeRequest, body: Json) -> OperationFailure | None:
    group = request.group
    names = [item["name"] for item in body.get("instances", [])]
    for name in names:
        if memberships.name_in_use(world, group, name):
            text = f"The resource '{world.path(f'{group.scope}/instances/{name}')}' already exists"
            return failure("ALREADY_EXISTS", text)
    names = names or memberships.automatic_names(world, group, body["resizeBy"])
    if len(group.members) + len(names) > memberships.MAX_MEMBERS:
        text = (
            "Exceeded limit 'MAX_INSTANCES_IN_INSTANCE_GROUP' on resource "
            f"'{group.name}'. Limit: {float(memberships.MAX_MEMBERS)}"
        )
        request.doomed_by = ErrorEntry("LIMIT_EXCEEDED", text)
    group.requests[request.name] = request
    world.quotas.take(group.scope.region, request_states.ONE_ACTIVE)
    request.members = memberships.join(group, names, request)
    world.after(world.latency.request_accept_seconds, lambda: _queue(world, request))
    return None


def _queue(world: World, request: ResizeRequest) -> None:
    if request.state is not RequestState.CREATING:
        return
    if request.doomed_by:
        request_states.fail(world, request, request.doomed_by)
        return
    request.state = RequestState.ACCEPTED
    waiting.start_round(world)


def _check_body(body: Json, group: Group) -> None:
    if "name" not in body:
        raise required("resource.name")
    findings = Findings()
    check_name(body["name"], "resource.name", findings)
    if ("resizeBy" in body) == bool(body.get("instances")):
        findings.add("resource", "", "Exactly one of resizeBy and instances must be given.")
    elif "resizeBy" in body and not 1 <= body["resizeBy"] <= memberships.MAX_MEMBERS:
        findings.add("resource.resizeBy", body["resizeBy"], "Must be from 1 to 1000.")
    _check_instances(body.get("instances", []), findings)
    scheduling = group.template.scheduling
    if "requestedRunDuration" in body:
        name = "resource.requestedRunDuration"
        seconds_of(body["requestedRunDuration"], name, REQUEST_SECONDS, findings)
    elif "maxRunDuration" not in scheduling:
        name = "resource.requestedRunDuration"
        findings.add(name, "", "Required when the template has no maxRunDuration.")
    findings.check()


def _check_instances(items: list[Json], findings: Findings) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        field = f"resource.instances[{index}]"
        name = item.get("name", "")
        check_name(name, f"{field}.name", findings)
        if name in seen:
            findings.add(f"{field}.name", name, "The name is given twice.")
        seen.add(name)
        for extra in sorted(set(item) - {"name"}):
            findings.add(f"{field}.{extra}", item[extra], "Not supported in resize requests.")
    if len(items) > memberships.MAX_MEMBERS:
        findings.add("resource.instances", len(items), "At most 1000 are allowed.")


def _check_group(group: Group) -> None:
    findings = Findings()
    properties, scheduling = group.template.properties, group.template.scheduling
    if group.repairs:
        name = "instanceLifecyclePolicy.defaultActionOnFailure"
        findings.add(name, "REPAIR", "Resize requests need DO_NOTHING.")
    if not group.template.is_flex_start:
        model = scheduling.get("provisioningModel", "STANDARD")
        findings.add("scheduling.provisioningModel", model, "Resize requests need FLEX_START.")
    if scheduling.get("instanceTerminationAction") != "DELETE":
        action = scheduling.get("instanceTerminationAction", "")
        findings.add("scheduling.instanceTerminationAction", action, "DELETE is required.")
    affinity = properties.get("reservationAffinity", {}).get("consumeReservationType", "")
    if affinity != "NO_RESERVATION":
        name = "reservationAffinity.consumeReservationType"
        findings.add(name, affinity, "Resize requests need NO_RESERVATION.")
    if properties.get("resourcePolicies"):
        findings.add("resourcePolicies", "", "A placement policy in the template is refused.")
    if group.scope.kind is ScopeKind.REGION:
        _check_regional(group, findings)
    findings.check()


def _check_regional(group: Group, findings: Findings) -> None:
    shape = group.body.get("distributionPolicy", {}).get("targetShape", "EVEN")
    if shape != "ANY_SINGLE_ZONE":
        findings.add("distributionPolicy.targetShape", shape, "ANY_SINGLE_ZONE is required.")
    policy = group.body.get("updatePolicy", {})
    redistribution = policy.get("instanceRedistributionType", "PROACTIVE")
    if redistribution != "NONE":
        name = "updatePolicy.instanceRedistributionType"
        findings.add(name, redistribution, "NONE is required.")


def find(world: World, group: Group, name: str) -> ResizeRequest:
    """A resize request by name or id. Raises ApiError 404."""
    request = group.requests.get(name)
    if request is not None:
        return request
    for candidate in group.requests.values():
        if str(candidate.request_id) == name:
            return candidate
    raise not_found(world.path(f"{group.path}/resizeRequests/{name}"))


def cancel(world: World, call: Call, group: Group, name: str) -> Operation:
    """Begin to cancel a request. Raises ApiError 404, or 412 when it has ended already.

    While VMs are being made, and when it ended meanwhile, the operation fails instead.
    """
    request = find(world, group, name)
    late_now = world.behaviour.late_cancel is LateCancel.HTTP
    if not request.state.is_active and late_now:
        raise condition_not_met(_TOO_LATE)

    def complete() -> OperationFailure | None:
        if request.granted or not request.state.is_active:
            return failure("CONDITION_NOT_MET", _TOO_LATE)
        request_states.cancel(world, request)
        return None

    draft = Draft(group.scope, f"{_KIND}.cancel", request.path, request.request_id)
    return operations.begin(world, call, draft, None, complete)


def delete(world: World, call: Call, group: Group, name: str) -> Operation:
    """Begin to delete a request that has ended. Raises ApiError 404, or 412 while it is active."""
    request = find(world, group, name)
    if request.state.is_active:
        text = f"A resize request in state {request.state} cannot be deleted; cancel it first."
        raise condition_not_met(text)

    def complete() -> None:
        request_states.forget(request)

    draft = Draft(group.scope, f"{_KIND}.delete", request.path, request.request_id)
    return operations.begin(world, call, draft, None, complete)
