"""One view per node of ours: its phases, its request, its VM and the job that owns its start.

This is where the two systems are joined. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    ErrorDetail,
    Instance,
    InstanceStatus,
    Member,
    RequestReference,
)
from slurm_hooks.reconcile.actions import DeleteInstance
from slurm_hooks.reconcile.end_of_life import ended_nodes
from slurm_hooks.reconcile.marked_requests import (
    MarkedRequest,
    latest_of,
    marked_requests,
    of_present_start,
    owner_ended,
    requests_by_node,
    serves,
)
from slurm_hooks.reconcile.node_table import Step, row_for
from slurm_hooks.reconcile.owners import askers_of, holders_of, owner_of
from slurm_hooks.reconcile.phases import (
    Intent,
    RequestPhase,
    VmPhase,
    intent_of,
    member_phases_of,
    request_phase_of,
    vm_phase_of,
)
from slurm_hooks.reconcile.snapshot import Memory, ResumeCall
from slurm_hooks.reconcile.specifications import is_in_slurm, uses_requests
from slurm_hooks.slurm.model import Job, Node, NodeFlag, Partition, SlurmSnapshot

POWERING_UP = (Intent.STARTING, Intent.DISOWNED, Intent.ABANDONED, Intent.WITHDRAWN)
"""What Slurm asks for while it waits for a node to register."""

LEAVES = ErrorDetail("LEAVES_CLUSTER", "the cluster file does not name the node any more")
"""Why a node is not started that is to leave the cluster."""


class NodeView(NamedTuple):
    """All that is known of one node in this pass. There are thousands: a tuple is made fastest.

    `error` is why no VM comes, where the start has failed. `member` is that of the node in a pool
    without requests, while it has no VM. `leaves`: the cluster file does not name it any more.
    """

    node: Node
    pool: NodePool
    intent: Intent
    request_phase: RequestPhase
    vm_phase: VmPhase
    step: Step
    owner: Job | None = None
    request: MarkedRequest | None = None
    vm: Instance | None = None
    member: Member | None = None
    error: ErrorDetail | None = None
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """The joined snapshot: node views, our requests, and who holds which node."""

    views: Mapping[str, NodeView]
    requests: Mapping[RequestReference, MarkedRequest]
    holders: Mapping[str, tuple[Job, ...]]
    ended: frozenset[str] = frozenset()
    """Nodes whose end of life has come, as our reservations tell."""


def join(
    cluster: Cluster,
    slurm: SlurmSnapshot,
    compute: ComputeSnapshot,
    calls: Iterable[ResumeCall],
    memory: Memory,
    now: datetime,
) -> World:
    """Join what Slurm and Compute Engine say, for the nodes that are ours."""
    requests = marked_requests(compute, cluster)
    by_node = requests_by_node(requests.values())
    holders = holders_of(slurm.jobs.values())
    askers = askers_of(calls)
    offered = _offered(slurm.partitions.values())
    views: dict[str, NodeView] = {}
    for name, node in slurm.nodes.items():
        if NodeFlag.CLOUD not in node.state.flags:
            continue
        pool, leaves = _pool_of(name, cluster)
        if pool is None:
            continue
        is_static = pool.min_node_count > 0 and not leaves and cluster.is_static(name)
        views[name] = _view(
            node,
            pool,
            cluster,
            by_node.get(name, ()),
            compute.instances.get(name),
            None if uses_requests(pool) else compute.members.get(name),
            holders.get(name, ()),
            askers.get(name, frozenset()),
            memory,
            must_exist=is_static and offered(node),
            leaves=leaves,
            now=now,
        )
    ended = ended_nodes(slurm.reservations.values(), now)
    return World(_failed_together(views), requests, holders, ended)


def _pool_of(name: str, cluster: Cluster) -> tuple[NodePool | None, bool]:
    """The pool of a node, and whether the cluster file does not name the node any more; no pool
    where the node is not ours."""
    pool = cluster.pool_of(name)
    if pool is None or not is_in_slurm(pool):
        return cluster.former_pool_of(name), True
    return pool, False


def deletion_of(vm: Instance) -> DeleteInstance:
    """The action that deletes a VM, from its group if it is in one."""
    return DeleteInstance(vm.group, vm.name, vm.zone, vm.instance_id)


def deletion_of_member(member: Member) -> DeleteInstance:
    """The action that takes a member without a VM out of its group."""
    return DeleteInstance(member.group, member.name, "", "")


def _view(
    node: Node,
    pool: NodePool,
    cluster: Cluster,
    candidates: Sequence[MarkedRequest],
    vm: Instance | None,
    member: Member | None,
    holders: tuple[Job, ...],
    askers: frozenset[int],
    memory: Memory,
    *,
    must_exist: bool,
    leaves: bool,
    now: datetime,
) -> NodeView:
    if candidates and not holders:
        candidates = of_present_start(candidates, memory)
    latest = latest_of(candidates) if candidates else None
    owner = owner_of(holders, askers)
    intent = intent_of(
        node,
        held=bool(holders),
        owner_ended=owner_ended(askers, latest, vm),
        must_exist=must_exist,
        leaves=leaves,
    )
    serving = latest if latest is not None and serves(latest, owner) else None
    request_phase = (
        RequestPhase.NONE if serving is None else request_phase_of(serving.request.state)
    )
    in_flight = memory.in_flight
    vm_phase = vm_phase_of(
        vm,
        deletion_in_flight=vm is not None
        and len(in_flight) > 0
        and deletion_of(vm).subject in in_flight,
        is_overdue=vm is not None
        and intent in POWERING_UP
        and _is_overdue(vm, cluster.policy.boot_timeout_seconds, now),
    )
    if member is not None and vm is None:
        request_phase, vm_phase = member_phases_of(
            member,
            deletion_in_flight=deletion_of_member(member).subject in memory.in_flight,
            is_starting=intent is Intent.STARTING,
            is_late=_waits_longer_than(owner, cluster.policy.boot_timeout_seconds, now),
        )
    return NodeView(
        node,
        pool,
        intent,
        request_phase,
        vm_phase,
        row_for(intent, request_phase, vm_phase).step,
        owner=owner,
        request=serving,
        vm=vm,
        member=member,
        error=LEAVES if intent is Intent.DISOWNED else _final_error(request_phase, serving, member),
        leaves=leaves,
    )


def _final_error(
    phase: RequestPhase, request: MarkedRequest | None, member: Member | None
) -> ErrorDetail | None:
    if phase is not RequestPhase.FAILED:
        return None
    if request is not None:
        return request.request.error
    return member.last_attempt_error if member is not None else None


_STARTS = frozenset(
    {
        Step.REQUEST,
        Step.REQUEST_AGAIN,
        Step.AWAIT_CAPACITY,
        Step.AWAIT_BOOT,
        Step.AWAIT_DELETION,
    }
)


def _failed_together(views: dict[str, NodeView]) -> dict[str, NodeView]:
    """Where one VM of a job cannot be created by name, the job's other nodes fail with it: else
    the VMs that came would be paid for until SuspendTime, and keep others from a start."""
    failed = {
        view.owner.job_id: view
        for view in views.values()
        if view.member is not None and view.step is Step.FAIL_START and view.owner is not None
    }
    if not failed:
        return views
    return {name: _failed_with(view, failed) for name, view in views.items()}


def _failed_with(view: NodeView, failed: Mapping[int, NodeView]) -> NodeView:
    mate = failed.get(view.owner.job_id) if view.owner is not None else None
    if mate is None or view.intent is not Intent.STARTING or view.step not in _STARTS:
        return view
    return view._replace(step=Step.FAIL_START, error=mate.error)


def _offered(partitions: Iterable[Partition]) -> Callable[[Node], bool]:
    """Whether a node is in a partition that takes jobs; where we know none, it is."""
    states = {partition.name: partition.state for partition in partitions}
    return lambda node: (
        not node.partitions or any(states.get(name, "UP") == "UP" for name in node.partitions)
    )


def _is_overdue(vm: Instance, boot_timeout_seconds: int, now: datetime) -> bool:
    """Whether a VM exists for longer than a boot may take. One that is PENDING waits for
    capacity and does not boot yet."""
    if vm.status is InstanceStatus.PENDING or vm.creation_time_utc is None:
        return False
    return now - vm.creation_time_utc > timedelta(seconds=boot_timeout_seconds)


def _waits_longer_than(owner: Job | None, seconds: int, now: datetime) -> bool:
    """Whether the node's job was given it so long ago."""
    given_utc = owner.start_time_utc if owner is not None else None
    return given_utc is not None and now - given_utc > timedelta(seconds=seconds)
