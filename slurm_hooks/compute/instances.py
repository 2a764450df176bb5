"""VMs: what we read, and how groups are told to create or delete them.

The end of life is `resourceStatus.scheduling.terminationTimestamp`, set when the VM enters
RUNNING. A VM's group stands in its `created-by` metadata, with the project's number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slurm_hooks.compute.batches import MOST_PER_CALL, is_mixed
from slurm_hooks.compute.model import GroupReference, Instance, InstanceStatus, ScopeKind
from slurm_hooks.compute.names import (
    group_of_link,
    refuse,
    require_name,
    short_name,
    time_utc,
)

SERVICE = "InstancesClient"

CREATE_FIELDS = {
    ScopeKind.ZONE: "instance_group_managers_create_instances_request_resource",
    ScopeKind.REGION: "region_instance_group_managers_create_instances_request_resource",
}
DELETE_FIELDS = {
    ScopeKind.ZONE: "instance_group_managers_delete_instances_request_resource",
    ScopeKind.REGION: "region_instance_group_managers_delete_instances_request_resource",
}


def create_body(names: Sequence[str]) -> dict[str, Any]:
    """The body of createInstances. Raises CONFIG for what the service would refuse."""
    _require_count(len(names))
    return {"instances": [{"name": require_name(name)} for name in names]}


def delete_body(zones_by_name: Mapping[str, str]) -> dict[str, Any]:
    """The body of deleteInstances, which skips VMs that are no members any more.

    Raises CONFIG when members with and without a VM are mixed: the service takes links for the
    one kind and bare names for the other, never both in one call.
    """
    _require_count(len(zones_by_name))
    if is_mixed(zones_by_name):
        raise refuse("members with and without a VM cannot be deleted in one call")
    members = [_member(require_name(name), zone) for name, zone in zones_by_name.items()]
    return {"instances": members, "skip_instances_on_validation_error": True}


def _member(name: str, zone: str) -> str:
    return f"zones/{require_name(zone)}/instances/{name}" if zone else name


def _require_count(count: int) -> None:
    if not 0 < count <= MOST_PER_CALL:
        raise refuse(f"one call takes 1 to {MOST_PER_CALL} VMs, not {count}")


def instance_from(message: Any) -> Instance:
    """A VM from its protobuf message."""
    return Instance(
        name=message.name,
        instance_id=str(message.id),
        zone=short_name(message.zone),
        status=_status(message.status),
        group=_group(message.metadata.items),
        labels=dict(message.labels),
        creation_time_utc=time_utc(message.creation_timestamp),
        termination_time_utc=time_utc(_termination_time(message)),
    )


def _status(word: str) -> InstanceStatus:
    return InstanceStatus(word) if word in InstanceStatus.__members__ else InstanceStatus.UNKNOWN


def _group(items: Iterable[Any]) -> GroupReference | None:
    links = (item.value for item in items if item.key == "created-by")
    return group_of_link(next(links, ""))


def _termination_time(message: Any) -> str:
    text: str = message.resource_status.scheduling.termination_timestamp
    return text or str(message.scheduling.termination_time)
