"""Slurm, Compute Engine, people and bad luck in any order: what must never happen does not, and
once the bad luck ends, everything comes to its right end.

The machine moves the two fakes and lets the controller pass, stumble, die and start again. What
must hold all the time is checked after every call and every step; what must hold in the end is
checked when the machine stops: faults are over, every waiting request is granted, time passes.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.slurm.client import NodeUpdate, SlurmError, SlurmRefused, SlurmUnavailable
from slurm_hooks.slurm.model import BaseState, Job, JobState, NodeFlag
from slurm_hooks.slurm.versions import SlurmVersion
from tests.fakes.slurm import SLURM_22_05, SLURM_24_11, SLURM_26_05
from tests.property.life_checks import (
    LATER_SIDE_FLAGS,
    LONGER_THAN_EVERY_FAILURE,
    PASSES_UNTIL_TROUBLE_IS_KNOWN,
    SIDE_FLAGS,
    CheckedLives,
)
from tests.property.life_world import (
    CHANGES,
    LIFE_SECONDS,
    NAMES,
    PARTITION,
    POWER,
    LivingWorld,
)
from tests.unit.reconcile.life import OUT

SIDE_FLAGS_OF = {
    SLURM_22_05: SIDE_FLAGS,
    SLURM_24_11: (*SIDE_FLAGS, *LATER_SIDE_FLAGS[:1]),
    SLURM_26_05: (*SIDE_FLAGS, *LATER_SIDE_FLAGS),
}
UNKNOWN_WORD = "WORD_OF_A_LATER_VERSION"

SLURM_ERRORS = (SlurmUnavailable("no answer"), SlurmRefused("no"))
IN_PART = ComputeError(ErrorKind.TRANSIENT, "PARTIAL_SUCCESS", "a page is missing", 200)
SEEN_BY_EYE = (
    *(NodeUpdate.POWER_UP, NodeUpdate.POWER_DOWN, NodeUpdate.POWER_DOWN_FORCE),
    *(NodeUpdate.DRAIN, NodeUpdate.DOWN, NodeUpdate.IDLE, NodeUpdate.RESUME),
)

node_names = st.sampled_from(NAMES)
some_nodes = st.lists(node_names, min_size=1, max_size=3, unique=True)
any_number = st.integers(0, 100)
codes = st.sampled_from(["QUOTA_EXCEEDED", "ZONE_RESOURCE_POOL_EXHAUSTED", "INTERNAL_ERROR"])
skews = st.sampled_from([-60, 0, 60]).map(lambda seconds: timedelta(seconds=seconds))


class Lives(CheckedLives):
    """See the module."""

    @initialize(
        version=st.sampled_from(list(SIDE_FLAGS_OF)),
        skew=skews,
        names=some_nodes,
        ticks=st.integers(0, 8),
        capacity=st.booleans(),
    )
    def begin(
        self,
        version: SlurmVersion,
        skew: timedelta,
        names: list[str],
        ticks: int,
        capacity: bool,
    ) -> None:
        self.version = version
        self.life = LivingWorld(Path(self._folder.name), version, skew)
        self.last_trouble = self.life.now - LONGER_THAN_EVERY_FAILURE
        self.job_gets_nodes(names, batch=True)
        self.tick_on(ticks, capacity=capacity)

    # Slurm and its users

    @rule(names=some_nodes, batch=st.booleans())
    def job_gets_nodes(self, names: list[str], batch: bool) -> None:
        free = [name for name in names if self._is_free(name)]
        if free:
            self.life.slurm.submit(free, partition=PARTITION, batch=batch)
            self.life.deliver_calls()

    @rule(count=st.integers(1, 3))
    def job_waits_for_more_life(self, count: int) -> None:
        limit = LIFE_SECONDS - 300
        self.life.slurm.queue(
            PARTITION, time_limit_seconds=limit, node_count=count, reason="Resources"
        )

    @precondition(lambda self: self._job(0, JobState.PENDING))
    @rule(number=any_number, names=some_nodes)
    def queued_job_gets_nodes(self, number: int, names: list[str]) -> None:
        free = [name for name in names if self._is_free(name)]
        job = self._job(number, JobState.PENDING)
        if job and free:
            self.life.slurm.allocate(job.job_id, free)
            self.life.deliver_calls()

    @precondition(lambda self: self._job(0, JobState.CONFIGURING, JobState.RUNNING))
    @rule(number=any_number, cancelled=st.booleans())
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

    @precondition(lambda self: self._nodes_with(NodeFlag.POWERING_UP))
    @rule(number=any_number)
    def resume_timeout_is_over(self, number: int) -> None:
        waking = self._nodes_with(NodeFlag.POWERING_UP)
        self.life.slurm.resume_timeout([waking[number % len(waking)]])

    @rule(name=node_names, number=any_number, is_known=st.booleans())
    def slurm_sets_a_flag(self, name: str, number: int, is_known: bool) -> None:
        flags = SIDE_FLAGS_OF[self.version]
        flag = frozenset({flags[number % len(flags)]}) if is_known else frozenset()
        unknown = frozenset() if is_known else frozenset({UNKNOWN_WORD})
        state = self.life.slurm.nodes[name].state
        self._set_words(name, state.flags | flag, unknown)

    @rule(name=node_names)
    def slurm_drops_such_flags(self, name: str) -> None:
        self._drop_side_flags(name)

    # People

    @rule(name=node_names, update=st.sampled_from(SEEN_BY_EYE))
    def person_changes_a_node(self, name: str, update: NodeUpdate) -> None:
        self._person_updates(name, update)

    @rule(state=st.sampled_from(["UP", "DOWN", "INACTIVE"]))
    def person_changes_the_partition(self, state: str) -> None:
        self._set_partition(state)

    @rule(change=st.sampled_from(list(CHANGES)))
    def operator_changes_the_cluster_file(self, change: str) -> None:
        # What jobs wait for may be another thing from the next pass on.
        self.trouble_passes = PASSES_UNTIL_TROUBLE_IS_KNOWN
        self.life.apply(CHANGES[change])

    @precondition(lambda self: self.life.vms())
    @rule(number=any_number)
    def person_deletes_a_vm(self, number: int) -> None:
        self.life.compute.state.set_status(self._vm(number), InstanceStatus.STOPPING)

    @precondition(lambda self: self.life.may_somebody_ask)
    @rule()
    def somebody_asks_in_our_group(self) -> None:
        self.life.somebody_asks_in_our_group()

    # Compute Engine

    @precondition(lambda self: self.life.ours_waiting())
    @rule(number=any_number, code=codes)
    def request_fails(self, number: int, code: str) -> None:
        waiting = self.life.ours_waiting()
        self.life.compute.state.fail(waiting[number % len(waiting)].reference, code)

    @precondition(lambda self: self.life.ours_waiting())
    @rule(number=any_number, code=codes)
    def attempt_finds_no_capacity(self, number: int, code: str) -> None:
        waiting = self.life.ours_waiting()
        self.life.compute.state.note_attempt(waiting[number % len(waiting)].reference, code)

    @precondition(lambda self: self.life.vms())
    @rule(names=some_nodes)
    def vms_vanish(self, names: list[str]) -> None:
        for name in set(names) & self.life.vms().keys():
            self.life.compute.state.vanish(name)

    @precondition(lambda self: self.life.vms())
    @rule(
        number=any_number,
        status=st.sampled_from([InstanceStatus.TERMINATED, InstanceStatus.UNKNOWN]),
    )
    def vm_changes(self, number: int, status: InstanceStatus) -> None:
        self.life.compute.state.set_status(self._vm(number), status)

    # Bad luck

    @rule(kind=st.sampled_from(ErrorKind))
    def next_call_of_compute_engine_fails(self, kind: ErrorKind) -> None:
        self.life.compute.fail_next(ComputeError(kind, kind.value, "bad luck"))

    @rule(reads=st.integers(1, 5))
    def lists_come_in_part(self, reads: int) -> None:
        for _ in range(reads):
            self.life.compute.fail_next(IN_PART, "read")

    @rule(code=codes)
    def next_operation_fails(self, code: str) -> None:
        self.life.compute.fail_next_operation(code, 500)

    @rule()
    def operations_get_stuck(self) -> None:
        self.life.compute.state.stick_operations()

    @precondition(lambda self: self.life.compute.state.stuck)
    @rule()
    def stuck_operations_go_on(self) -> None:
        self.life.compute.state.stuck.clear()

    @rule(error=st.sampled_from(SLURM_ERRORS), calls=st.integers(1, 8))
    def next_calls_of_slurm_fail(self, error: SlurmError, calls: int) -> None:
        for _ in range(calls):
            self.life.slurm.fail_next(error)

    @rule(calls=st.integers(0, 8), after=st.booleans())
    def controller_dies_now_or_soon(self, calls: int, after: bool) -> None:
        if not calls:
            self.life.restart()
        self.life.door.deaths_at = {self.life.door.calls + calls}
        self.life.door.dies_after_the_call = after

    @rule(skew=skews)
    def clock_of_the_controller_is_set(self, skew: timedelta) -> None:
        self.life.skew = skew

    # Time

    @rule()
    def controller_passes(self) -> None:
        self._controller_passes()

    @precondition(lambda self: not self.list_was_stale)
    @rule(names=some_nodes, groups=st.booleans(), requests=st.booleans())
    def controller_passes_over_stale_lists(
        self, names: list[str], groups: bool, requests: bool
    ) -> None:
        state = self.life.compute.state
        state.hidden.update(names)
        if groups:
            state.hidden.update(reference.name for reference in state.groups)
        if requests:
            state.hidden.update(r.reference.name for r in self.life.ours_waiting())
        self.trouble_passes = PASSES_UNTIL_TROUBLE_IS_KNOWN
        self._pass()
        state.hidden.clear()
        self.list_was_stale = True

    @rule(ticks=st.integers(1, 5))
    def a_while_without_capacity(self, ticks: int) -> None:
        self.tick_on(ticks, capacity=False)

    @rule(ticks=st.integers(1, 5))
    def a_while_with_capacity(self, ticks: int) -> None:
        self.tick_on(ticks, capacity=True)

    @rule()
    def world_lives(self) -> None:
        self._live()

    @rule()
    def suspend_timeout_is_over(self) -> None:
        self._sleep()

    @rule(zone_number=st.integers(0, 1))
    def capacity_comes(self, zone_number: int) -> None:
        self.life.grant_ours(zone_number)

    @rule(seconds=st.sampled_from([100, 1000]))
    def time_passes(self, seconds: int) -> None:
        self.life.advance(timedelta(seconds=seconds))

    # Helpers

    def _is_free(self, name: str) -> bool:
        state = self.life.slurm.nodes[name].state
        return state.base is BaseState.IDLE and not state.has(
            *OUT,
            NodeFlag.POWERING_DOWN,
            NodeFlag.POWER_DOWN,
            NodeFlag.POWER_UP,
            NodeFlag.COMPLETING,
        )

    def _vm(self, number: int) -> str:
        names = sorted(self.life.vms())
        return names[number % len(names)]

    def _job(self, number: int, *states: JobState) -> Job | None:
        jobs = [job for job in self.life.slurm.jobs.values() if job.state in states]
        return jobs[number % len(jobs)] if jobs else None


def run(examples: int, steps: int) -> None:
    """Shrinking is left out: a life that ends badly is long, and becomes a plain test by hand."""
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=examples,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_lives_come_to_their_right_end() -> None:
    run(examples=30, steps=25)


@pytest.mark.slow
def test_many_long_lives_come_to_their_right_end() -> None:
    run(examples=200, steps=50)
