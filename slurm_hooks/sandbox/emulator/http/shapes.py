"""The JSON of resources, member for member as recorded answers show it."""

from __future__ import annotations

from typing import Any

from slurm_hooks.sandbox.emulator import groups
from slurm_hooks.sandbox.emulator.identifiers import LINK_PREFIX, timestamp
from slurm_hooks.sandbox.emulator.places import Scope, ScopeKind
from slurm_hooks.sandbox.emulator.problems import ErrorEntry
from slurm_hooks.sandbox.emulator.records import (
    Group,
    GroupState,
    Json,
    Member,
    MemberAction,
    MemberError,
    Operation,
    OperationStatus,
    ResizeRequest,
    Template,
)
from slurm_hooks.sandbox.emulator.world import World

_ACTIONS = {
    "none": "NONE",
    "creating": "CREATING",
    "creatingWithoutRetries": "CREATING_WITHOUT_RETRIES",
    "verifying": "VERIFYING",
    "recreating": "RECREATING",
    "deleting": "DELETING",
    "abandoning": "ABANDONING",
    "restarting": "RESTARTING",
    "refreshing": "REFRESHING",
    "suspending": "SUSPENDING",
    "resuming": "RESUMING",
    "stopping": "STOPPING",
    "starting": "STARTING",
}


def link(world: World, below_project: str) -> str:
    """The full URL of a path below the project."""
    return LINK_PREFIX + world.path(below_project)


def place(world: World, scope: Scope) -> dict[str, str]:
    """The `zone` or `region` member of a resource; nothing for a global one."""
    if scope.kind is ScopeKind.GLOBAL:
        return {}
    return {str(scope.kind)[:-1]: link(world, str(scope))}


def without_unset(body: Json) -> Json:
    """The body without members that are None: the service leaves unset members out."""
    return {key: value for key, value in body.items() if value is not None}


def operation(world: World, item: Operation) -> Json:
    """An operation."""
    done = item.status is OperationStatus.DONE
    failure = item.failure
    body = {
        "kind": "compute#operation",
        "id": str(item.operation_id),
        "name": item.name,
        "clientOperationId": item.request_id or None,
        **place(world, item.scope),
        "operationType": item.operation_type,
        "targetLink": link(world, item.target),
        "targetId": str(item.target_id),
        "status": str(item.status),
        "statusMessage": item.status_message or None,
        "user": item.user,
        "progress": 100 if done else 0,
        "insertTime": timestamp(item.insert_time_utc),
        "startTime": timestamp(item.start_time_utc) if item.start_time_utc else None,
        "endTime": timestamp(item.end_time_utc) if item.end_time_utc else None,
        "error": {"errors": [failure.entry.to_json()]} if failure else None,
        "httpErrorStatusCode": (failure.http_status or None) if failure else None,
        "httpErrorMessage": (failure.http_message or None) if failure else None,
        "selfLink": link(world, f"{item.scope}/operations/{item.name}"),
        "selfLinkWithId": link(world, f"{item.scope}/operations/{item.operation_id}"),
    }
    return without_unset(body)


def template(world: World, item: Template) -> Json:
    """An instance template."""
    body = {
        "kind": "compute#instanceTemplate",
        "id": str(item.template_id),
        "creationTimestamp": timestamp(item.created_utc),
        "name": item.name,
        "description": item.description if item.description is not None else "",
        "properties": item.properties,
        **place(world, item.scope),
        "selfLink": link(world, item.path),
    }
    return without_unset(body)


def group(world: World, item: Group) -> Json:
    """A managed instance group."""
    template_link = link(world, item.template.path)
    settings = item.body
    body = {
        "kind": "compute#instanceGroupManager",
        "id": str(item.group_id),
        "creationTimestamp": timestamp(item.created_utc),
        "name": item.name,
        "description": settings.get("description"),
        **place(world, item.scope),
        "distributionPolicy": _distribution(world, item),
        "instanceTemplate": template_link,
        "versions": [
            {"instanceTemplate": template_link, "targetSize": {"calculated": item.target_size}}
        ],
        "instanceGroup": link(world, f"{item.scope}/instanceGroups/{item.name}"),
        "baseInstanceName": item.base_instance_name,
        "fingerprint": groups.fingerprint_of(item),
        "currentActions": _current_actions(item),
        "status": _group_status(item),
        "targetSize": item.target_size,
        "targetStoppedSize": 0,
        "targetSuspendedSize": 0,
        "listManagedInstancesResults": settings["listManagedInstancesResults"],
        "standbyPolicy": settings["standbyPolicy"],
        "selfLink": link(world, item.path),
        "updatePolicy": settings["updatePolicy"],
        "instanceLifecyclePolicy": settings["instanceLifecyclePolicy"],
        "autoHealingPolicies": settings.get("autoHealingPolicies"),
        "namedPorts": settings.get("namedPorts"),
        "resourcePolicies": settings.get("resourcePolicies"),
        "targetSizePolicy": settings.get("targetSizePolicy"),
        "satisfiesPzi": True,
        "satisfiesPzs": True,
    }
    return without_unset(body)


