"""One pass: observe, decide, act, remember. The daemon and the one-shot both run these."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.history import metrics
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.act import Actor
from slurm_hooks.reconcile.actions import Plan
from slurm_hooks.reconcile.conditions import Conditions
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.memory import remember
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.observe import observe, poll_operations
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.client import SlurmClient

LOG = logging.getLogger("slurm-hooksd")

SHORTEST_DELAY_SECONDS = 1.0
WAITING_DELAY_SECONDS = 5.0
"""How often we look while jobs wait: Slurm tells nobody when a waiting job is cancelled."""

_WAITING_STEPS = frozenset({Step.AWAIT_CAPACITY, Step.AWAIT_BOOT})


class Passes:
    """Runs passes over one cluster and remembers between them. `clock` gives aware UTC times."""

    def __init__(
        self,
        cluster: Cluster,
        slurm: SlurmClient,
        compute: ComputeClient,
        calls: CallsDirectory,
        consoles: ConsolesDirectory,
        clock: Callable[[], datetime],
    ) -> None:
        self.cluster = cluster
        self._slurm = slurm
        self._compute = compute
        self._calls = calls
        self._clock = clock
        self._actor = Actor(slurm, compute, calls, consoles)
        self._conditions = Conditions()
        self._memory = Memory()

    def plan(self) -> Plan:
        """Observe and decide, and do nothing."""
        snapshot = observe(
            self._slurm, self._compute, self._calls, self.cluster.cluster_id, self._memory
        )
        return decide(snapshot, self.cluster, self._clock())

    def run(self) -> Plan:
        """Run one pass and return what it did."""
        started = time.perf_counter()
        self.poll_operations()
        plan = self.plan()
        outcomes = self._actor.act(plan, self._memory)
        self._memory = remember(self._memory, plan, outcomes, self._clock())
        self._conditions.report(plan)
        metrics.record_pass(plan, time.perf_counter() - started)
        log_event(
            LOG,
            logging.DEBUG,
            "pass",
            nodes=len(plan.steps),
            actions=len(plan.actions),
            seconds=f"{time.perf_counter() - started:.3f}",
        )
        return plan

    def poll_operations(self) -> bool:
        """Read the operations in flight; whether one of them has ended."""
        before = self._memory.in_flight.keys()
        if not before:
            return False
        self._memory = poll_operations(self._compute, self._memory, self._clock())
        return self._memory.in_flight.keys() != before

    @property
    def has_operations(self) -> bool:
        """Whether operations that we started are still on their way."""
        return bool(self._memory.in_flight)


def delay_after(plan: Plan, delay_before: float, interval_seconds: float) -> float:
    """Seconds until the next pass, if nobody wakes us first.

    After a pass that acted we look again soon; while something is on its way the delay doubles
    up to the interval, so that a stuck deletion does not cost a pass each second.
    """
    if plan.actions:
        return min(SHORTEST_DELAY_SECONDS, interval_seconds)
    if plan.unsettled:
        return min(max(delay_before * 2, SHORTEST_DELAY_SECONDS), interval_seconds)
    if any(step in _WAITING_STEPS for step in plan.steps.values()):
        return min(WAITING_DELAY_SECONDS, interval_seconds)
    return interval_seconds
