"""Which group of a pool a request goes to: the first one with room for all of its VMs.

A job that wants its VMs close together has groups of its own, the others share those of the pool.

Invariant: no group is asked for more VMs than it can have, counted as the service counts: members
with a VM and members that wait for one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.compute.model import ComputeSnapshot, GroupReference, GroupSpecification
from slurm_hooks.reconcile.specifications import group_of, group_of_job, with_ordinal
from slurm_hooks.slurm.model import Job

MOST_VMS_A_GROUP = 1000
"""The default limit of a zonal managed instance group; docs of Compute Engine, November 2026."""


class Rooms:
    """The groups of all pools in one pass, with what this pass adds to them."""

    def __init__(self, cluster: Cluster, compute: ComputeSnapshot) -> None:
        self._cluster = cluster
        self._compute = compute
        self._sizes = _sizes(compute)
        self._groups: dict[tuple[str, int | None], list[GroupSpecification]] = {}

    def groups(self, pool: NodePool, job: Job | None) -> tuple[GroupSpecification, ...]:
        """The groups for a job, or for nobody, that exist or were chosen in this pass."""
        return tuple(self._known(pool, job))

    def choose(self, pool: NodePool, job: Job | None, count: int) -> GroupSpecification:
        """The first group with room for so many VMs more; it may still have to be created."""
        known = self._known(pool, job)
        for group in known:
            if self._sizes[group.reference] + count <= MOST_VMS_A_GROUP:
                return group
        known.append(with_ordinal(known[0], len(known) + 1))
        return known[-1]

    def add(self, group: GroupReference, count: int) -> None:
        """Note that a group will have so many VMs more, or fewer."""
        self._sizes[group] += count

    def _known(self, pool: NodePool, job: Job | None) -> list[GroupSpecification]:
        owner = job if pool.compact_placement else None
        key = pool.pool_id, owner.job_id if owner else None
        if key not in self._groups:
            self._groups[key] = list(self._existing(pool, owner))
        return self._groups[key]

    def _existing(self, pool: NodePool, owner: Job | None) -> Iterator[GroupSpecification]:
        """The first group, whether it exists or not, and those that follow it and exist."""
        cluster = self._cluster
        first = group_of_job(cluster, pool, owner) if owner else group_of(cluster, pool)
        yield first
        for ordinal in itertools.count(2):
            following = with_ordinal(first, ordinal)
            if following.reference not in self._compute.groups:
                return
            yield following


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