def _distribution(world: World, item: Group) -> Json | None:
    if item.scope.kind is not ScopeKind.REGION:
        return None
    shape = item.body.get("distributionPolicy", {}).get("targetShape", "EVEN")
    zones = [{"zone": link(world, f"zones/{zone}")} for zone in item.zones]
    return {"zones": zones, "targetShape": shape}


def _current_actions(item: Group) -> dict[str, int]:
    counted = dict.fromkeys(_ACTIONS.values(), 0)
    for member in item.members.values():
        counted[str(member.action)] += 1
    return {name: counted[action] for name, action in _ACTIONS.items()}


def _group_status(item: Group) -> Json:
    settled = all(member.action is MemberAction.NONE for member in item.members.values())
    current = all(member.template is item.template for member in item.members.values())
    return {
        "isStable": settled and item.state is GroupState.READY,
        "allInstancesConfig": {"effective": True},
        "versionTarget": {"isReached": current},
        "stateful": {"hasStatefulConfig": False, "perInstanceConfigs": {"allEffective": True}},
    }


def instance_link(world: World, item: Group, member: Member) -> str:
    """The URL of a member, also of one whose VM does not exist yet."""
    zone = member.instance.zone if member.instance else item.zones[0]
    return link(world, f"zones/{zone}/instances/{member.name}")


def member(world: World, item: Group, one: Member) -> Json:
    """A managed instance. Without a VM it has neither id nor status."""
    instance = one.instance
    ends = instance.termination_time_utc if instance else None
    failed = {"errors": {"errors": [one.last_error.to_json()]}} if one.last_error else {}
    body = {
        "instance": instance_link(world, item, one),
        "name": one.name,
        "id": str(instance.instance_id) if instance else None,
        "instanceStatus": str(instance.status) if instance else None,
        "currentAction": str(one.action),
        "lastAttempt": failed if one.action is not MemberAction.NONE else None,
        "version": {"instanceTemplate": link(world, one.template.path)},
        "scheduling": {"terminationTimestamp": timestamp(ends)} if ends else None,
    }
    return without_unset(body)


def member_error(world: World, item: Group, error: MemberError) -> Json:
    """An entry of listErrors."""
    return {
        "error": error.entry.to_json(),
        "instanceActionDetails": {
            "action": str(error.action),
            "instance": link(world, f"zones/{item.zones[0]}/instances/{error.member}"),
            "version": {"instanceTemplate": link(world, error.template.path)},
        },
        "timestamp": timestamp(error.time_utc),
    }


def resize_request(world: World, item: ResizeRequest) -> Json:
    """A resize request. `status` is always there."""
    size: dict[str, Any] = {"resizeBy": len(item.members)}
    if item.named:
        size = {"instances": [{"name": member.name} for member in item.members]}
    body = {
        "kind": "compute#instanceGroupManagerResizeRequest",
        "id": str(item.request_id),
        "creationTimestamp": timestamp(item.created_utc),
        "name": item.name,
        "description": item.description,
        **place(world, item.group.scope),
        **size,
        "requestedRunDuration": item.run_duration,
        "state": str(item.state),
        "status": _request_status(item),
        "selfLink": link(world, item.path),
        "selfLinkWithId": link(world, f"{item.group.path}/resizeRequests/{item.request_id}"),
    }
    return without_unset(body)


def _request_status(item: ResizeRequest) -> Json:
    status: Json = {}
    if item.error:
        status["error"] = _errors(item.error)
    if item.last_attempt_error:
        status["lastAttempt"] = {"error": _errors(item.last_attempt_error)}
    return status


def _errors(entry: ErrorEntry) -> Json:
    return {"errors": [entry.to_json()]}
