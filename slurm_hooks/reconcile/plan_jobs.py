"""What the owners of waiting jobs are told: waiting for what, with which code, since when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from slurm_hooks.reconcile.actions import JobStatus, TellJob, WaitKind
from slurm_hooks.reconcile.capacity_wait import UsualWait, usual_waits
from slurm_hooks.reconcile.comments import job_comment, tells_end_of_life, tells_failure
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.plan_nodes import wanted_since
from slurm_hooks.reconcile.plan_requests import RequestPlan
from slurm_hooks.reconcile.reasons import is_ours
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.specifications import pool_scope
from slurm_hooks.reconcile.views import NodeView, World
from slurm_hooks.slurm.model import Job, JobState

_WORST_FIRST = (
    WaitKind.FAILED,
    WaitKind.DELETION,
    WaitKind.GROUP,
    WaitKind.PLACE,
    WaitKind.REQUEST,
    WaitKind.CAPACITY,
    WaitKind.BOOT,
)

_KINDS = {
    Step.FAIL_START: WaitKind.FAILED,
    Step.AWAIT_DELETION: WaitKind.DELETION,
    Step.DELETE_VM: WaitKind.DELETION,
    Step.REPLACE_VM: WaitKind.DELETION,
    Step.REQUEST: WaitKind.REQUEST,
    Step.REQUEST_AGAIN: WaitKind.REQUEST,
    Step.AWAIT_CAPACITY: WaitKind.CAPACITY,
    Step.AWAIT_BOOT: WaitKind.BOOT,
}


MOST_TOLD_A_PASS = 100
"""Each comment is a command of its own; those of a thousand jobs must not hold up a pass."""


def tell_jobs(scene: Scene, requests: RequestPlan) -> list[TellJob]:
    """The comments that have to change, as many as a pass can write.

    A person's comment is left as it is. Failures come first and are all named: the nodes of their
    jobs change only after that, since a job may be gone from them a moment later.
    """
    return sorted(_comments(scene, requests), key=lambda tell: not _tells_failure(tell))


def _tells_failure(tell: TellJob) -> bool:
    return tell.status is not None and tell.status.kind is WaitKind.FAILED


def _comments(scene: Scene, requests: RequestPlan) -> Iterator[TellJob]:
    waiting = _views_by_owner(scene.world)
    waits = usual_waits(scene.world.requests.values(), scene.compute.instances) if waiting else {}
    failed = _failed_nodes(scene.world, requests)
    told = 0
    for job in scene.slurm.jobs.values():
        if not job.is_active or (job.admin_comment and not is_ours(job.admin_comment)):
            continue
        views = waiting.get(job.job_id, [])
        if told >= MOST_TOLD_A_PASS and not _has_failed(views, failed):
            continue
        status = _status(job, views, requests, waits) if views else None
        if status is None and _keeps_comment(job):
            continue
        if job_comment(status) != job.admin_comment:
            told += 1
            yield TellJob(job.job_id, status, job.part)


def _failed_nodes(world: World, requests: RequestPlan) -> frozenset[str]:
    return frozenset(
        name
        for name, view in world.views.items()
        if view.step in _KINDS and _kind(view, requests) is WaitKind.FAILED
    )


def _has_failed(views: list[NodeView], failed: frozenset[str]) -> bool:
    return len(failed) > 0 and any(view.node.name in failed for view in views)


def _keeps_comment(job: Job) -> bool:
    comment = job.admin_comment
    if job.state is JobState.RUNNING:
        return tells_end_of_life(comment)
    return job.state is JobState.PENDING and tells_failure(comment)


def _views_by_owner(world: World) -> dict[int, list[NodeView]]:
    """The views that each job waits for: a node may be awaited by several jobs that share it."""
    by_owner: dict[int, list[NodeView]] = {}
    for name, view in world.views.items():
        if view.step in _KINDS:
            for job in world.holders.get(name, ()):
                if job.state is JobState.CONFIGURING:
                    by_owner.setdefault(job.job_id, []).append(view)
    return by_owner


def _status(
    job: Job, views: list[NodeView], requests: RequestPlan, waits: Mapping[str, UsualWait]
) -> JobStatus:
    kinds = {view.node.name: _kind(view, requests) for view in views}
    worst = min(kinds.values(), key=_WORST_FIRST.index)
    chosen = [view for view in views if kinds[view.node.name] is worst]
    first = chosen[0]
    code, detail = _code(first, worst, requests)
    usual = waits.get(first.pool.pool_id) if worst is WaitKind.CAPACITY else None
    return JobStatus(
        worst,
        len(chosen),
        first.pool.machine_type,
        pool_scope(first.pool).name,
        code=code,
        detail=detail,
        since_utc=_since(job, chosen, worst),
        usual_wait_seconds=usual.seconds if usual else 0,
        usual_wait_requests=usual.requests if usual else 0,
    )


def _since(job: Job, views: list[NodeView], kind: WaitKind) -> datetime | None:
    """Times that both systems keep, so that a comment stays the same from pass to pass."""
    match kind:
        case WaitKind.BOOT:
            made = [view.vm.creation_time_utc for view in views if view.vm is not None]
            return min((time for time in made if time is not None), default=None)
        case WaitKind.CAPACITY | WaitKind.FAILED:
            return wanted_since(views[0], job)
        case _:
            return job.start_time_utc


def _kind(view: NodeView, requests: RequestPlan) -> WaitKind:
    wait = requests.waits.get(view.node.name)
    return wait.kind if wait is not None else _KINDS[view.step]


def _code(view: NodeView, kind: WaitKind, requests: RequestPlan) -> tuple[str, str]:
    wait = requests.waits.get(view.node.name)
    if wait is not None:
        return wait.code, wait.detail
    error = None
    if kind is WaitKind.FAILED:
        error = view.error
    elif kind is WaitKind.CAPACITY and view.request is not None:
        error = view.request.request.last_attempt_error
    elif kind is WaitKind.CAPACITY and view.member is not None:
        error = view.member.last_attempt_error
    return (error.code, error.message) if error is not None else ("", "")
