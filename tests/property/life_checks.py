"""What must hold in every life of the state machine: all the time, after each pass, in the end."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis.stateful import RuleBasedStateMachine, invariant

from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.reconcile.pool_record import hold_end, read_record
from slurm_hooks.reconcile.reasons import reason_before
from slurm_hooks.slurm.client import NodeUpdate, SlurmRefused
from slurm_hooks.slurm.model import BaseState, JobState, Node, NodeFlag
from tests.property.life_world import (
    CLUSTER,
    NAMES,
    PARTITION,
    POWER,
    Explanation,
    LivingWorld,
    explanation_for,
)
from tests.unit.reconcile.life import LONGER_THAN_EVERY_GRACE

MOST_CALLS_A_PASS = 30
MOST_PASSES_OF_AN_UNNEEDED_VM = 4
PASSES_UNTIL_TROUBLE_IS_KNOWN = 3
"""How an operation ended is read a pass later, and its answer stands from then on."""

LONGER_THAN_EVERY_FAILURE = timedelta(seconds=90)
END_ROUNDS = 5
END_TICKS = 7
SIDE_FLAGS = (
    *(NodeFlag.INVALID_REG, NodeFlag.MAINTENANCE, NodeFlag.PLANNED, NodeFlag.POWER_DRAIN),
    *(NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED, NodeFlag.RESERVED),
)
LATER_SIDE_FLAGS = (NodeFlag.BLOCKED, NodeFlag.EXTERNAL)
ALL_SIDE_FLAGS = frozenset({*SIDE_FLAGS, *LATER_SIDE_FLAGS})
OUR_DRAINS = ("slurm-hooks: new generation", "slurm-hooks: leaves the cluster")
FAN = "fan is loud"


class CheckedLives(RuleBasedStateMachine):
    """The machine without its rules."""

    life: LivingWorld
    last_trouble: datetime

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.list_was_stale = False
        self.trouble_passes = 0
        self.unneeded_passes: Counter[str] = Counter()

    # What holds all the time

    @invariant()
    def no_name_is_there_or_on_its_way_twice(self) -> None:
        self.life.check()

    @invariant()
    def what_is_not_ours_is_as_it_was(self) -> None:
        self.life.assert_others_untouched()

    # What holds in the end

    def teardown(self) -> None:
        try:
            if hasattr(self, "life"):
                self._come_to_the_end()
        finally:
            self._folder.cleanup()

    def _come_to_the_end(self) -> None:
        self._end_faults()
        for _ in range(END_ROUNDS):
            self.tick_on(END_TICKS, capacity=True)
            self.life.advance(LONGER_THAN_EVERY_GRACE)
        self._live()
        self.life.lives_end = False
        self.tick_on(END_TICKS, capacity=True)
        for name in NAMES:
            self._assert_in_order(name)
        assert self.life.ours_waiting() == []
        self.life.assert_others_untouched()

    def _end_faults(self) -> None:
        self.life.door.deaths_at = set()
        self.life.slurm.failures = []
        self.life.compute.forget_faults()
        self.life.compute.state.stuck.clear()
        self._set_partition("UP")
        self.life.apply(CLUSTER)
        for job in list(self.life.slurm.jobs.values()):
            if job.state is JobState.PENDING:  # it would have nodes renewed to the very end
                self.life.slurm.cancel(job.job_id)
        for name, vm in self.life.vms().items():
            if vm.status is InstanceStatus.UNKNOWN:
                self.life.compute.state.set_status(name, InstanceStatus.TERMINATED)
        for name in NAMES:
            self._drop_side_flags(name)
            if _is_out_of_service(self.life.slurm.nodes[name]):
                self._person_updates(name, NodeUpdate.DOWN)
                self._person_updates(name, NodeUpdate.IDLE)

    def _assert_in_order(self, name: str) -> None:
        """A wanted node is up with its VM, or people know why not; no other has a VM."""
        node = self.life.slurm.nodes[name]
        has_vm = name in self.life.vms()
        is_up = not node.state.has(*POWER)
        is_trapped = node.state.has(NodeFlag.POWERED_DOWN) and node.state.has(
            NodeFlag.NOT_RESPONDING
        )
        if node.state.has(NodeFlag.DRAIN) and node.reason.startswith(OUR_DRAINS):
            assert node.reason == OUR_DRAINS[0], f"drained, though the file names it: {node}"
            assert node.state.base is not BaseState.IDLE, f"does not move: {node}"
            assert self.life.is_of_outdated_generation(name), f"drained in vain: {node}"
        assert not is_trapped, f"never given to a job again: {node}"
        assert not (node.state.has(NodeFlag.POWERED_DOWN) and has_vm), (
            f"VM outlives its need: {node}"
        )
        wanted = node.state.base is not BaseState.IDLE or CLUSTER.is_static(name)
        if wanted and not (is_up and has_vm):
            assert self._is_held(node) or self._is_told(name), f"no reason: {node}"
        if is_up:
            assert has_vm, f"up without a VM: {node}"

    def _is_held(self, node: Node) -> bool:
        """Whether its pool is held by its record, and the node itself tells until when."""
        pool = CLUSTER.pool_of(node.name)
        assert pool is not None
        nodes = [self.life.slurm.nodes[name] for name in CLUSTER.node_names(pool.pool_id)]
        records = [record for n in nodes if (record := read_record(n.comment)) is not None]
        now = self.life.now + self.life.skew
        end = hold_end(node.reason)
        return bool(
            node.state.has(NodeFlag.DRAIN)
            and end is not None
            and end > now
            and [record.until_utc for record in records] == [end]
            and records[0].cause in node.reason
        )

    def _is_told(self, name: str) -> bool:
        """Whether every job that waits for the node knows why."""
        jobs = [
            job
            for job in self.life.slurm.jobs.values()
            if job.state is JobState.CONFIGURING and name in job.nodes
        ]
        told = [(job, explanation_for(self.life, job)) for job in jobs]
        return bool(told) and all(why and why.fits(job.admin_comment) for job, why in told)

    # How it goes on

    def tick_on(self, ticks: int, capacity: bool) -> None:
        """All goes its way, with or without capacity for what waits."""
        for _ in range(ticks):
            if capacity:
                self.life.grant_ours()
            self._sleep()
            self._controller_passes()
            self._live()

    def _pass(self) -> None:
        if self._is_in_trouble():
            self.trouble_passes = PASSES_UNTIL_TROUBLE_IS_KNOWN
        if self.trouble_passes:
            self.trouble_passes -= 1
            self.last_trouble = self.life.now
        working = self.life.working()
        told = self._to_be_told()
        calls = self.life.door.calls
        self.life.one_pass()
        assert self.life.door.calls - calls <= MOST_CALLS_A_PASS
        for one in working:
            job = self.life.slurm.jobs[one.job.job_id]
            assert job.state is JobState.RUNNING, f"job lost by us: {one}"
            assert self.life.vm_ids(job.nodes) == one.vm_ids, f"VM below a job lost: {one}"
        if self.life.now - self.last_trouble > LONGER_THAN_EVERY_FAILURE:
            self._assert_told(told)
        self._assert_no_vm_outlives_its_need()

    def _is_in_trouble(self) -> bool:
        """Whether something keeps the controller from seeing or doing what it should."""
        life = self.life
        return bool(
            life.slurm.failures
            or life.compute.has_faults
            or life.compute.state.stuck
            or any(number > life.door.calls for number in life.door.deaths_at)
        )

    def _to_be_told(self) -> dict[int, Explanation]:
        jobs = [j for j in self.life.slurm.jobs.values() if j.state is JobState.CONFIGURING]
        found = {job.job_id: explanation_for(self.life, job) for job in jobs}
        return {job_id: why for job_id, why in found.items() if why is not None}

    def _assert_told(self, told: dict[int, Explanation]) -> None:
        for job_id, why in told.items():
            job = self.life.slurm.jobs[job_id]
            assert why.fits(job.admin_comment), f"{why} is not what {job} is told"

    def _assert_no_vm_outlives_its_need(self) -> None:
        """Counted in passes without trouble, once the grace is over."""
        is_quiet = self.life.now - self.last_trouble > LONGER_THAN_EVERY_FAILURE
        unneeded = [vm.instance_id for vm in self.life.unneeded_vms()] if is_quiet else []
        self.unneeded_passes = Counter({i: self.unneeded_passes[i] + 1 for i in unneeded})
        for identity, passes in self.unneeded_passes.items():
            assert passes <= MOST_PASSES_OF_AN_UNNEEDED_VM, f"VM {identity} outlives its need"

    def _live(self) -> None:
        self.life.end_lives()
        self.life.live()
        for name in self.life.vms():
            self._answer_ping(name)

    def _answer_ping(self, name: str) -> None:
        """slurmd of a VM that runs answers slurmctld."""
        state = self.life.slurm.nodes[name].state
        runs = self.life.compute.state.instance(name).status is InstanceStatus.RUNNING
        if runs and not state.has(*POWER):
            self._set_words(name, state.flags - {NodeFlag.NOT_RESPONDING}, state.unknown)

    def _set_words(self, name: str, flags: frozenset[NodeFlag], unknown: frozenset[str]) -> None:
        node = self.life.slurm.nodes[name]
        state = replace(node.state, flags=flags, unknown=unknown)
        self.life.slurm.nodes[name] = replace(node, state=state)

    def _person_updates(self, name: str, update: NodeUpdate) -> None:
        with contextlib.suppress(SlurmRefused):
            self.life.person_updates(name, update, FAN)

    def _nodes_with(self, flag: NodeFlag) -> list[str]:
        return [name for name in NAMES if self.life.slurm.nodes[name].state.has(flag)]

    def _controller_passes(self) -> None:
        self.life.advance(timedelta(seconds=10))
        self._pass()
        self.list_was_stale = False

    def _sleep(self) -> None:
        self.life.slurm.slept(self._nodes_with(NodeFlag.POWERING_DOWN))

    def _set_partition(self, state: str) -> None:
        partitions = self.life.slurm.partitions
        partitions[PARTITION] = replace(partitions[PARTITION], state=state)

    def _drop_side_flags(self, name: str) -> None:
        flags = self.life.slurm.nodes[name].state.flags
        self._set_words(name, flags - ALL_SIDE_FLAGS, frozenset())


def _is_out_of_service(node: Node) -> bool:
    """Whether a person must give it back. While a node is set aside its reason alone says so: it
    is drained again at the next pass. Drains for a changed cluster file end with it."""
    is_set_aside = reason_before(node.reason) != ""
    is_drained = node.state.has(NodeFlag.DRAIN) and not node.reason.startswith(OUR_DRAINS)
    return is_drained or node.state.base is BaseState.DOWN or is_set_aside
