"""What the caller must be allowed, by the calls of ComputeClient: the one list of permissions.

Source: the permissions that the reference of each method names, November 2026. Calls about resize
requests and members of groups count as updates of the group.
"""

from __future__ import annotations

from slurm_hooks.cluster.topology import Cluster

ACT_AS = "iam.serviceAccounts.actAs"

_GROUPS = "compute.instanceGroupManagers"
_TEMPLATES = "compute.instanceTemplates"
_POLICIES = "compute.resourcePolicies"
_INSTANCES = "compute.instances"

PERMISSIONS_BY_CALL: dict[str, tuple[str, ...]] = {
    "read": (f"{_GROUPS}.get", f"{_GROUPS}.list", f"{_INSTANCES}.list"),
    "read_templates": (f"{_TEMPLATES}.list",),
    "read_workload_policies": (f"{_POLICIES}.list",),
    "get_group": (f"{_GROUPS}.get",),
    "get_resize_request": (f"{_GROUPS}.get",),
    "get_operation": (
        "compute.globalOperations.get",
        "compute.regionOperations.get",
        "compute.zoneOperations.get",
    ),
    "insert_template": (f"{_TEMPLATES}.create", "compute.networks.use", "compute.subnetworks.use"),
    "delete_template": (f"{_TEMPLATES}.delete",),
    "insert_workload_policy": (f"{_POLICIES}.create",),
    "delete_workload_policy": (f"{_POLICIES}.delete",),
    "insert_group": (
        f"{_GROUPS}.create",
        f"{_INSTANCES}.create",
        f"{_TEMPLATES}.get",
        f"{_TEMPLATES}.useReadOnly",
    ),
    "delete_group": (f"{_GROUPS}.delete",),
    "insert_resize_request": (f"{_GROUPS}.update",),
    "cancel_resize_request": (f"{_GROUPS}.update",),
    "delete_resize_request": (f"{_GROUPS}.update",),
    "create_instances": (f"{_GROUPS}.update", f"{_INSTANCES}.create"),
    "delete_instances": (f"{_GROUPS}.update", f"{_INSTANCES}.delete"),
    "delete_instance": (f"{_INSTANCES}.delete",),
    "get_serial_port_output": (f"{_INSTANCES}.getSerialPortOutput",),
    "report_host_as_faulty": (f"{_INSTANCES}.update",),
}
"""By method of ComputeClient. That of reports of faulty hosts is our reading."""

_PUBLIC_IP = "compute.subnetworks.useExternalIp"
_PLACES_JOBS = ("insert_workload_policy", "delete_workload_policy")
_OF_PLACED_GROUPS = f"{_POLICIES}.use"


def needed_permissions(cluster: Cluster) -> frozenset[str]:
    """What the calls for this cluster need on the project."""
    pools = cluster.pools.values()
    is_placed = any(pool.compact_placement for pool in pools)
    needed = {
        permission
        for call, permissions in PERMISSIONS_BY_CALL.items()
        if is_placed or call not in _PLACES_JOBS
        for permission in permissions
    }
    if is_placed:
        needed.add(_OF_PLACED_GROUPS)
    if any(pool.public_ip for pool in pools):
        needed.add(_PUBLIC_IP)
    return frozenset(needed)
