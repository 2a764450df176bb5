"""Heterogeneous jobs: their components fail to start together, so that they start again together.

slurmctld (22.05.8, measured) queues a component again whose nodes are powered down by force, and
leaves the others their nodes when it was the first one: the job would stay in pieces. So when one
component's start fails, the nodes of all fail.

Only the backfill scheduler starts heterogeneous jobs, and it does not see nodes of a failed start
that are off again: they would wait for ever, and all jobs of lower priority behind them. IDLE,
asked for once they are off, shows it the nodes again; 22.05 drops their reason by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from slurm_hooks.reconcile.actions import Action, Expectation, ReasonCode, UpdateNode
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.phases import Intent
from slurm_hooks.reconcile.plan_nodes import failed_start
from slurm_hooks.reconcile.reasons import OFFERED_AGAIN
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import JobState


def with_components(scene: Scene, actions: Iterable[Action]) -> list[Action]:
    """The actions, and those that fail the other components of each job whose start fails."""
    actions = list(actions)
    failed = _failed_components(scene, actions)
    if not failed:
        return actions
    return [*_failures_of_others(scene, failed), *actions]


def plan_components(scene: Scene) -> Iterator[UpdateNode]:
    """Show Slurm again what a heterogeneous job that waits may use."""
    partitions = {
        partition
        for job in scene.slurm.jobs.values()
        if job.het_job_id is not None and job.state is JobState.PENDING
        for partition in job.partition.split(",")
    }
    if not partitions:
        return
    for view in scene.world.views.values():
        if partitions.isdisjoint(view.node.partitions):
            continue
        if still_holds(Expectation.OFF_SINCE_FAILURE, view.node):
            yield UpdateNode(
                view.node.name,
                (NodeUpdate.IDLE,),
                Expectation.OFF_SINCE_FAILURE,
                None,
                kept_reason=OFFERED_AGAIN,
            )


def _failed_components(scene: Scene, actions: Iterable[Action]) -> dict[int, UpdateNode]:
    """By the id of the whole job, one of the failures."""
    failed: dict[int, UpdateNode] = {}
    for action in actions:
        if isinstance(action, UpdateNode) and action.reason is ReasonCode.REQUEST_FAILED:
            job = scene.slurm.jobs.get(action.told_job) if action.told_job is not None else None
            if job is not None and job.het_job_id is not None:
                failed.setdefault(job.het_job_id, action)
    return failed


def _failures_of_others(scene: Scene, failed: dict[int, UpdateNode]) -> Iterator[UpdateNode]:
    for view in scene.world.views.values():
        owner = view.owner
        if owner is None or owner.het_job_id is None or view.intent is not Intent.STARTING:
            continue
        cause = failed.get(owner.het_job_id)
        if cause is not None and cause.told_job != owner.job_id:
            yield replace(failed_start(view, cause.code, cause.detail), told_job=cause.told_job)
