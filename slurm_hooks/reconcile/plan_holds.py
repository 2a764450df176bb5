"""Pools that fail in a row are held: their free nodes are not offered, so Slurm takes other pools.

Failures in a row are counted in a `PoolRecord` that Slurm keeps for us. Enough of them hold the
pool: its free nodes that are off are drained, with the reason and until when. One is enough where
the pool's `capacity_wait_limit_seconds` has passed: the operator has said that jobs wait no longer
for it, and without a hold Slurm would give the job the same nodes again. After the hold all are
offered again; the next failure holds the pool at once and for twice as long, and a node that
registers on a VM younger than the last failure ends the count.

Invariants: only free nodes that are off or going off are drained, and only those drained by us
are given back, with IDLE (RESUME and UNDRAIN leave a node that is off NOT_RESPONDING). A node
that a person drains or gives back in between stays so: while a hold stands, only nodes whose
reason is ours from a failed start are drained.

One failure is counted once: what was counted is remembered when its count was written down. After
a restart, a failed request that began before the last failure in the record counts as counted; it
is listed for a while. One that failed only after the restart then goes uncounted, and a VM that
still does not register counts once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.compute.model import RequestState
from slurm_hooks.reconcile.actions import (
    Action,
    Expectation,
    KeepPoolRecord,
    ReasonCode,
    UpdateNode,
)
from slurm_hooks.reconcile.capacity_wait import WAIT_LIMIT_CODE, overdue_requests
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.failure_table import Reaction
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.pool_record import (
    PoolFailure,
    PoolRecord,
    hold_end,
    hold_phrase,
    read_record,
    with_failures,
    with_hold,
)
from slurm_hooks.reconcile.reasons import is_ours
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.views import NodeView, deletion_of_member
from slurm_hooks.slurm.client import NodeUpdate

_NEVER = datetime.min.replace(tzinfo=UTC)
_STARTS = frozenset({Intent.STARTING, Intent.ABANDONED})
_NEVER_REGISTERED = frozenset({VmPhase.OVERDUE, VmPhase.BROKEN})


@dataclass
class _Pool:
    """What one pass sees of a pool."""

    views: list[NodeView] = field(default_factory=list)
    failures: list[PoolFailure] = field(default_factory=list)
    keeper: NodeView | None = None
    """The node that keeps the pool's record, if one does."""
    record: PoolRecord | None = None


def plan_holds(scene: Scene) -> Iterator[Action]:
    """Count failures, hold and release pools, and drain and give back nodes to match."""
    pools: dict[str, _Pool] = {}
    for view in scene.world.views.values():
        if view.leaves:
            continue
        pool = pools.get(view.pool.pool_id)
        if pool is None:
            pool = pools[view.pool.pool_id] = _Pool()
        pool.views.append(view)
        record = read_record(view.node.comment) if view.node.comment else None
        if record is not None and pool.keeper is None:
            pool.keeper, pool.record = view, record
    for pool_id, failure in _failed_calls(scene):
        if pool_id in pools:
            pools[pool_id].failures.append(failure)
    for pool_id, pool in pools.items():
        pool.failures += _failed_boots(pool.views, scene.now)
        yield from _plan_pool(scene, pool_id, pool)


def _plan_pool(scene: Scene, pool_id: str, pool: _Pool) -> Iterator[Action]:
    new = _uncounted(scene.memory.counted_failures.get(pool_id), pool)
    record, begins = _next_record(scene, pool, new)
    if record is not None and record.is_held(scene.now):
        yield from _drains(pool.views, record, begins)
    else:
        yield from _returns(pool.views, scene.now, succeeded=pool.record is not None and not record)
    if record == pool.record and not new:
        return
    keeper = pool.keeper or _new_keeper(pool.views)
    if keeper is not None:
        keys = frozenset(failure.key for failure in pool.failures)
        yield KeepPoolRecord(pool_id, keeper.node.name, record, keys)


def _uncounted(counted: frozenset[str] | None, pool: _Pool) -> list[PoolFailure]:
    if counted is not None or pool.record is None:
        return [failure for failure in pool.failures if failure.key not in (counted or ())]
    last = pool.record.last_utc
    return [f for f in pool.failures if f.began_utc is None or f.began_utc > last]


def _new_keeper(views: Iterable[NodeView]) -> NodeView | None:
    """A node without a comment, best one without a reason, which the comment would cost it."""
    free = [view for view in views if not view.node.comment]
    return next((view for view in free if not view.node.reason), free[0] if free else None)


def _next_record(
    scene: Scene, pool: _Pool, new: list[PoolFailure]
) -> tuple[PoolRecord | None, bool]:
    """The record after this pass, and whether a hold begins with it."""
    record, policy = pool.record, scene.policy
    if record is not None and (
        _latest_success(pool.views) > record.last_utc
        or record.is_forgotten(policy, _slowest_failure_seconds(pool, policy), scene.now)
    ):
        record = None
    if not new:
        return record, False
    record = with_failures(record, new)
    is_enough = (
        record.holds > 0
        or record.failures >= policy.hold_after_failures
        or any(failure.code == WAIT_LIMIT_CODE for failure in new)
    )
    if record.is_held(scene.now) or not is_enough:
        return record, False
    return with_hold(record, policy, scene.now), True


