"""One pass: observe, decide, act, remember. The daemon and the one-shot both run these."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.history import metrics
from slurm_hooks.history.conditions import ConditionsFile
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.history.events import EventHistory
from slurm_hooks.history.log import log_event
from slurm_hooks.history.reports import FaultReports
from slurm_hooks.reconcile.act import Actor
from slurm_hooks.reconcile.act_repairs import Repairs
from slurm_hooks.reconcile.act_reports import Reports
from slurm_hooks.reconcile.actions import Plan
from slurm_hooks.reconcile.conditions import Conditions
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.memory import remember
from slurm_hooks.reconcile.observe import observe, poll_operations, read_repairs
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.repairs import RepairLog
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory, Unavailable
from slurm_hooks.slurm.client import SlurmClient
from slurm_hooks.slurm.controllers import Charge

LOG = logging.getLogger("slurm-hooksd")

TEMPLATES_INTERVAL = timedelta(minutes=10)

_CHARGE_MESSAGES = {
    Charge.HERE: "slurmctld of this host is in charge",
    Charge.ELSEWHERE: "standing by, only watching",
    Charge.UNKNOWN: "standing by, only watching",
    Charge.NOBODY: "the cluster is deleted, only watching",
}


class Passes:
    """Runs passes over one cluster and remembers between them.

    `clock` gives aware UTC times, `charge` says whether the slurmctld of this host is in charge:
    where it is not, a pass only watches, so that it can take over at once. `alive` is called
    whenever a part of a pass is over. `seconds` gives seconds that only go forward. Without a
    `history` no node is repaired.
    """

    def __init__(
        self,
        cluster: Cluster,
        slurm: SlurmClient,
        compute: ComputeClient,
        calls: CallsDirectory,
        consoles: ConsolesDirectory,
        clock: Callable[[], datetime],
        charge: Callable[[], Charge] = lambda: Charge.HERE,
        alive: Callable[[], None] = lambda: None,
        seconds: Callable[[], float] = time.monotonic,
        history: EventHistory | None = None,
        reports: FaultReports | None = None,
        conditions: ConditionsFile | None = None,
    ) -> None:
        self.cluster = cluster
        self._slurm = slurm
        self._compute = compute
        self._calls = calls
        self._clock = clock
        self._charge = charge
        self._alive = alive
        self._seconds = seconds
        self._acted_last = True
        self._templates_read_utc: datetime | None = None
        self._history = history
        repairs = Repairs(slurm, history, clock)
        self._reports = (
            Reports(compute, reports, history, clock)
            if reports is not None and history is not None
            else None
        )
        self._actor = Actor(slurm, compute, calls, consoles, alive, seconds, repairs, self._reports)
        self._acted_in_vain = False
        self._conditions = Conditions(conditions)
        self._memory = Memory()

    def go_on_from(self, before: Passes) -> None:
        """Keep what people were told by passes with other settings: it is not said again."""
        self._conditions = before._conditions
        self._acted_last = before._acted_last

    def plan(self, confirmed_kills: int = 0) -> Plan:
        """Observe and decide, and do nothing. `confirmed_kills`: see `decide`."""
        snapshot = observe(
            self._slurm,
            self._compute,
            self._calls,
            self.cluster.cluster_id,
            self._memory,
            with_templates=self._templates_are_due(),
            repairs=self._read_repairs(),
            report=self._reports.read() if self._reports is not None else None,
        )
        return decide(snapshot, self.cluster, self._clock(), confirmed_kills)

    def _read_repairs(self) -> RepairLog | Unavailable:
        if self._history is None:
            return RepairLog()
        days = timedelta(days=self.cluster.policy.repair_days)
        return read_repairs(self._history, self._clock() - days)

    def watch(self) -> Plan:
        """Observe, decide and remember what was sighted, and do nothing else."""
        plan = self.plan()
        self._memory = remember(self._memory, plan, (), self._clock())
        return plan

    def carry_out(self, plan: Plan) -> tuple[Outcome, ...]:
        """Act as planned, and remember and report what came of it."""
        outcomes = self._actor.act(plan, self._memory)
        self._memory = remember(self._memory, plan, outcomes, self._clock())
        self._conditions.report(plan, outcomes)
        self._acted_in_vain = not any(outcome.is_done for outcome in outcomes)
        return outcomes

    def run(self, confirmed_kills: int = 0) -> Plan:
        """Run one pass and return what it did."""
        started = time.perf_counter()
        if not self.is_in_charge():
            return self._stand_by()
        self.poll_operations()
        self._alive()
        plan = self.plan(confirmed_kills)
        self._alive()
        self.carry_out(plan)
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

    def is_in_charge(self) -> bool:
        """Whether this host's slurmctld is in charge; a change is logged. Unknown is no."""
        charge = self._charge()
        acts = charge is Charge.HERE
        if acts is not self._acted_last:
            log_event(LOG, logging.INFO, _CHARGE_MESSAGES[charge], slurmctld=charge)
        self._acted_last = acts
        metrics.record_charge(acts)
        return acts

    def _stand_by(self) -> Plan:
        """Watch. What another host's daemon has to do leaves nothing unsettled here."""
        plan = self.watch()
        log_event(LOG, logging.DEBUG, "stood by", nodes=len(plan.steps), actions=len(plan.actions))
        return replace(plan, actions=(), unsettled=False)

    def _templates_are_due(self) -> bool:
        """Templates and workload policies matter for reaping alone: they are read now and then,
        and after a pass that sighted more than requests, such as the last group that used them."""
        now = self._clock()
        last = self._templates_read_utc
        sightings = self._memory.sightings
        if last is not None and now - last < TEMPLATES_INTERVAL and not sightings.unneeded:
            return False
        self._templates_read_utc = now
        return True

    def poll_operations(self) -> bool:
        """Read the operations in flight; whether one of them has ended."""
        before = self._memory.in_flight.keys()
        if not before:
            return False
        self._memory = poll_operations(self._compute, self._memory, self._clock(), self._seconds)
        return self._memory.in_flight.keys() != before

    @property
    def has_sightings(self) -> bool:
        """Whether something was sighted that the next pass acts on if it sees it, too."""
        return bool(self._memory.sightings)

    @property
    def acted_in_vain(self) -> bool:
        """Whether the last pass that acted carried out no action, or had none."""
        return self._acted_in_vain

    @property
    def has_operations(self) -> bool:
        """Whether operations that we started are still on their way."""
        return bool(self._memory.in_flight)
