"""Whatever happens to condemned nodes, in whatever order: no limit is passed, no job is hit, and
nothing that a person has taken is touched."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_hooks.health.model import Verdict
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.history.events import Filter
from slurm_hooks.reconcile.repair_limits import REPAIRS
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from tests.fakes.slurm import FakeSlurm
from tests.unit.reconcile.builders import CLUSTER
from tests.unit.reconcile.condemned import reason
from tests.unit.reconcile.scenario import Scenario

FAN = "fan is loud"
NAMES = list(CLUSTER.node_names("a3u"))
Step = Callable[["Ward"], None]


class WatchedSlurm(FakeSlurm):
    """Fails at once when a node is changed that must not be."""

    def update_nodes(
        self, names: Sequence[str], update: NodeUpdate | None, reason: str | None = None
    ) -> None:
        self._check(names)
        super().update_nodes(names, update, reason)

    def reboot_nodes(self, names: Sequence[str], reason: str) -> None:
        self._check(names)
        super().reboot_nodes(names, reason)

    def _check(self, names: Sequence[str]) -> None:
        busy = {
            name
            for job in self.jobs.values()
            if job.state is JobState.RUNNING
            for name in job.nodes
        }
        for name in names:
            assert name not in busy, f"{name} has a job"
            assert self.nodes[name].reason != FAN, f"{name} is a person's"


class Ward:
    """A pool of nodes that are up, and what may befall them."""

    def __init__(self, directory: Path) -> None:
        self.slurm = WatchedSlurm()
        self.scenario = Scenario(directory, CLUSTER, self.slurm)
        job_id = self.slurm.submit(NAMES)
        self.scenario.settle()
        self.scenario.grant_all()
        self.scenario.settle_with_vms()
        self.slurm.complete(job_id)
        self.boots = 0

    def condemn(self, name: str, verdict: Verdict) -> None:
        """A health run on a node that is up, as the node's own program would tell it."""
        vms = {of: vm for (_, of), vm in self.scenario.compute.state.instances.items()}
        node = self.slurm.nodes[name]
        if name not in vms or not self._is_up(name) or node.reason == FAN:
            return
        text = reason(verdict, name, instance_id=vms[name].instance_id, boot=f"{self.boots:08x}")
        state = replace(node.state, flags=node.state.flags | {NodeFlag.DRAIN})
        self.slurm.nodes[name] = replace(
            node, state=state, reason=text, reason_time_utc=self.scenario.now
        )

    def take(self, name: str) -> None:
        """A person drains a node."""
        if self._is_up(name):
            FakeSlurm.update_nodes(self.slurm, [name], NodeUpdate.DRAIN, FAN)

    def give_back(self, name: str) -> None:
        """A person returns a node."""
        if self._is_up(name) and self.slurm.nodes[name].state.has(NodeFlag.DRAIN):
            FakeSlurm.update_nodes(self.slurm, [name], NodeUpdate.RESUME, "")

    def work(self, name: str) -> None:
        """A job runs on a node, or wakes it; one that runs there ends."""
        running = [job.job_id for job in self.slurm.jobs.values() if name in job.nodes]
        state = self.slurm.nodes[name].state
        if running and self.slurm.jobs[running[-1]].state is JobState.RUNNING:
            self.slurm.complete(running[-1])
        elif state.base is BaseState.IDLE and not state.has(NodeFlag.DRAIN):
            self.slurm.submit([name])

    def live(self) -> None:
        """Nodes reboot, sleep and wake, VMs come and go."""
        self.boots += 1
        issued = [n for n, k in self.slurm.nodes.items() if k.state.has(NodeFlag.REBOOT_ISSUED)]
        self.slurm.come_back(issued)
        self.slurm.answer_pings()
        self.slurm.issue_reboots()
        self.slurm.slept(
            [n for n, k in self.slurm.nodes.items() if k.state.has(NodeFlag.POWERING_DOWN)]
        )
        self.slurm.pass_power_thread()
        self.scenario.grant_all()
        self.scenario.compute.state.step()
        self.scenario.register_running()

    def wait(self, by: timedelta) -> None:
        """Time passes, the same everywhere."""
        self.scenario.now += by
        self.scenario.compute.state.now_utc = self.slurm.now_utc = self.scenario.now

    def look(self) -> None:
        """One pass of the controller."""
        self.scenario.run()
        self.wait(timedelta(seconds=10))

    def events(self) -> list[Event]:
        """All that is in the history."""
        return [recorded.event for recorded in self.scenario.history.read(Filter())]

    def _is_up(self, name: str) -> bool:
        flags = (
            *(NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP),
            *(NodeFlag.POWER_DOWN, NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED),
        )
        return not self.slurm.nodes[name].state.has(*flags)


