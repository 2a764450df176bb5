"""A cluster that lives by itself between two passes, and a door that sees every call to it.

slurmctld works, VMs boot, register and go, operations end and time passes with each `tick`. All
that the controller asks of Slurm and Compute Engine goes through a `Door`, where a test counts
calls, checks what must hold after each, or has the controller die at one.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import RequestReference
from slurm_hooks.history.events import EventHistory
from slurm_hooks.programs import spool
from slurm_hooks.reconcile.actions import Plan
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import JobState, NodeFlag
from slurm_hooks.slurm.versions import SlurmVersion
from tests.fakes.compute import FakeCompute
from tests.fakes.slurm import SLURM_22_05, FakeSlurm
from tests.unit.reconcile.condemned import passed_reason
from tests.unit.reconcile.scenario import Scenario

TICK = timedelta(seconds=10)
OUT = (NodeFlag.DRAIN, NodeFlag.FAIL)
MOST_TICKS = 60
LONGER_THAN_EVERY_GRACE = timedelta(seconds=400)


class Death(BaseException):
    """The end of the controller's process: nothing catches it, as nothing catches kill -9."""


@dataclass
class Door:
    """Sees every call of the controller. `deaths_at` are the calls at which it dies, from 1."""

    check: Callable[[], None]
    deaths_at: set[int] = field(default_factory=set)
    dies_after_the_call: bool = False
    calls: int = 0

    def enter(self) -> None:
        """The controller is about to make a call."""
        self.calls += 1
        if self.calls in self.deaths_at and not self.dies_after_the_call:
            raise Death

    def leave(self) -> None:
        """The call was carried out; the controller may not live to see its answer."""
        self.check()
        if self.calls in self.deaths_at and self.dies_after_the_call:
            raise Death


class Watched:
    """A client whose every call goes through a door."""

    def __init__(self, client: object, door: Door) -> None:
        self._client = client
        self._door = door

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._door.enter()
            try:
                return method(*arguments, **named)
            finally:
                self._door.leave()

        return call


