"""Slurm, Compute Engine, people and bad luck in any order: what must never happen does not, and
once the bad luck ends, everything comes to its right end.

The machine moves the two fakes and lets the controller pass, stumble, die and start again. What
must hold all the time is checked after every call and every step; what must hold in the end is
checked when the machine stops: faults are over, every waiting request is granted, time passes.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import Group, GroupReference, Instance, InstanceStatus
from slurm_hooks.reconcile.reasons import is_ours
from slurm_hooks.slurm.client import NodeUpdate, SlurmError, SlurmRefused, SlurmUnavailable
from slurm_hooks.slurm.model import BaseState, Job, JobState, Node, NodeFlag
from tests.unit.reconcile.builders import GROUP, example_cluster
from tests.unit.reconcile.life import Life

NAMES = [f"flexvm-a3u-{index}" for index in range(4)]
CLUSTER = example_cluster(min_node_count=1, max_node_count=len(NAMES))
POWER = (NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP)
OUT = (NodeFlag.DRAIN, NodeFlag.FAIL)
MOST_CALLS_A_PASS = 25
END_ROUNDS = 5
END_TICKS = 7
LONGER_THAN_EVERY_GRACE = timedelta(seconds=400)

FOREIGN_VM = Instance("flexvm-a3u-9", "1", "us-central1-a", InstanceStatus.TERMINATED)
FOREIGN_GROUP = Group(
    GroupReference(GROUP.reference.scope, "flexvm-a3u-of-somebody"), description="by hand"
)
FOREIGN_NODE = "other-a3u-0"

SLURM_ERRORS = (SlurmUnavailable("no answer"), SlurmRefused("no"))

node_names = st.sampled_from(NAMES)
some_nodes = st.lists(node_names, min_size=1, max_size=3, unique=True)
any_job = st.integers(0, 100)
codes = st.sampled_from(["QUOTA_EXCEEDED", "ZONE_RESOURCE_POOL_EXHAUSTED", "INTERNAL_ERROR"])


@dataclass(frozen=True)
class Working:
    """A running job with the VMs below it, all of them alive."""

    job: Job
    vm_ids: tuple[str, ...]


class Lives(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.life = Life(Path(self._folder.name), CLUSTER)
        self.life.compute.operations_finish_at_once = False
        self.life.slurm.add_nodes([FOREIGN_NODE], partition="other")
        self.life.compute.state.instances[FOREIGN_VM.zone, FOREIGN_VM.name] = FOREIGN_VM
        self.life.compute.state.groups[FOREIGN_GROUP.reference] = FOREIGN_GROUP
        self.foreign_node = self.life.slurm.nodes[FOREIGN_NODE]
        self.list_was_stale = False

    # Slurm and its users

    @initialize(names=some_nodes, ticks=st.integers(0, 8))
    def first_job(self, names: list[str], ticks: int) -> None:
        self.job_gets_nodes(names, batch=True)
        self.a_while(ticks, capacity=True)

    @rule(names=some_nodes, batch=st.booleans())
    def job_gets_nodes(self, names: list[str], batch: bool) -> None:
        free = [name for name in names if self._is_free(name)]
        if free:
            self.life.slurm.submit(free, partition="a3u", batch=batch)
            self.life.deliver_calls()

    @rule(number=any_job, names=some_nodes)
    def requeued_job_gets_nodes(self, number: int, names: list[str]) -> None:
        free = [name for name in names if self._is_free(name)]
        job = self._job(number, JobState.PENDING)
        if job and free:
            self.life.slurm.allocate(job.job_id, free)
            self.life.deliver_calls()

    @rule(number=any_job, cancelled=st.booleans())
    def job_ends(self, number: int, cancelled: bool) -> None:
        job = self._job(number, JobState.CONFIGURING, JobState.RUNNING)
        if job and (cancelled or job.state is JobState.CONFIGURING):
            self.life.slurm.cancel(job.job_id)
        elif job:
            self.life.slurm.complete(job.job_id)

    @rule(names=some_nodes)
    def idle_nodes_are_suspended(self, names: list[str]) -> None:
        states = {name: self.life.slurm.nodes[name].state for name in names}
        self.life.slurm.suspend(
            [
                name
                for name, state in states.items()
                if state.base is BaseState.IDLE and not state.has(*POWER, *OUT)
            ]
        )

    @rule(name=node_names)
    def resume_timeout_is_over(self, name: str) -> None:
        if name in self._nodes_with(NodeFlag.POWERING_UP):
            self.life.slurm.resume_timeout([name])

    @rule(
        name=node_names,
        update=st.sampled_from(
            [
                NodeUpdate.POWER_UP,
                NodeUpdate.POWER_DOWN,
                NodeUpdate.POWER_DOWN_FORCE,
                NodeUpdate.DRAIN,
                NodeUpdate.DOWN,
                NodeUpdate.IDLE,
                NodeUpdate.RESUME,
            ]
        ),
    )
    def person_changes_a_node(self, name: str, update: NodeUpdate) -> None:
        self._person_updates(name, update)

    # Compute Engine

    @rule(number=any_job, code=codes)
    def request_fails(self, number: int, code: str) -> None:
        waiting = self.life.waiting()
        if waiting:
            self.life.compute.state.fail(waiting[number % len(waiting)], code)

    @rule(names=some_nodes)
    def vms_vanish(self, names: list[str]) -> None:
        for name in set(names) & set(self.life.vm_names()):
            self.life.compute.state.vanish(name)

    @rule(
        name=node_names,
        status=st.sampled_from(
            [InstanceStatus.TERMINATED, InstanceStatus.STOPPING, InstanceStatus.UNKNOWN]
        ),
    )
    def vm_changes(self, name: str, status: InstanceStatus) -> None:
        if name in self.life.vm_names():
            self.life.compute.state.set_status(name, status)

    # Bad luck

    @rule(kind=st.sampled_from(ErrorKind))
    def next_call_of_compute_engine_fails(self, kind: ErrorKind) -> None:
        self.life.compute.fail_next(ComputeError(kind, kind.value, "bad luck"))

    @rule(code=codes)
    def next_operation_fails(self, code: str) -> None:
        self.life.compute.fail_next_operation(code, 500)

    @rule(error=st.sampled_from(SLURM_ERRORS))
    def next_call_of_slurm_fails(self, error: SlurmError) -> None:
        self.life.slurm.fail_next(error)

    @rule(calls=st.integers(0, 8), after=st.booleans())
    def controller_dies_now_or_soon(self, calls: int, after: bool) -> None:
        if not calls:
            self.life.restart()
        self.life.door.deaths_at = {self.life.door.calls + calls}
        self.life.door.dies_after_the_call = after

    # Time

    @rule(ticks=st.integers(1, 5), capacity=st.booleans())
    def a_while(self, ticks: int, capacity: bool) -> None:
        """All goes its way, with or without capacity for what waits."""
        for _ in range(ticks):
            if capacity:
                self.life.grant_all()
            self.suspend_timeout_is_over()
            self.controller_passes()
            self._live()

    @rule()
    def controller_passes(self) -> None:
        self.life.advance(timedelta(seconds=10))
        self._pass()
        self.list_was_stale = False

    @precondition(lambda self: not self.list_was_stale)
    @rule(names=some_nodes)
    def controller_passes_over_a_stale_list(self, names: list[str]) -> None:
        self.life.compute.state.hidden.update(names)
        self._pass()
        self.life.compute.state.hidden.clear()
        self.list_was_stale = True

    @rule()
    def world_lives(self) -> None:
        self._live()

    @rule()
    def suspend_timeout_is_over(self) -> None:
        self.life.slurm.slept(self._nodes_with(NodeFlag.POWERING_DOWN))

    @rule()
    def capacity_comes(self) -> None:
        self.life.grant_all()

    @rule(seconds=st.sampled_from([100, 1000]))
    def time_passes(self, seconds: int) -> None:
        self.life.advance(timedelta(seconds=seconds))

    # What holds all the time

    @invariant()
    def no_name_is_there_or_on_its_way_twice(self) -> None:
        self.life.check()

    @invariant()
    def what_is_not_ours_is_as_it_was(self) -> None:
        state = self.life.compute.state
        assert state.instances[FOREIGN_VM.zone, FOREIGN_VM.name] == FOREIGN_VM
        assert state.groups[FOREIGN_GROUP.reference] == FOREIGN_GROUP
        assert self.life.slurm.nodes[FOREIGN_NODE] == self.foreign_node

    # What holds in the end

    def teardown(self) -> None:
        try:
            self._end_faults()
            for _ in range(END_ROUNDS):
                self.a_while(END_TICKS, capacity=True)
                self.life.advance(LONGER_THAN_EVERY_GRACE)
            for name in NAMES:
                self._assert_in_order(name)
            assert self.life.waiting() == []
        finally:
            self._folder.cleanup()

    def _end_faults(self) -> None:
        self.life.door.deaths_at = set()
        self.life.slurm.failures = []
        self.life.compute.forget_faults()
        for name in set(NAMES) & set(self.life.vm_names()):
            if self.life.compute.state.instance(name).status is InstanceStatus.UNKNOWN:
                self.life.compute.state.set_status(name, InstanceStatus.TERMINATED)
        for name in NAMES:
            state = self.life.slurm.nodes[name].state
            if state.has(NodeFlag.DRAIN) or state.base is BaseState.DOWN:
                self._person_updates(name, NodeUpdate.DOWN)
                self._person_updates(name, NodeUpdate.IDLE)

    def _assert_in_order(self, name: str) -> None:
        """A wanted node is up with its VM, or people know why not; no other has a VM."""
        node = self.life.slurm.nodes[name]
        has_vm = name in self.life.vm_names()
        is_up = not node.state.has(*POWER)
        is_trapped = node.state.has(NodeFlag.POWERED_DOWN) and node.state.has(
            NodeFlag.NOT_RESPONDING
        )
        assert not is_trapped, f"never given to a job again: {node}"
        assert not (node.state.has(NodeFlag.POWERED_DOWN) and has_vm), (
            f"VM outlives its need: {node}"
        )
        wanted = node.state.base is not BaseState.IDLE or CLUSTER.is_static(name)
        if wanted and not (is_up and has_vm):
            assert self._is_explained(node), f"no reason: {node}"
        if is_up:
            assert has_vm, f"up without a VM: {node}"

    def _is_explained(self, node: Node) -> bool:
        """Whether we tell people why: on the node, on its pool's record, or on a job."""
        records = [self.life.slurm.nodes[name].comment for name in NAMES]
        comments = [job.admin_comment for job in self.life.slurm.jobs.values()]
        return any(is_ours(text) for text in (node.reason, *records, *comments))

    # Helpers

    def _pass(self) -> None:
        before = self._working()
        calls = self.life.door.calls
        self.life.one_pass()
        assert self.life.door.calls - calls <= MOST_CALLS_A_PASS
        for working in before:
            job = self.life.slurm.jobs[working.job.job_id]
            assert job.state is JobState.RUNNING, f"job lost by us: {working}"
            assert self._vm_ids(job.nodes) == working.vm_ids, f"VM below a job lost: {working}"

    def _working(self) -> list[Working]:
        """The running jobs whose VMs all run, on nodes that nobody ordered away."""
        return [
            Working(job, self._vm_ids(job.nodes))
            for job in self.life.slurm.jobs.values()
            if job.state is JobState.RUNNING
            and len(self._vm_ids(job.nodes)) == len(job.nodes)
            and not any(self.life.slurm.nodes[name].state.has(*POWER) for name in job.nodes)
        ]

    def _vm_ids(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            vm.instance_id
            for vm in self.life.compute.state.instances.values()
            if vm.name in names and vm.status is InstanceStatus.RUNNING
        )

    def _live(self) -> None:
        self.life.live()
        for name in set(NAMES) & set(self.life.vm_names()):
            self._answer_ping(name)

    def _answer_ping(self, name: str) -> None:
        """slurmd of a VM that runs answers slurmctld."""
        node = self.life.slurm.nodes[name]
        runs = self.life.compute.state.instance(name).status is InstanceStatus.RUNNING
        if runs and not node.state.has(*POWER):
            flags = node.state.flags - {NodeFlag.NOT_RESPONDING}
            self.life.slurm.set_state(name, node.state.base, *flags, reason=node.reason)

    def _person_updates(self, name: str, update: NodeUpdate) -> None:
        with contextlib.suppress(SlurmRefused):
            self.life.person_updates(name, update, "fan is loud")

    def _is_free(self, name: str) -> bool:
        state = self.life.slurm.nodes[name].state
        return state.base is BaseState.IDLE and not state.has(
            *OUT,
            NodeFlag.POWERING_DOWN,
            NodeFlag.POWER_DOWN,
            NodeFlag.POWER_UP,
            NodeFlag.COMPLETING,
        )

    def _nodes_with(self, flag: NodeFlag) -> list[str]:
        return [name for name in NAMES if self.life.slurm.nodes[name].state.has(flag)]

    def _job(self, number: int, *states: JobState) -> Job | None:
        jobs = [job for job in self.life.slurm.jobs.values() if job.state in states]
        return jobs[number % len(jobs)] if jobs else None


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_lives_come_to_their_right_end() -> None:
    run(examples=30, steps=25)


@pytest.mark.slow
def test_many_long_lives_come_to_their_right_end() -> None:
    run(examples=300, steps=50)
