"""What a planner sees: everything that one pass knows, joined. Frozen, read by pure code only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import ComputeSnapshot, Template, WorkloadPolicy
from slurm_hooks.reconcile.actions import Action
from slurm_hooks.reconcile.repairs import RepairLog
from slurm_hooks.reconcile.report_actions import OpenReport
from slurm_hooks.reconcile.snapshot import Memory, Unavailable
from slurm_hooks.reconcile.views import World
from slurm_hooks.slurm.model import SlurmSnapshot


@dataclass(frozen=True, slots=True)
class Scene:
    """One pass, readable from every side. `now` is the pass's one time, aware and in UTC."""

    cluster: Cluster
    slurm: SlurmSnapshot
    compute: ComputeSnapshot
    world: World
    memory: Memory
    now: datetime
    templates: tuple[Template, ...] = ()
    workload_policies: tuple[WorkloadPolicy, ...] = ()
    repairs: RepairLog | Unavailable = field(default_factory=RepairLog)
    report: OpenReport | Unavailable | None = None

    @property
    def policy(self) -> Policy:
        """The cluster's limits."""
        return self.cluster.policy

    def is_past_grace(self, creation_time_utc: datetime | None) -> bool:
        """Whether a thing of no use is old enough to be removed; one of unknown age never is."""
        grace = timedelta(seconds=self.policy.reap_grace_seconds)
        return creation_time_utc is not None and self.now - creation_time_utc > grace


Planner = Callable[[Scene], Iterable[Action]]
"""A concern of its own: reads the scene, names actions. Pure."""
