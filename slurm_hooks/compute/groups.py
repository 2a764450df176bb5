"""Managed instance groups: what we ask for and what we read.

A group must start empty, must not repair VMs by itself, and, if regional, must put all VMs of a
request into one zone and never move them. The service refuses resize requests otherwise. Groups
whose VMs are created by name are made alike: a VM that the group made anew by itself would come
without its node, and the old one would be missed too late.
"""

from __future__ import annotations

from typing import Any

from slurm_hooks.compute.model import Group, GroupReference, GroupSpecification, Scope, ScopeKind
from slurm_hooks.compute.names import (
    base_instance_name,
    refuse,
    require_name,
    short_name,
    time_utc,
)

SERVICES = {
    ScopeKind.ZONE: "InstanceGroupManagersClient",
    ScopeKind.REGION: "RegionInstanceGroupManagersClient",
}

_CREATING_COUNTS = ("creating", "creating_without_retries", "recreating")


def group_body(specification: GroupSpecification, project: str) -> dict[str, Any]:
    """The InstanceGroupManager to insert. Raises CONFIG for what the service would refuse."""
    name = require_name(specification.reference.name)
    body: dict[str, Any] = {
        "name": name,
        "description": specification.description,
        "base_instance_name": base_instance_name(name),
        "versions": [{"instance_template": template_link(specification.template, project)}],
        "target_size": 0,
        "instance_lifecycle_policy": {"default_action_on_failure": "DO_NOTHING"},
        "update_policy": {"type_": "OPPORTUNISTIC", "minimal_action": "REPLACE"},
    }
    if specification.workload_policy:
        policy = specification.workload_policy
        link = f"projects/{project}/{policy.scope}/resourcePolicies/{require_name(policy.name)}"
        body["resource_policies"] = {"workload_policy": link}
    if specification.reference.scope.kind is ScopeKind.REGION:
        body["distribution_policy"] = _distribution(specification.zones)
        body["update_policy"]["instance_redistribution_type"] = "NONE"
    return body


def _distribution(zones: tuple[str, ...]) -> dict[str, Any]:
    if not zones:
        raise refuse("a regional group needs its zones")
    places = [{"zone": f"zones/{require_name(zone)}"} for zone in zones]
    return {"target_shape": "ANY_SINGLE_ZONE", "zones": places}


def template_link(template: str, project: str) -> str:
    """A bare name is a global template; `regions/R/instanceTemplates/T` a regional one."""
    if template.startswith(("regions/", "global/")):
        return f"projects/{project}/{template}"
    if "/" in template:
        return template
    return f"projects/{project}/global/instanceTemplates/{require_name(template)}"


def group_from(message: Any) -> Group:
    """A group from its protobuf message."""
    place = message.region or message.zone
    kind = ScopeKind.REGION if message.region else ScopeKind.ZONE
    template = message.instance_template or _template_of_versions(message)
    return Group(
        reference=GroupReference(Scope(kind, short_name(place)), message.name),
        template=short_name(template),
        target_size=message.target_size,
        description=message.description,
        creation_time_utc=time_utc(message.creation_timestamp),
        workload_policy=short_name(message.resource_policies.workload_policy),
        creating=sum(getattr(message.current_actions, word) for word in _CREATING_COUNTS),
    )


def _template_of_versions(message: Any) -> str:
    return message.versions[0].instance_template if message.versions else ""