names = st.sampled_from(NAMES)
VERDICTS = st.sampled_from([Verdict.OK, *(v for v in Verdict if v.fails_job)])
steps = st.one_of(
    st.builds(lambda name, verdict: lambda ward: ward.condemn(name, verdict), names, VERDICTS),
    st.builds(lambda name: lambda ward: ward.take(name), names),
    st.builds(lambda name: lambda ward: ward.give_back(name), names),
    st.builds(lambda name: lambda ward: ward.work(name), names),
    st.just(lambda ward: ward.look()),
    st.just(lambda ward: ward.look()),
    st.just(lambda ward: ward.live()),
    st.just(lambda ward: ward.scenario.restart()),
    st.just(lambda ward: ward.wait(timedelta(hours=1))),
)


def passes_no_limit(events: list[Event]) -> bool:
    window = timedelta(days=CLUSTER.policy.repair_days)
    for event in events:
        together = [
            other
            for other in events
            if other.node == event.node
            and other.kind in REPAIRS
            and event.time_utc <= other.time_utc < event.time_utc + window
        ]
        if len(together) > CLUSTER.policy.most_repairs_a_node:
            return False
    return True


def repairs_no_stopped_pool(events: list[Event]) -> bool:
    stops = [event.time_utc for event in events if event.kind is EventKind.REPAIRS_STOPPED]
    return not any(e.kind in REPAIRS and e.time_utc > min(stops) for e in events) if stops else True


@given(st.lists(steps, min_size=10, max_size=60))
@settings(max_examples=60, deadline=None)
def test_no_sequence_passes_a_limit_or_hits_what_is_not_ours(sequence: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ward = Ward(Path(directory))
        for step in sequence:
            step(ward)
        for _ in range(3):
            ward.look()
            ward.live()
        events = ward.events()
    assert passes_no_limit(events)
    assert repairs_no_stopped_pool(events)


def test_the_walk_meets_repairs_and_stops() -> None:
    """The property above would prove nothing if nothing ever happened."""
    with tempfile.TemporaryDirectory() as directory:
        ward = Ward(Path(directory))
        for verdict in (Verdict.REBOOT, Verdict.REPLACE, Verdict.REPLACE):
            ward.condemn(NAMES[0], verdict)
            for _ in range(6):
                ward.look()
                ward.live()
            if verdict is Verdict.REBOOT:
                ward.condemn(NAMES[0], Verdict.OK)
                ward.look()
            ward.work(NAMES[0])
            for _ in range(6):
                ward.look()
                ward.live()
            ward.work(NAMES[0])
        kinds = [event.kind for event in ward.events()]
        assert kinds.count(EventKind.VM_REBOOT) == 1
        assert kinds.count(EventKind.VM_DELETION) == 1
        assert EventKind.REPAIR_SKIPPED in kinds
        for name in NAMES[1:]:
            ward.condemn(name, Verdict.REPLACE)
        ward.look()
        assert ward.events()[-1].kind is not EventKind.VM_DELETION
        assert EventKind.REPAIRS_STOPPED in [event.kind for event in ward.events()]