@dataclass
class Life(Scenario):
    """A scenario with a door. `asked_for` has every request that there ever was: its name is free
    again once it is reaped, which a restart may delay. `reboots_hang`: none ever ends.
    `reboots_heal`: the first health run after each passes, else none says a word."""

    asked_for: dict[tuple[RequestReference, datetime | None], tuple[str, ...]] = field(
        default_factory=dict
    )
    deaths: int = 0
    reboots_hang: bool = False
    reboots_heal: bool = True
    _delivered: int = 0

    def __post_init__(self) -> None:
        self.door = Door(self.check)
        super().__post_init__()

    def restart(self) -> None:
        """A new controller process behind the same door."""
        slurm, compute, history = self.slurm, self.compute, self.history
        self.slurm = cast(FakeSlurm, Watched(slurm, self.door))
        self.compute = cast(FakeCompute, Watched(compute, self.door))
        self.history = cast(EventHistory, Watched(history, self.door))
        super().restart()
        self.slurm, self.compute, self.history = slurm, compute, history

    def check(self) -> None:
        """What holds after every single call: no name is there, or on its way, twice."""
        for reference, request in self.compute.state.requests.items():
            made = request.creation_time_utc
            self.asked_for.setdefault((reference, made), request.instances)
        waiting = [name for r in self.requests() if r.state.is_active for name in r.instances]
        waiting += [name for _, name in self.compute.state.members]
        twice = [name for name, n in Counter([*waiting, *self.vm_names()]).items() if n > 1]
        assert not twice, f"twice: {twice}"

    def tick(self) -> Plan | None:
        """One pass, and what the world does until the next; None if the controller died."""
        self.advance(TICK)
        self.slurm.slept(
            [n for n, node in self.slurm.nodes.items() if node.state.has(NodeFlag.POWERING_DOWN)]
        )
        plan = self.one_pass()
        self.live()
        return plan

    def live(self) -> None:
        """What the world does by itself in a moment."""
        self.compute.state.finish_operations()
        self.compute.state.step()
        self.register_running()
        if not self.reboots_hang:
            self._end_reboots()
        self.slurm.issue_reboots()
        self.slurm.pass_power_thread()
        self.deliver_calls()

    def advance(self, by: timedelta) -> None:
        """Time passes, the same everywhere."""
        self.now += by
        self.compute.state.now_utc = self.slurm.now_utc = self.now

    def rest(self) -> None:
        """Ticks until nothing moves any more."""
        for _ in range(MOST_TICKS):
            before = self.picture()
            plan = self.tick()
            if plan and not plan.actions and not plan.unsettled and before == self.picture():
                return
        raise AssertionError(f"not at rest after {MOST_TICKS} ticks: {plan}")

    def deliver_calls(self) -> None:
        """ResumeProgram leaves its calls in the spool, with the jobs that ask."""
        for call in self.slurm.program_calls[self._delivered :]:
            if call.program == "ResumeProgram":
                self._write_call(call.names)
        self._delivered = len(self.slurm.program_calls)

    def drained_names(self) -> list[str]:
        """The nodes that are drained."""
        return [name for name, k in self.slurm.nodes.items() if k.state.has(NodeFlag.DRAIN)]

    def person_updates(self, name: str, update: NodeUpdate, reason: str) -> None:
        """A person changes a node, whatever bad luck waits for the controller's next call."""
        failures, self.slurm.failures = self.slurm.failures, []
        try:
            self.slurm.update_nodes([name], update, reason)
        finally:
            self.slurm.failures = failures

    def end_state(self) -> tuple[object, ...]:
        """All that must be the same at the end, however often the controller died: nodes, jobs,
        VMs, groups, templates, reasons of drained nodes, comments of jobs, reservations without
        their times, and the requests that there ever were, without their names. Of a pool's
        record only that there is one: a restart may count a failure that is still listed twice,
        and the comment costs a node in service its reason."""
        nodes, jobs, _, vms = self.picture()
        waiting = sorted(r.instances for r in self.requests() if r.state.is_active)
        state = self.compute.state
        return (
            *(nodes, jobs, vms, waiting, sorted(self.asked_for.values())),
            *(sorted(state.groups), sorted(name for _, name in state.templates)),
            [_without_times(n.reason) for n in self.slurm.nodes.values() if n.state.has(*OUT)],
            [name for name, node in self.slurm.nodes.items() if node.comment],
            [_without_times(j.admin_comment) for j in self.slurm.jobs.values() if j.is_active],
            sorted(reservation.nodes for reservation in self.slurm.reservations.values()),
        )

    def one_pass(self) -> Plan | None:
        """One pass; None if the controller died, and a new one is there."""
        try:
            return self.run()
        except Death:
            self.deaths += 1
            self.restart()
            return None

    def _end_reboots(self) -> None:
        issued = NodeFlag.REBOOT_ISSUED
        names = [name for name, node in self.slurm.nodes.items() if node.state.has(issued)]
        self.slurm.come_back(names)
        for (_, name), vm in self.compute.state.instances.items():
            if name in names and self.reboots_heal and name in self.drained_names():
                self.slurm.nodes[name] = replace(
                    self.slurm.nodes[name],
                    reason=passed_reason(vm.instance_id),
                    reason_time_utc=self.now,
                )

    def _write_call(self, names: tuple[str, ...]) -> None:
        jobs = [
            {"job_id": job.job_id, "nodes_resume": ",".join(set(job.nodes) & set(names))}
            for job in self.slurm.jobs.values()
            if job.state is JobState.CONFIGURING and set(job.nodes) & set(names)
        ]
        resume_file = json.dumps({"jobs": jobs})
        spool.write_call(str(self.spool), "resume", ",".join(names), resume_file)


def _without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)


def lives(
    directory: Path,
    cluster: Cluster,
    operations_take_time: bool,
    version: SlurmVersion = SLURM_22_05,
) -> Callable[[], Life]:
    """Makes lives of one kind, each in a folder of its own."""
    numbers = itertools.count(1)

    def make() -> Life:
        slurm = FakeSlurm(version=version)
        life = Life(directory / str(next(numbers)), cluster, slurm)
        life.compute.operations_finish_at_once = not operations_take_time
        return life

    return make
