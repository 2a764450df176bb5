"""Workload policies: resource policies that put the VMs of a managed instance group together.

HIGH_THROUGHPUT is the type for tightly coupled jobs. Without a maximum distance the service places
the VMs as closely as it can, and does not let them wait for a closer place.
"""

from __future__ import annotations

from typing import Any

from slurm_hooks.compute.model import (
    Scope,
    ScopeKind,
    WorkloadPolicy,
    WorkloadPolicySpecification,
)
from slurm_hooks.compute.names import require_name, short_name, time_utc

SERVICE = "ResourcePoliciesClient"


def workload_policy_body(specification: WorkloadPolicySpecification) -> dict[str, Any]:
    """The ResourcePolicy to insert. Raises CONFIG for a name that the service would refuse."""
    return {
        "name": require_name(specification.name),
        "description": specification.description,
        "workload_policy": {"type_": "HIGH_THROUGHPUT"},
    }


def workload_policy_from(message: Any) -> WorkloadPolicy | None:
    """A workload policy from its protobuf message; None for a resource policy of another kind."""
    if "workload_policy" not in message:
        return None
    return WorkloadPolicy(
        scope=Scope(ScopeKind.REGION, short_name(message.region)),
        name=message.name,
        description=message.description,
        creation_time_utc=time_utc(message.creation_timestamp),
    )
