"""What there is of a cluster in both systems, and what can be deleted of it next.

Only what carries our mark or label is ever here. A group goes with all that is in it; templates
and policies can go when no group uses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slurm_hooks.apply.impact import JobOnNodes, ours_of, uses_of
from slurm_hooks.apply.systems import Systems, read_slurm
from slurm_hooks.compute.model import ComputeSnapshot, Template, WorkloadPolicy
from slurm_hooks.reconcile.actions import (
    CancelRequest,
    DeleteGroup,
    DeleteInstance,
    DeleteTemplate,
    DeleteWorkloadPolicy,
)
from slurm_hooks.reconcile.end_of_life import is_ours as is_our_reservation
from slurm_hooks.slurm.hostlist import collapse
from slurm_hooks.slurm.model import Node, SlurmSnapshot

Deletion = CancelRequest | DeleteGroup | DeleteInstance | DeleteTemplate | DeleteWorkloadPolicy
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything of one cluster. `slurm` is None where slurmctld does not answer."""

    cluster_id: str
    compute: ComputeSnapshot
    templates: tuple[Template, ...]
    policies: tuple[WorkloadPolicy, ...]
    slurm: SlurmSnapshot | None

    @property
    def nodes(self) -> dict[str, Node]:
        """Slurm's nodes of the cluster."""
        if self.slurm is None:
            return {}
        ours = ours_of(self.slurm.nodes, self.cluster_id)
        return {name: node for name, node in self.slurm.nodes.items() if name in ours}

    @property
    def jobs(self) -> tuple[JobOnNodes, ...]:
        """The jobs that hold nodes of the cluster."""
        return () if self.slurm is None else uses_of(self.nodes, self.slurm).holding

    @property
    def reservations(self) -> tuple[str, ...]:
        """The reservations of ours for nodes of the cluster."""
        if self.slurm is None:
            return ()
        return tuple(
            name
            for name, reservation in self.slurm.reservations.items()
            if (is_our_reservation(reservation) or name == closing_reservation(self.cluster_id))
            and ours_of(reservation.nodes, self.cluster_id) == frozenset(reservation.nodes)
        )

    @property
    def has_resources(self) -> bool:
        """Whether anything is left in Compute Engine."""
        compute = self.compute
        return bool(
            compute.groups
            or compute.instances
            or compute.duplicates
            or self.templates
            or self.policies
        )


def closing_reservation(cluster_id: str) -> str:
    """The name of the reservation that keeps jobs off nodes while they are powered down.

    A drain cannot: the power down lifts it, and Slurm may give the node away in that moment.
    """
    return f"slurm-hooks-delete-{cluster_id}"


def read_inventory(systems: Systems, cluster_id: str) -> Inventory:
    """Read both systems. Raises ComputeError when a part of Compute Engine cannot be read."""
    return Inventory(
        cluster_id,
        systems.compute.read(cluster_id),
        systems.compute.read_templates(cluster_id),
        systems.compute.read_workload_policies(cluster_id),
        read_slurm(systems),
    )


def inventory_lines(found: Inventory) -> Iterator[str]:
    """What is there, a line a kind, for the question before a deletion and for its progress."""
    compute = found.compute
    active = [request for request in compute.requests.values() if request.state.is_active]
    yield from _counted("resize requests that wait", [one.reference.name for one in active])
    yield from _counted("groups", [group.name for group in compute.groups])
    yield from _counted("VMs", [*compute.instances, *(vm.name for vm in compute.duplicates)])
    yield from _counted("instance templates", [template.name for template in found.templates])
    yield from _counted("workload policies", [policy.name for policy in found.policies])
    yield from _counted("reservations in Slurm", list(found.reservations))
    for use in found.jobs:
        yield f"job {use.job} of {use.user} on {collapse(use.nodes)}"


def _counted(what: str, names: list[str]) -> Iterator[str]:
    if names:
        more = "" if len(names) <= MOST_NAMED else ", ..."
        yield f"{what} ({len(names)}): {', '.join(sorted(names)[:MOST_NAMED])}{more}"


def next_deletions(found: Inventory, tried: frozenset[str]) -> Iterator[Deletion]:
    """What can be deleted now. `tried` are subjects that were asked for once and are over.

    A request that could not be cancelled keeps its group no longer.
    """
    compute = found.compute
    waiting = set()
    for reference, request in compute.requests.items():
        cancel = CancelRequest(reference, None)
        if request.state.is_active and cancel.subject not in tried:
            waiting.add(reference.group)
            yield cancel
    yield from (DeleteGroup(group) for group in compute.groups if group not in waiting)
    for vm in (*compute.instances.values(), *compute.duplicates):
        if vm.group is None or vm.group not in compute.groups:
            yield DeleteInstance(None, vm.name, vm.zone, vm.instance_id)
    used = {group.template for group in compute.groups.values()}
    yield from (DeleteTemplate(one.name) for one in found.templates if one.name not in used)
    placed = {
        (group.reference.scope.region, group.workload_policy) for group in compute.groups.values()
    }
    for policy in found.policies:
        if (policy.scope.region, policy.name) not in placed:
            yield DeleteWorkloadPolicy(policy.scope, policy.name)
