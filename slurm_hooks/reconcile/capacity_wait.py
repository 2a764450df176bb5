"""How long requests waited for capacity, and those that have waited for too long.

All of it is read off Compute Engine: a granted request is listed as long as one of its VMs, and
its VMs were created when it was granted. So a restart loses nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from slurm_hooks.compute.model import Instance, RequestState
from slurm_hooks.reconcile.marked_requests import MarkedRequest
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import VmPhase
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.views import NodeView, World

WAIT_LIMIT_CODE = "CAPACITY_WAIT_LIMIT"
"""Ours, beside the service's codes: the pool's `capacity_wait_limit_seconds` has passed."""

_LAST_REQUESTS = 10


@dataclass(frozen=True, slots=True)
class UsualWait:
    """What the last granted requests of a pool waited, in the median, and how many they are."""

    seconds: int
    requests: int


@dataclass(frozen=True, slots=True)
class Overdue:
    """A request that waited for longer than its pool allows, and the nodes whose jobs wait."""

    request: MarkedRequest
    views: tuple[NodeView, ...]
    limit_seconds: int

    @property
    def detail(self) -> str:
        """What people are told beside the code."""
        return f"none came within {self.limit_seconds} s"


def overdue_requests(scene: Scene) -> Iterator[Overdue]:
    """Requests to give up so that their jobs may start elsewhere.

    One that serves no job may wait for ever, and one whose first VMs exist is being granted.
    """
    if all(pool.capacity_wait_limit_seconds is None for pool in scene.cluster.pools.values()):
        return
    for marked in scene.world.requests.values():
        pool = scene.cluster.pools.get(marked.mark.pool)
        limit = pool.capacity_wait_limit_seconds if pool is not None else None
        since = marked.request.creation_time_utc
        if limit is None or since is None or not marked.request.state.is_active:
            continue
        members = _members(marked, scene.world)
        waiting = tuple(v for v in members if v.step is Step.AWAIT_CAPACITY and v.owner is not None)
        is_granted = any(view.vm_phase is not VmPhase.NONE for view in members)
        if waiting and not is_granted and (scene.now - since).total_seconds() > limit:
            yield Overdue(marked, waiting, limit)


def usual_waits(
    requests: Iterable[MarkedRequest], instances: Mapping[str, Instance]
) -> dict[str, UsualWait]:
    """By pool id, for pools that have granted requests with VMs."""
    granted = sorted(_granted(requests), key=lambda grant: grant[0])
    newest = {name: marked for _, marked in granted for name in marked.request.instances}
    by_pool: dict[str, list[float]] = {}
    for asked, marked in reversed(granted):
        created = [
            vm.creation_time_utc
            for name in marked.request.instances
            if newest[name] is marked
            and (vm := instances.get(name)) is not None
            and vm.creation_time_utc is not None
        ]
        waits = by_pool.setdefault(marked.mark.pool, [])
        if created and len(waits) < _LAST_REQUESTS:
            waits.append(max(0.0, (min(created) - asked).total_seconds()))
    return {
        pool: UsualWait(round(statistics.median(waits)), len(waits))
        for pool, waits in by_pool.items()
        if waits
    }


def _members(marked: MarkedRequest, world: World) -> list[NodeView]:
    views = (world.views.get(name) for name in marked.request.instances)
    return [view for view in views if view is not None and view.request is marked]


def _granted(requests: Iterable[MarkedRequest]) -> Iterator[tuple[datetime, MarkedRequest]]:
    for marked in requests:
        asked = marked.request.creation_time_utc
        if marked.request.state is RequestState.SUCCEEDED and asked is not None:
            yield asked, marked
