"""The plan of an apply: what changes, what it costs, and what stands in its way. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slurm_hooks.apply.changes import Changes
from slurm_hooks.apply.impact import Impact, JobOnNodes
from slurm_hooks.apply.rendered_files import FileState
from slurm_hooks.apply.taking import Taking, Way
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.slurm.hostlist import collapse


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is shown before anything is done.

    `files` says what becomes of each rendered file, `taking` what slurmctld needs for them.
    `comes_back`: the cluster was deleted, or a deletion has begun, which this ends.
    """

    cluster: Cluster
    changes: Changes
    impact: Impact
    files: dict[str, FileState]
    taking: Taking
    comes_back: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether all is as the file says, so that nobody need be asked."""
        return (
            self.changes.is_empty
            and not self.comes_back
            and not self.impact.leaving.nodes
            and set(self.files.values()) <= {FileState.UNCHANGED}
            and self.taking.way is Way.KEEP
        )


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a plan is not carried out, and what to do about it."""

    problem: str
    remedy: str


def obstacles_of(plan: Plan, *, waits: bool) -> Iterator[Obstacle]:
    """What forbids the plan before anything is changed. `waits`: for jobs that hold nodes."""
    leaving = plan.impact.leaving
    if leaving.nodes and not plan.impact.is_known:
        yield Obstacle(
            f"slurmctld does not answer, so nobody knows who uses {collapse(leaving.nodes)}",
            "see scontrol ping",
        )
    if leaving.holding and not waits:
        yield Obstacle(
            f"nodes that leave are in use: {_listed(leaving.holding)}",
            "add --wait to wait for these jobs, or cancel them",
        )
    if leaving.naming:
        yield Obstacle(
            f"jobs that wait name nodes that leave, and would fail: {_listed(leaving.naming)}",
            "cancel them, or scontrol update jobid=ID reqnodelist=OTHERS",
        )


def _listed(uses: tuple[JobOnNodes, ...]) -> str:
    return "; ".join(f"job {use.job} of {use.user} on {collapse(use.nodes)}" for use in uses)
