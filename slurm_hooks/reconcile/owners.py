"""Whose a node is: which jobs have it, which asked for it, and whose start its VM is for."""

from __future__ import annotations

from collections.abc import Iterable

from slurm_hooks.reconcile.snapshot import ResumeCall
from slurm_hooks.slurm.model import Job, JobState


def holders_of(jobs: Iterable[Job]) -> dict[str, tuple[Job, ...]]:
    """The active jobs that have each node allocated, in order of job id."""
    holders: dict[str, tuple[Job, ...]] = {}
    for job in sorted(jobs, key=lambda job: job.job_id):
        if job.is_active:
            for name in job.nodes:
                holders[name] = (*holders.get(name, ()), job)
    return holders


def askers_of(calls: Iterable[ResumeCall]) -> dict[str, frozenset[int]]:
    """The jobs for which the latest ResumeProgram call asked for each node."""
    askers: dict[str, frozenset[int]] = {}
    for call in sorted(calls, key=lambda call: call.time_utc):
        by_node: dict[str, list[int]] = {}
        for job in call.jobs:
            for name in job.nodes:
                by_node.setdefault(name, []).append(job.job_id)
        askers |= {name: frozenset(by_node.get(name, ())) for name in call.nodes}
    return askers


def owner_of(holders: tuple[Job, ...], askers: frozenset[int]) -> Job | None:
    """The job whose start this is: one that Slurm's call named, else one still configuring."""
    if len(holders) < 2:
        return holders[0] if holders else None
    configuring = [job for job in holders if job.state is JobState.CONFIGURING]
    named = [job for job in configuring if job.job_id in askers]
    return (named or configuring or holders)[0]
