"""What is known of each node, from both systems and our own history, side by side. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from slurm_hooks.boot.console import BootStep
from slurm_hooks.cluster.topology import Cluster, NodePool, parse_node_name
from slurm_hooks.compute.model import ComputeSnapshot, GroupReference, Instance, Member
from slurm_hooks.compute.ownership import decode
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.owners import holders_of
from slurm_hooks.reconcile.repairs import RepairLog
from slurm_hooks.reconcile.snapshot import Memory, Unavailable
from slurm_hooks.reconcile.specifications import is_outdated, present_generations
from slurm_hooks.reconcile.views import NodeView, join
from slurm_hooks.slurm.model import Job, Node, SlurmSnapshot
from slurm_hooks.status.model import StatusInputs


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node. `pool` is None for one that the cluster file does not name any more. `must_exist`:
    it is static or a login node.

    `node` is Slurm's record and None where there is none or Slurm was not read, `view` what both
    systems say together and None where one of them was not read. `outdated`: its VM is of another
    generation than its pool. `events` are those of the node, the oldest first.
    """

    name: str
    pool_id: str
    pool: NodePool | None
    must_exist: bool
    node: Node | None = None
    view: NodeView | None = None
    vm: Instance | None = None
    member: Member | None = None
    jobs: tuple[Job, ...] = ()
    boot_step: BootStep | None = None
    outdated: bool = False
    events: tuple[Event, ...] = ()

    @property
    def is_login(self) -> bool:
        """Whether it stands outside Slurm."""
        return self.pool is not None and self.pool.is_login


def gather(inputs: StatusInputs) -> list[NodeFacts]:
    """All nodes of the cluster, pool by pool and by index; those that leave it come last."""
    slurm = inputs.slurm if isinstance(inputs.slurm, SlurmSnapshot) else SlurmSnapshot()
    compute = inputs.compute if isinstance(inputs.compute, ComputeSnapshot) else ComputeSnapshot()
    views = _views(inputs)
    holders = holders_of(slurm.jobs.values())
    log = RepairLog() if isinstance(inputs.repairs, Unavailable) else inputs.repairs
    outdated = _outdated_groups(inputs.cluster, compute)
    found = []
    for name, pool_id, pool in _names(inputs.cluster, slurm, compute):
        vm = compute.instances.get(name)
        found.append(
            NodeFacts(
                name,
                pool_id,
                pool,
                must_exist=inputs.cluster.is_static(name),
                node=slurm.nodes.get(name),
                view=views.get(name),
                vm=vm,
                member=compute.members.get(name),
                jobs=holders.get(name, ()),
                boot_step=inputs.boot_steps.get(name),
                outdated=vm is not None and vm.group in outdated,
                events=log.by_node.get(name, ()),
            )
        )
    return found


def _names(
    cluster: Cluster, slurm: SlurmSnapshot, compute: ComputeSnapshot
) -> Iterator[tuple[str, str, NodePool | None]]:
    named: set[str] = set()
    for pool_id, pool in cluster.pools.items():
        for name in cluster.node_names(pool_id):
            named.add(name)
            yield name, pool_id, pool
    for name in dict.fromkeys((*slurm.nodes, *compute.instances)):
        parts = parse_node_name(name)
        if name not in named and parts is not None and parts.cluster == cluster.cluster_id:
            yield name, parts.pool, None


def _views(inputs: StatusInputs) -> Mapping[str, NodeView]:
    slurm, compute = inputs.slurm, inputs.compute
    if isinstance(slurm, Unavailable) or isinstance(compute, Unavailable):
        return {}
    calls, now = inputs.resume_calls, inputs.now
    return join(inputs.cluster, slurm, compute, calls, Memory(), now).views


def _outdated_groups(cluster: Cluster, compute: ComputeSnapshot) -> frozenset[GroupReference]:
    """The groups of ours whose VMs are not what their pools are now."""
    present = present_generations(cluster)
    marks = {ref: decode(group.description) for ref, group in compute.groups.items()}
    return frozenset(
        reference
        for reference, mark in marks.items()
        if mark is not None and is_outdated(mark, present)
    )


def last_replacement(facts: NodeFacts) -> datetime | None:
    """When the node was last given up for a new VM; None where that was never."""
    kinds = (EventKind.VM_DELETION, EventKind.VM_REPORT_AND_REPLACEMENT)
    times = (event.time_utc for event in facts.events if event.kind in kinds)
    return max(times, default=None)
