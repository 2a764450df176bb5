"""Nodes that wait for capacity, as people are told: by pool, and in the nodes' own reasons.

A job's owner reads it in the job's comment; a node that waits for no job, such as a static one,
has nobody who is told otherwise. Where Slurm keeps a reason that comes without a state, the node
has it in its reason, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from slurm_hooks.reconcile.actions import (
    ClearReason,
    Expectation,
    Notice,
    NoticeKind,
    SetReason,
    WaitKind,
)
from slurm_hooks.reconcile.comments import capacity_reason, pool_waits_text, tells_waiting
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.plan_nodes import wanted_since
from slurm_hooks.reconcile.plan_requests import RequestPlan
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.specifications import is_in_slurm
from slurm_hooks.reconcile.views import NodeView

GRANTED_SOON = timedelta(minutes=1)
"""A request that is granted at once is seen waiting by a pass or two: that is no news yet, unless
Compute Engine has said why it waits."""

MOST_REASONS_A_PASS = 10
"""Each text is a command of its own; the rest is told in the next passes."""

_WAITS = (WaitKind.PLACE, WaitKind.CAPACITY)


def waiting_views(scene: Scene, requests: RequestPlan) -> tuple[NodeView, ...]:
    """The nodes that wait for capacity, or for their turn to ask for it."""
    waits = requests.waits
    return tuple(
        view
        for name, view in scene.world.views.items()
        if (waits[name].kind in _WAITS if name in waits else _awaits_capacity(view))
    )


def count_by_pool(scene: Scene, waiting: Iterable[NodeView]) -> dict[str, int]:
    """How many of the nodes are of each pool, with those that have none."""
    counts = {pool.pool_id: 0 for pool in scene.cluster.pools.values() if is_in_slurm(pool)}
    for view in waiting:
        counts[view.pool.pool_id] += 1
    return counts


def waiting_pools(
    scene: Scene, requests: RequestPlan, waiting: Iterable[NodeView]
) -> Iterator[Notice]:
    """One condition for each pool with nodes that wait for no job."""
    by_pool: dict[str, list[NodeView]] = {}
    for view in waiting:
        if view.owner is None:
            by_pool.setdefault(view.pool.pool_id, []).append(view)
    for pool_id, views in by_pool.items():
        code = next(filter(None, (_code(view, requests) for view in views)), "")
        times = (wanted_since(view, None) for view in views)
        since = min((time for time in times if time is not None), default=None)
        if code or (since is not None and scene.now - since > GRANTED_SOON):
            detail = pool_waits_text(len(views), views[0].pool.machine_type, code, since)
            yield Notice(NoticeKind.AWAITS_CAPACITY, f"pool {pool_id}", detail, code=code)


def plan_waits(scene: Scene) -> Iterator[SetReason | ClearReason]:
    """The reasons of nodes that wait for capacity, and of those that have waited."""
    if not scene.slurm.keeps_lone_reason:
        return
    texts: set[str] = set()
    for view in scene.world.views.values():
        text = _reason(view, scene.now)
        if text and text != view.node.reason and still_holds(Expectation.WAKING, view.node):
            if text in texts or len(texts) < MOST_REASONS_A_PASS:
                texts.add(text)
                yield SetReason(view.node.name, text)
        elif not text and view.node.reason and _is_told_in_vain(view):
            yield ClearReason(view.node.name, Expectation.TOLD_TO_WAIT)


def _awaits_capacity(view: NodeView) -> bool:
    return view.step is Step.AWAIT_CAPACITY and view.vm_phase is VmPhase.NONE


def _code(view: NodeView, requests: RequestPlan) -> str:
    wait = requests.waits.get(view.node.name)
    return wait.code if wait is not None else _code_of_last_attempt(view)


def _code_of_last_attempt(view: NodeView) -> str:
    error = None
    if view.request is not None:
        error = view.request.request.last_attempt_error
    elif view.member is not None:
        error = view.member.last_attempt_error
    return error.code if error is not None else ""


def _reason(view: NodeView, now: datetime) -> str:
    """What a node's reason tells of its wait; empty where it does not wait."""
    if not _awaits_capacity(view):
        return ""
    since = wanted_since(view, view.owner)
    code = _code_of_last_attempt(view)
    if not code and (since is None or now - since <= GRANTED_SOON):
        return ""
    return capacity_reason(code, since)


def _is_told_in_vain(view: NodeView) -> bool:
    """Whether its reason tells of a wait that is over. Registered nodes: see `plan_reasons`."""
    is_up = view.intent is Intent.REGISTERED
    return not is_up and tells_waiting(view.node.reason)
