"""Idle nodes that are powered down before their time: their VM goes, or it ends too soon for a job.

A VM may be stopped while slurmd still answers: a Spot VM that is preempted, one that a person
deletes. Slurm would give its idle node to a job, which would lose it in a moment.

Jobs must not starve behind our reservations: idle nodes with too little life are renewed.

A job that waits for nodes, while nodes of its partition are idle and only end too early for it,
gets fresh ones: as many of them as it lacks are powered down, and never one more. Nothing is done
for a job that would lack nodes even then, or whose nodes are free already. Slurm's reasons do not
tell whether life is all that a job lacks: one that waits for a node that it names, or for more
memory, is told the same. So no more nodes are renewed for a start of a job than it needs: what did
not help once is not repeated. Jobs beyond the longest life of the pool are treated alike: no node
fits them, but on a fresh one they get the most, and nodes without a VM have no reservation that
keeps them off. Of the nodes that a job names none is renewed unless it can have them all, and none
that it excludes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from slurm_hooks.reconcile.actions import Action, Expectation, ReasonCode, UpdateNode
from slurm_hooks.reconcile.end_of_life import is_ours
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.pool_record import read_record
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.reconcile.views import NodeView
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Job, JobState, NodeFlag

_LACKS_NODES = ("Resources", "ReqNodeNotAvail", "Nodes required", "Nodes_required")
"""How the reasons of jobs begin that wait for nodes to be free. Those of lower priority wait with
another reason until it is their turn."""

_KEPT_OFF = (
    NodeFlag.DRAIN,
    NodeFlag.FAIL,
    NodeFlag.INVALID_REG,
    NodeFlag.REBOOT_ISSUED,
    NodeFlag.REBOOT_REQUESTED,
    NodeFlag.POWER_DRAIN,
    NodeFlag.BLOCKED,
)
_COMING_FREE = frozenset(
    {
        Intent.STARTING,
        Intent.ABANDONED,
        Intent.ASKED_OFF,
        Intent.STOPPING,
        Intent.OFF,
        Intent.STATIC_OFF,
        Intent.TRAPPED,
    }
)
_LEAST_GAIN_SECONDS = 600
_LEAST_GAIN_SHARE = 10
"""A fresh VM must live longer by so many seconds, or by this fraction of a short life: else an
impossible job would have VMs renewed without end."""


def plan_recycling(scene: Scene) -> Iterator[Action]:
    """The idle nodes to power down: their VMs go, or jobs need more life than they have left."""
    yield from _departures(scene)
    yield from _renewals(scene)


def _departures(scene: Scene) -> Iterator[UpdateNode]:
    for view in scene.world.views.values():
        if view.vm_phase is not VmPhase.LEAVING or view.vm is None:
            continue
        if _is_idle(view) and not view.node.state.has(*_KEPT_OFF):
            yield UpdateNode(
                view.node.name,
                (NodeUpdate.POWER_DOWN,),
                Expectation.IDLE,
                ReasonCode.VM_GOES,
                code=view.vm.status.value,
            )


def _renewals(scene: Scene) -> Iterator[UpdateNode]:
    waiting = [job for job in scene.slurm.jobs.values() if _lacks_nodes(job)]
    if not waiting:
        return
    free = _free_nodes(scene)
    held = held_pools(scene)
    taken: set[str] = set()
    for job in sorted(waiting, key=lambda job: (-job.priority, job.job_id)):
        for partition in _open_partitions(job, scene):
            views = [view for view in free.get(partition, ()) if view.node.name not in taken]
            chosen = _nodes_for(job, views, held, scene.now)
            stale = [view for view in chosen if not _fits(view, job, scene.now)]
            if len(stale) > _renewals_left(job, scene.memory):
                continue
            taken.update(view.node.name for view in chosen)
            yield from (_power_down(view, job) for view in stale)
            if chosen:
                break


def _open_partitions(job: Job, scene: Scene) -> list[str]:
    """The partitions of the job that start jobs; one that we cannot see counts."""
    known = scene.slurm.partitions
    names = job.partition.split(",")
    return [name for name in names if name not in known or known[name].state == "UP"]


def _renewals_left(job: Job, memory: Memory) -> int:
    """How many nodes may still be renewed for this start of the job."""
    return max(job.node_count, 1) - memory.renewals.get(job.start, 0)


def _lacks_nodes(job: Job) -> bool:
    return job.state is JobState.PENDING and job.reason.startswith(_LACKS_NODES)


def _free_nodes(scene: Scene) -> dict[str, list[NodeView]]:
    """By partition: nodes that no job has and that only their life may keep from one."""
    reserved = {
        node
        for reservation in scene.slurm.reservations.values()
        if not is_ours(reservation)
        for node in reservation.nodes
    }
    free: dict[str, list[NodeView]] = {}
    for name, view in scene.world.views.items():
        if name not in reserved and name not in scene.world.holders and _is_free(view):
            for partition in view.node.partitions:
                free.setdefault(partition, []).append(view)
    return free


def _is_free(view: NodeView) -> bool:
    state = view.node.state
    if state.has(*_KEPT_OFF):
        return False
    return view.intent in _COMING_FREE or _is_idle(view)


def _is_idle(view: NodeView) -> bool:
    state = view.node.state
    return (
        view.intent is Intent.REGISTERED
        and view.step is Step.LEAVE
        and state.base is BaseState.IDLE
        and not state.has(NodeFlag.COMPLETING, NodeFlag.NOT_RESPONDING)
    )


def held_pools(scene: Scene) -> frozenset[str]:
    """Pools that are held: a node of theirs that is powered down does not come back soon."""
    records = (
        (view.pool.pool_id, read_record(view.node.comment))
        for view in scene.world.views.values()
        if view.node.comment
    )
    return frozenset(
        pool_id for pool_id, record in records if record is not None and record.is_held(scene.now)
    )


def _nodes_for(
    job: Job, views: Sequence[NodeView], held_pools: Collection[str], now: datetime
) -> list[NodeView]:
    """The nodes that the job can have: those with life enough first, then the shortest lives.

    None where there are too few, or where one is missing that the job names.
    """
    excluded, required = set(job.excluded_nodes), set(job.required_nodes)
    views = [view for view in views if view.node.name not in excluded]
    fitting = [view for view in views if _fits(view, job, now)]
    renewable = sorted(
        (
            view
            for view in views
            if view.pool.pool_id not in held_pools
            and not _fits(view, job, now)
            and _is_renewable(view, now)
        ),
        key=lambda view: (_seconds_left(view, now), view.node.name),
    )
    possible = [*fitting, *renewable]
    named = [view for view in possible if view.node.name in required]
    if len(named) < len(required):
        return []
    others = [view for view in possible if view.node.name not in required]
    needed = max(job.node_count, len(required), 1)
    chosen = [*named, *others][:needed]
    return chosen if len(chosen) == needed else []


def _fits(view: NodeView, job: Job, now: datetime) -> bool:
    """Whether Slurm can put the job there: a node whose VM has no end yet has no reservation."""
    left = _seconds_left(view, now)
    if left is None:
        return True
    return job.time_limit_seconds is not None and job.time_limit_seconds <= left


def _is_renewable(view: NodeView, now: datetime) -> bool:
    left, life = _seconds_left(view, now), view.pool.run_duration_seconds
    if left is None or life is None or not _is_idle(view) or view.vm_phase is not VmPhase.RUNNING:
        return False
    return life - left >= min(_LEAST_GAIN_SECONDS, life / _LEAST_GAIN_SHARE)


def _seconds_left(view: NodeView, now: datetime) -> float | None:
    """How long the node's VM lives on; None where a fresh one is to come."""
    if view.intent in _COMING_FREE and view.intent is not Intent.STARTING:
        return None
    if view.vm is None or view.vm.termination_time_utc is None:
        return None
    return (view.vm.termination_time_utc - now) / timedelta(seconds=1)


def _power_down(view: NodeView, job: Job) -> UpdateNode:
    return UpdateNode(
        view.node.name,
        (NodeUpdate.POWER_DOWN,),
        Expectation.IDLE,
        ReasonCode.END_NEAR,
        detail=f"job {job.job_id}",
        renewed_for=job.start,
    )