def _slowest_failure_seconds(pool: _Pool, policy: Policy) -> int:
    """How long it may take until a start fails: by waiting for capacity, or by not booting."""
    waits = (view.pool.capacity_wait_limit_seconds or 0 for view in pool.views)
    return policy.boot_timeout_seconds + max(waits, default=0)


def _latest_success(views: Iterable[NodeView]) -> datetime:
    """When the youngest VM was made whose node has registered."""
    made = (
        view.vm.creation_time_utc
        for view in views
        if view.intent is Intent.REGISTERED
        and view.vm_phase is VmPhase.RUNNING
        and view.vm is not None
        and view.vm.creation_time_utc is not None
    )
    return max(made, default=_NEVER)


def _drains(views: Iterable[NodeView], record: PoolRecord, begins: bool) -> Iterator[UpdateNode]:
    for view in views:
        failed_since = is_ours(view.node.reason) and hold_end(view.node.reason) != record.until_utc
        if (begins or failed_since) and still_holds(Expectation.FREE_AND_OFF, view.node):
            yield UpdateNode(
                view.node.name,
                (NodeUpdate.DRAIN,),
                Expectation.FREE_AND_OFF,
                ReasonCode.POOL_HELD,
                code=hold_phrase(record),
                detail=record.cause,
            )


def _returns(views: Iterable[NodeView], now: datetime, *, succeeded: bool) -> Iterator[UpdateNode]:
    """Nodes drained by us whose time is over, or all of them after a success."""
    for view in views:
        end = hold_end(view.node.reason)
        is_over = end is not None and (succeeded or end <= now)
        if is_over and still_holds(Expectation.HELD, view.node):
            yield UpdateNode(view.node.name, (NodeUpdate.IDLE,), Expectation.HELD, None)


def _failed_calls(scene: Scene) -> Iterator[tuple[str, PoolFailure]]:
    """Requests that failed or were refused, counted before or not, each with its pool."""
    yield from _failed_requests(scene)
    yield from _failed_members(scene)
    yield from _given_up(scene)
    yield from _refusals(scene)


def _given_up(scene: Scene) -> Iterator[tuple[str, PoolFailure]]:
    """Requests that waited for too long, in the one pass that gives them up: the pool has no
    capacity, and jobs shall try the next one."""
    for overdue in overdue_requests(scene):
        marked = overdue.request
        key = f"{marked.request.reference.name} of {marked.request.creation_time_utc}"
        yield marked.mark.pool, PoolFailure(key, scene.now, WAIT_LIMIT_CODE, overdue.detail)


def _failed_requests(scene: Scene) -> Iterator[tuple[str, PoolFailure]]:
    for reference, marked in scene.world.requests.items():
        if marked.request.state is RequestState.FAILED:
            error = marked.request.error
            code, detail = (error.code, error.message) if error else ("UNKNOWN", "")
            made = marked.request.creation_time_utc
            key = f"{reference.group.name}/{reference.name} of {made}"
            yield marked.mark.pool, PoolFailure(key, scene.now, code, detail, made)


def _failed_members(scene: Scene) -> Iterator[tuple[str, PoolFailure]]:
    """VMs that could not be created by name; those of one start of a job count once. That of
    nobody's node is known by how often its member was taken out before."""
    for name, view in scene.world.views.items():
        if view.step is not Step.FAIL_START or view.member is None or view.error is None:
            continue
        if view.leaves:
            continue
        tries = scene.memory.attempts.get(deletion_of_member(view.member).subject, 0)
        key = f"member {name} after {tries}"
        if view.owner is not None:
            key = f"members of job {view.owner.job_id} start {view.owner.restarts}"
        failure = PoolFailure(key, scene.now, view.error.code, view.error.message)
        yield view.pool.pool_id, failure


def _refusals(scene: Scene) -> Iterator[tuple[str, PoolFailure]]:
    for subject, failure in scene.memory.failures.items():
        if failure.reaction is Reaction.FAIL_START:
            key = f"{subject} until {failure.until_utc.isoformat()}"
            yield failure.pool_id, PoolFailure(key, scene.now, failure.code, failure.message)


def _failed_boots(views: list[NodeView], now: datetime) -> list[PoolFailure]:
    """VMs that never registered. Those of one request count once, and not at all where one that
    is as young as the request has registered: a bad VM among many is no failure of the pool."""
    failures = []
    for view in views:
        if view.intent in _STARTS and view.vm_phase in _NEVER_REGISTERED and view.vm is not None:
            made, key = view.vm.creation_time_utc, f"boot {view.vm.instance_id}"
            if view.request is not None:
                made = view.request.request.creation_time_utc
                key = f"boot {view.request.request.reference.name} of {made}"
            detail = f"slurmd of {view.node.name} did not register"
            failures.append((made or now, PoolFailure(key, now, "NOT_REGISTERED", detail)))
    if not failures:
        return []
    success = _latest_success(views)
    return list({failure.key: failure for made, failure in failures if made > success}.values())
