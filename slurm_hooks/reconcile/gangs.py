"""Gangs: which nodes are asked for together, and in which order.

A job starts with all of its nodes or not at all, so they are asked for together: in one request
where the service lets them, else in several that start in the same pass. While one of the job's
names is still taken by a VM that goes away, or slurmctld has yet to resume one of its nodes, all
of them wait. Waiting costs the job nothing, since it starts when its last node registers.
Sources: a job reaches ResumeProgram in pieces where ResumeRate is not 0; a request has at most
1,000 VMs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from slurm_hooks.cluster.topology import NodePool
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent
from slurm_hooks.reconcile.plan_nodes import is_surely_missing
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.reconcile.specifications import uses_requests
from slurm_hooks.reconcile.views import NodeView, World
from slurm_hooks.slurm.model import Job, JobState

MOST_VMS_A_REQUEST = 1000
"""What one resize request may ask for."""

_NAME_TAKEN = frozenset({Step.AWAIT_DELETION, Step.DELETE_VM, Step.REPLACE_VM})
_NOT_RESUMED_YET = frozenset({Intent.OFF, Intent.STATIC_OFF, Intent.STOPPING, Intent.ASKED_OFF})


@dataclass(frozen=True, slots=True)
class Part:
    """What one resize request can ask for: nodes of one pool, at most 1,000."""

    pool: NodePool
    views: tuple[NodeView, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names that the part's request must have."""
        return tuple(view.node.name for view in self.views)


@dataclass(frozen=True, slots=True)
class Gang:
    """Nodes that are asked for together: those of one job, or one without a job; in pools without
    resize requests up to a thousand without a job, since one call creates them all."""

    job: Job | None
    parts: tuple[Part, ...]

    @property
    def views(self) -> tuple[NodeView, ...]:
        """The nodes of all parts."""
        return tuple(itertools.chain.from_iterable(part.views for part in self.parts))


def ready_gangs(world: World, memory: Memory, now: datetime) -> Iterator[Gang]:
    """Gangs whose every member can be asked for now, in the order in which they are.

    Jobs come in Slurm's order, by falling priority and then by id; nodes without a job last. A
    node of several jobs is in the gang of one alone, its owner.
    """
    wanted: dict[tuple[int, str], list[NodeView]] = {}
    blocked: set[tuple[int, str]] = set()
    for view in world.views.values():
        if view.step is Step.REQUEST or (
            view.step is Step.REQUEST_AGAIN and is_surely_missing(view, memory, now)
        ):
            wanted.setdefault(_key(view), []).append(view)
        elif (
            view.step in _NAME_TAKEN
            or view.step is Step.REQUEST_AGAIN
            or view.intent is Intent.DISOWNED
        ):
            blocked.add(_key(view))
    ready = [
        views
        for key, views in wanted.items()
        if key not in blocked and not _is_still_waking(views, world)
    ]
    return _gangs(sorted(ready, key=_turn))


def _gangs(ready: Iterable[Sequence[NodeView]]) -> Iterator[Gang]:
    """A gang each, with nobody's nodes of a pool without resize requests put together."""
    nobodys: list[NodeView] = []
    for views in ready:
        owner = views[0].owner
        if owner is None and not uses_requests(views[0].pool):
            nobodys += views
        else:
            yield Gang(owner, tuple(_parts(views)))
    for part in _parts(nobodys):
        yield Gang(None, (part,))


def _key(view: NodeView) -> tuple[int, str]:
    """The job, or the node's own name where no job owns it."""
    return (view.owner.job_id, "") if view.owner is not None else (0, view.node.name)


def _turn(views: Sequence[NodeView]) -> tuple[bool, int, int]:
    job = views[0].owner
    return (True, 0, 0) if job is None else (False, -job.priority, job.job_id)


def _is_still_waking(wanted: Sequence[NodeView], world: World) -> bool:
    """Whether slurmctld has yet to resume others of the job's nodes than these."""
    job = wanted[0].owner
    if job is None or job.state is not JobState.CONFIGURING or len(job.nodes) == len(wanted):
        return False
    views = (world.views.get(name) for name in job.nodes)
    return any(view is not None and view.intent in _NOT_RESUMED_YET for view in views)


def _parts(views: Sequence[NodeView]) -> Iterator[Part]:
    """Whole thousands and a rest: where some requests stand already, the others stay the same."""
    if len(views) == 1:
        yield Part(views[0].pool, (views[0],))
        return
    by_pool: dict[str, list[NodeView]] = {}
    for view in views:
        by_pool.setdefault(view.pool.pool_id, []).append(view)
    for members in by_pool.values():
        for start in range(0, len(members), MOST_VMS_A_REQUEST):
            yield Part(members[0].pool, tuple(members[start : start + MOST_VMS_A_REQUEST]))
