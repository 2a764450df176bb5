"""Whole passes over a Slurm and a Compute Engine in memory, one small cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import InstanceStatus, RequestReference, RequestState, ResizeRequest
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.history.events import FILE_NAME, EventHistory
from slurm_hooks.history.reports import FILE_NAME as REPORTS_FILE
from slurm_hooks.history.reports import FaultReports
from slurm_hooks.reconcile.actions import Plan
from slurm_hooks.reconcile.passes import Passes
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.model import BaseState, NodeFlag, NodeState
from tests.fakes.compute import FakeCompute
from tests.fakes.slurm import FakeSlurm
from tests.unit.reconcile.builders import CLUSTER

MOST_PASSES = 30
POWERED_DOWN_CLOUD = NodeState(BaseState.IDLE, frozenset({NodeFlag.CLOUD, NodeFlag.POWERED_DOWN}))


@dataclass
class Scenario:
    """The two fakes and the controller between them. `restart` forgets all it remembers.

    `skew` is how far the controller's clock is ahead of those of both systems.
    """

    spool: Path
    cluster: Cluster = CLUSTER
    slurm: FakeSlurm = field(default_factory=FakeSlurm)
    compute: FakeCompute = field(default_factory=FakeCompute)
    now: datetime = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
    skew: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        names = self.cluster.node_names("a3u")
        self.slurm.add_nodes(names, partition="a3u", state=POWERED_DOWN_CLOUD)
        self.history = EventHistory(self.spool / FILE_NAME)
        self.reports = FaultReports(self.spool / REPORTS_FILE)
        self.restart()

    def restart(self) -> None:
        """A new controller process, as after kill -9."""
        calls = CallsDirectory(self.spool, expand)
        consoles = ConsolesDirectory(self.spool / "consoles")
        self.passes = Passes(
            self.cluster,
            self.slurm,
            self.compute,
            calls,
            consoles,
            lambda: self.now + self.skew,
            history=self.history,
            reports=self.reports,
        )

    def apply(self, cluster: Cluster) -> None:
        """The controller reads another cluster file, and nothing else is other in Slurm."""
        self.cluster = cluster
        self.restart()

    def run(self) -> Plan:
        """One pass."""
        return self.passes.run()

    def settle(self) -> int:
        """Passes until nothing is to be done, slurmctld working in between; how many."""
        for count in range(MOST_PASSES):
            plan = self.run()
            self.wait_for_second_look(plan)
            self.slurm.pass_power_thread()
            if not plan.actions and not plan.unsettled:
                return count
        raise AssertionError(f"not settled after {MOST_PASSES} passes: {plan}")

    def wait_for_second_look(self, plan: Plan) -> None:
        """Time passes until what this pass has sighted may be believed."""
        by = timedelta(seconds=plan.second_look_seconds or 0)
        self.now += by
        self.slurm.now_utc += by
        self.compute.state.now_utc += by

    def settle_with_vms(self) -> None:
        """As `settle`, with VMs that come up, register and go away on their own."""
        for _ in range(MOST_PASSES):
            plan = self.run()
            self.wait_for_second_look(plan)
            before = self.picture()
            self.compute.state.step()
            self.register_running()
            self.slurm.pass_power_thread()
            if not plan.actions and not plan.unsettled and before == self.picture():
                return
        raise AssertionError(f"not settled after {MOST_PASSES} passes: {plan}")

    def settle_after_the_grace(self) -> None:
        """As `settle_with_vms`, when all that is of no use is old enough to be reaped."""
        self.now += timedelta(seconds=self.cluster.policy.reap_grace_seconds + 1)
        self.settle_with_vms()

    def register_running(self) -> None:
        """slurmd of each VM that runs registers."""
        running = [
            name
            for (_, name), vm in self.compute.state.instances.items()
            if vm.status is InstanceStatus.RUNNING
            and name in self.slurm.nodes
            and self.slurm.nodes[name].state.has(NodeFlag.POWERING_UP)
        ]
        self.slurm.register(running)

    def grant_all(self) -> None:
        """Capacity for every waiting request."""
        for reference in self.waiting():
            self.compute.state.grant(reference)

    def waiting(self) -> list[RequestReference]:
        """The requests that are active."""
        return [r.reference for r in self.requests() if r.state.is_active]

    def requests(self) -> list[ResizeRequest]:
        """All resize requests that exist."""
        return list(self.compute.state.requests.values())

    def vm_names(self) -> list[str]:
        """The names of all VMs, in order."""
        return sorted(name for _, name in self.compute.state.instances)

    def picture(self) -> tuple[object, ...]:
        """All that a person would see of both systems."""
        return (
            {name: node.state for name, node in self.slurm.nodes.items()},
            {job.job_id: job.state for job in self.slurm.jobs.values()},
            {r.reference.name: r.state for r in self.requests()},
            {key: vm.status for key, vm in self.compute.state.instances.items()}
            | self.compute.state.members,
        )

    def states(self) -> set[RequestState]:
        """The states of all requests."""
        return {request.state for request in self.requests()}
