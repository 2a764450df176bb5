"""Resize requests: one per job with exactly its nodes, one per node where no job asked.

A job starts with all of its nodes or not at all, and so does a request. While one of a job's
names is still taken by a VM that goes away, the whole job's request waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    GroupSpecification,
    RequestState,
    Scope,
    ScopeKind,
)
from slurm_hooks.reconcile.actions import Action, DeleteRequest, InsertGroup, InsertRequest
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import VmPhase
from slurm_hooks.reconcile.plan_nodes import failed_start, is_missing_twice, is_powering_up
from slurm_hooks.reconcile.snapshot import Failure, Memory
from slurm_hooks.reconcile.specifications import group_of, is_served, request_of, template_of
from slurm_hooks.reconcile.views import MarkedRequest, NodeView, World
from slurm_hooks.slurm.model import Job

_NAME_TAKEN = frozenset({Step.AWAIT_DELETION, Step.DELETE_VM, Step.REPLACE_VM})


@dataclass(frozen=True, slots=True)
class Gang:
    """Nodes that come together or not at all: those of one job in one pool, or a single one."""

    pool: NodePool
    job: Job | None
    views: tuple[NodeView, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names that the gang's request must have."""
        return tuple(view.node.name for view in self.views)


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """The actions for all gangs, and which gang waits for its pool's group or failed."""

    actions: tuple[Action, ...]
    awaiting_group: frozenset[str]
    failures: dict[str, Failure]


def plan_requests(
    cluster: Cluster, world: World, compute: ComputeSnapshot, memory: Memory
) -> RequestPlan:
    """Ask for the VMs of every gang that is ready, creating its pool's group first if needed.

    `awaiting_group` and `failures` of the result are keyed by node name.
    """
    actions: dict[str, Action] = {}
    awaiting: set[str] = set()
    failures: dict[str, Failure] = {}
    taken = _taken_names(world)
    groups = {
        pool.pool_id: group_of(cluster, pool) for pool in cluster.pools.values() if is_served(pool)
    }
    for gang in _ready_gangs(world, memory):
        action = _next_action(cluster, gang, groups[gang.pool.pool_id], compute, taken)
        failure = memory.failures.get(action.subject)
        if failure is not None:
            failures.update(dict.fromkeys(gang.nodes, failure))
            for view in gang.views:
                update = failed_start(view, failure.code, failure.message)
                actions[update.subject] = update
            continue
        actions[action.subject] = action
        if isinstance(action, InsertGroup):
            awaiting.update(gang.nodes)
    return RequestPlan(tuple(actions.values()), frozenset(awaiting), failures)


def finished_requests(world: World) -> Iterator[DeleteRequest]:
    """Requests that are over and that nothing refers to any more."""
    for marked in world.requests.values():
        if not marked.request.state.is_active and not _is_needed(marked, world):
            yield DeleteRequest(marked.request.reference)


def _next_action(
    cluster: Cluster,
    gang: Gang,
    group: GroupSpecification,
    compute: ComputeSnapshot,
    taken: dict[object, set[str]],
) -> InsertGroup | InsertRequest:
    if group.reference not in compute.groups:
        template = template_of(cluster, gang.pool)
        return InsertGroup(gang.pool, template, Scope(ScopeKind.GLOBAL, ""), group)
    names = taken.get(group.reference, set())
    request = request_of(cluster, gang.pool, group.reference, gang.nodes, gang.job, names)
    return InsertRequest(request, gang.job.job_id if gang.job else None)


def _taken_names(world: World) -> dict[object, set[str]]:
    taken: dict[object, set[str]] = {}
    for reference in world.requests:
        taken.setdefault(reference.group, set()).add(reference.name)
    return taken


def _ready_gangs(world: World, memory: Memory) -> Iterator[Gang]:
    """Gangs whose every member can be asked for now, those of lower job ids first."""
    wanted: dict[tuple[str, int, str], list[NodeView]] = {}
    blocked: set[tuple[str, int, str]] = set()
    for view in world.views.values():
        key = _gang_key(view)
        if view.step is Step.REQUEST or (
            view.step is Step.REQUEST_AGAIN and is_missing_twice(view, memory)
        ):
            wanted.setdefault(key, []).append(view)
        elif view.step in _NAME_TAKEN or view.step is Step.REQUEST_AGAIN:
            blocked.add(key)
    for key in sorted(wanted, key=lambda key: key[1:]):
        if key not in blocked:
            views = wanted[key]
            yield Gang(views[0].pool, views[0].owner, tuple(views))


def _gang_key(view: NodeView) -> tuple[str, int, str]:
    """Pool, job and node: the node's own name only where no job owns it."""
    if view.owner is not None:
        return view.pool.pool_id, view.owner.job_id, ""
    return view.pool.pool_id, 0, view.node.name


def _is_needed(marked: MarkedRequest, world: World) -> bool:
    """Whether a final request still says something that no other place does.

    While a member is powering up without a job, the mark tells for whom. A granted request is
    the record of its VMs until the last of them is gone.
    """
    members = [world.views[name] for name in marked.request.instances if name in world.views]
    if any(is_powering_up(view) and _is_about(view, marked) for view in members):
        return True
    granted = marked.request.state is RequestState.SUCCEEDED
    return granted and any(view.vm_phase is not VmPhase.NONE for view in members)


def _is_about(view: NodeView, marked: MarkedRequest) -> bool:
    return view.owner is None or view.request is marked
