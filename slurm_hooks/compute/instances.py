"""How groups are told to create or delete VMs by name. Reading VMs is in `instance_list`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slurm_hooks.compute.batches import MOST_PER_CALL, is_mixed
from slurm_hooks.compute.model import ScopeKind
from slurm_hooks.compute.names import refuse, require_name

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
