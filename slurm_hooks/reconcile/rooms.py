"""Which group of a pool a request goes to: the first one with room for all of its VMs.

Invariant: no group is asked for more VMs than it can have, counted as the service counts: members
with a VM and members that wait for one.
"""

from __future__ import annotations

from collections import Counter

from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.compute.model import ComputeSnapshot, GroupReference, GroupSpecification
from slurm_hooks.reconcile.specifications import group_of, with_ordinal

MOST_VMS_A_GROUP = 1000
"""The default limit of a zonal managed instance group; docs of Compute Engine, November 2026."""


class Rooms:
    """The groups of all pools in one pass, with what this pass adds to them."""

    def __init__(self, cluster: Cluster, compute: ComputeSnapshot) -> None:
        self._cluster = cluster
        self._compute = compute
        self._sizes = _sizes(compute)
        self._groups: dict[str, list[GroupSpecification]] = {}

    def groups(self, pool: NodePool) -> tuple[GroupSpecification, ...]:
        """The groups of a pool's present generation that exist or were chosen in this pass."""
        return tuple(self._known(pool))

    def choose(self, pool: NodePool, count: int) -> GroupSpecification:
        """The first group with room for so many VMs more; it may still have to be created."""
        known = self._known(pool)
        for group in known:
            if self._sizes[group.reference] + count <= MOST_VMS_A_GROUP:
                return group
        known.append(with_ordinal(known[0], len(known) + 1))
        return known[-1]

    def add(self, group: GroupReference, count: int) -> None:
        """Note that a group will have so many VMs more, or fewer."""
        self._sizes[group] += count

    def _known(self, pool: NodePool) -> list[GroupSpecification]:
        if pool.pool_id not in self._groups:
            first = group_of(self._cluster, pool)
            known = [first]
            while (following := with_ordinal(first, len(known) + 1)).reference in (
                self._compute.groups
            ):
                known.append(following)
            self._groups[pool.pool_id] = known
        return self._groups[pool.pool_id]


def _sizes(compute: ComputeSnapshot) -> Counter[GroupReference]:
    """The larger of what the group says itself, which counts members that are not ours, and of
    what is listed, which counts VMs that still go away."""
    listed: Counter[GroupReference] = Counter(
        instance.group for instance in compute.instances.values() if instance.group is not None
    )
    for request in compute.requests.values():
        if request.state.is_active:
            group = request.reference.group
            listed[group] += sum(n not in compute.instances for n in request.instances)
    for known in compute.groups.values():
        listed[known.reference] = max(listed[known.reference], known.target_size)
    return listed
