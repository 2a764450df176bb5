"""Before a VM ends: Slurm is told by reservations, and the jobs that it will cut are warned.

Reservations are compared by name: what is missing is made, what is ours and not wanted any more
goes. A job is warned when its own limit lies beyond the end of one of its nodes: by its admin
comment at once, by the configured signal when the end is near. That comment is the memory of the
signal, so it is sent once whatever restarts here; only where a person's comment stands, which is
left alone, or where ours cannot be written, a restart sends it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from slurm_hooks.reconcile.actions import (
    Action,
    CreateReservation,
    DeleteReservation,
    WarnJob,
)
from slurm_hooks.reconcile.comments import end_of_life_comment
from slurm_hooks.reconcile.end_of_life import ends_of_life, is_ours
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.reasons import is_ours as is_our_text
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.views import NodeView, World
from slurm_hooks.slurm.model import Job, JobState, Reservation

_GOING = frozenset(
    {
        Intent.ASKED_OFF,
        Intent.STOPPING,
        Intent.OFF,
        Intent.STATIC_OFF,
        Intent.TRAPPED,
        Intent.RESUME_FAILED,
    }
)
_STARTING = frozenset(
    {
        Intent.STARTING,
        Intent.DISOWNED,
        Intent.ABANDONED,
        Intent.WITHDRAWN,
        Intent.INCONSISTENT,
    }
)
_OF_AN_EARLIER_START = frozenset({VmPhase.LEAVING, VmPhase.BROKEN})


def plan_end_of_life(scene: Scene) -> Iterator[Action]:
    """The reservations to make and delete, and the jobs to warn."""
    ends = known_ends(scene.world)
    yield from _reservations(scene, ends)
    yield from _warnings(scene, ends)


def known_ends(world: World) -> dict[str, datetime]:
    """When the VM of each node that Slurm uses will end."""
    return {
        name: view.vm.termination_time_utc
        for name, view in world.views.items()
        if view.vm is not None and view.vm.termination_time_utc is not None and _uses_its_vm(view)
    }


def _uses_its_vm(view: NodeView) -> bool:
    """Whether the VM is the one that Slurm's node stands for: a node that goes, or that is woken
    while its old VM still goes away, will have another one."""
    if view.intent in _STARTING:
        return view.vm_phase not in _OF_AN_EARLIER_START
    return view.intent not in _GOING


def _reservations(scene: Scene, ends: dict[str, datetime]) -> Iterator[Action]:
    """New ones come before old ones go, so that no node is without one in between."""
    existing = scene.slurm.reservations
    wanted = {end.name: end for end in ends_of_life(ends.items())}
    for name, end in wanted.items():
        if name not in existing:
            yield CreateReservation(name, end.nodes, max(end.time_utc, scene.now))
    for name, reservation in existing.items():
        if is_ours(reservation) and name not in wanted and not _is_needed(reservation, scene):
            yield DeleteReservation(name)


def _is_needed(reservation: Reservation, scene: Scene) -> bool:
    """Whether a node of it has yet to be believed lost or to be taken down: until then its VM may
    live, or its end has come."""
    return any(
        view.step in (Step.LOSE_NODE, Step.LOSE_JOBS)
        for name in reservation.nodes
        if (view := scene.world.views.get(name)) is not None
    )


def _warnings(scene: Scene, ends: dict[str, datetime]) -> Iterator[WarnJob]:
    for job in scene.slurm.jobs.values():
        if job.state is not JobState.RUNNING:
            continue
        first = min(((ends[node], node) for node in job.nodes if node in ends), default=None)
        if first is None or not _is_cut(job, first[0]):
            continue
        warning = _warning(scene, job, *first)
        if warning is not None:
            yield warning


def _is_cut(job: Job, end_utc: datetime) -> bool:
    """Whether the job may still run at that time. One that ends before by its own limit gets no
    signal, since a signal that is not caught ends a job."""
    if job.time_limit_seconds is None or job.start_time_utc is None:
        return True
    return job.time_limit_seconds > _seconds_between(job.start_time_utc, end_utc)


def _warning(scene: Scene, job: Job, end_utc: datetime, node: str) -> WarnJob | None:
    """What the job does not know yet, if anything."""
    is_near = _seconds_between(scene.now, end_utc) <= scene.policy.end_of_life_notice_seconds
    signal = scene.policy.end_of_life_signal if is_near else ""
    keeps_comment = bool(job.admin_comment) and not is_our_text(job.admin_comment)
    warning = WarnJob(job.job_id, job.restarts, node, end_utc, signal, keeps_comment, job.part)
    was_signalled = warning.subject in scene.memory.warned
    if keeps_comment:
        is_known = not signal or was_signalled
    else:
        is_known = job.admin_comment == end_of_life_comment(warning)
    return None if is_known else replace(warning, was_signalled=was_signalled)


def _seconds_between(first_utc: datetime, second_utc: datetime) -> float:
    """A plain number, since limits may be larger than any time is."""
    return (second_utc - first_utc) / timedelta(seconds=1)
