"""A Slurm in memory behind the SlurmClient protocol, for tests of whoever steers it.

It reacts to state requests as slurmctld of 22.05 does, or of 24.11 or 26.05 (all measured). Names
and texts are trusted; what a node may not do raises SlurmRefused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from slurm_hooks.slurm.client import (
    NodeUpdate,
    ReservationSpecification,
    SlurmError,
    SlurmRefused,
    SlurmUnavailable,
)
from slurm_hooks.slurm.model import BaseState, JobState, Node, NodeFlag, Reservation, SlurmSnapshot
from slurm_hooks.slurm.versions import SlurmVersion
from tests.fakes.slurm_machine import SlurmMachine

SLURM_22_05 = SlurmVersion(22, 5, 8)
SLURM_24_11 = SlurmVersion(24, 11, 5)
SLURM_26_05 = SlurmVersion(26, 5, 5)


@dataclass(frozen=True)
class Reactions:
    """In what the versions differ."""

    power_down_hides_off: bool
    """A node that is off does not look off between the request and SuspendProgram's next run."""
    healthy_node_drops_reason: bool
    """A reason alone, IDLE, RESUME and UNDRAIN clear the reason of a node that is healthy then."""
    return_springs_trap: bool
    """RESUME and UNDRAIN of a node that is off leave it NOT_RESPONDING."""


_REACTIONS = {
    SLURM_22_05: Reactions(True, True, True),
    SLURM_24_11: Reactions(False, False, True),
    SLURM_26_05: Reactions(False, True, False),
}


@dataclass(frozen=True)
class Call:
    """One call of the client: the method's name and its arguments."""

    method: str
    names: tuple[str, ...] = ()
    update: NodeUpdate | None = None
    reason: str | None = None
    job_id: int = 0
    text: str = ""


class FakeSlurm(SlurmMachine):
    """A SlurmClient with state; `calls` tells what it was asked for, failed calls included."""

    def __init__(
        self,
        names: Sequence[str] = (),
        partition: str = "batch",
        *,
        idle_on_node_suspend: bool = True,
        version: SlurmVersion = SLURM_22_05,
        names_are_addresses: bool = False,
    ) -> None:
        super().__init__(idle_on_node_suspend=idle_on_node_suspend)
        self.names_are_addresses = names_are_addresses
        self._reactions = _REACTIONS[max(known for known in _REACTIONS if known <= version)]
        self.calls: list[Call] = []
        self.failures: list[SlurmError] = []
        self._failures_by_method: dict[str, SlurmError] = {}
        if names:
            self.add_nodes(names, partition)

    def read(self) -> SlurmSnapshot:
        """All that there is, as a copy."""
        self._log(Call("read"))
        return SlurmSnapshot(
            dict(self.nodes),
            dict(self.jobs),
            dict(self.partitions),
            dict(self.reservations),
            self.unreadable,
            keeps_lone_reason=not self._reactions.healthy_node_drops_reason,
        )

    def read_nodes(self, names: Sequence[str]) -> dict[str, Node]:
        """The named nodes that exist."""
        self._log(Call("read_nodes", tuple(names)))
        return {name: self.nodes[name] for name in names if name in self.nodes}

    def update_nodes(
        self, names: Sequence[str], update: NodeUpdate | None, reason: str | None = None
    ) -> None:
        """React as slurmctld does; a refused node does not undo those before it."""
        self._log(Call("update_nodes", tuple(names), update, reason))
        if update is None and reason is None:
            raise ValueError("neither a state nor a reason to set")
        missing = [name for name in names if name not in self.nodes]
        if missing:
            raise SlurmRefused(f"Invalid node name specified: {missing}")
        for name in names:
            if update is not None:
                self._request(name, update)
            self._set_reason(name, update, reason)

    def reboot_nodes(self, names: Sequence[str], reason: str) -> None:
        """The nodes wait for the reboot until they are free."""
        self._log(Call("reboot_nodes", tuple(names), reason=reason))
        missing = [name for name in names if name not in self.nodes]
        if missing:
            raise SlurmRefused(f"Invalid node name specified: {missing}")
        self.request_reboot(names, reason)

    def set_node_addresses(self, names: Sequence[str], address: str, reason: str) -> None:
        """Set the address of nodes that exist; a reason that is the node's already stays."""
        self._log(Call("set_node_addresses", tuple(names), reason=reason, text=address))
        missing = [name for name in names if name not in self.nodes]
        if missing:
            raise SlurmRefused(f"Invalid node name specified: {missing}")
        for name in names:
            self.nodes[name] = replace(self.nodes[name], address=address)
            if self.nodes[name].reason != reason:
                self._set_reason(name, None, reason or None)

    def set_admin_comment(self, job_id: int, text: str, part: str = "") -> None:
        """Write the comment; unknown jobs, and parts that they do not have, are refused."""
        self._log(Call("set_admin_comment", job_id=job_id, text=text))
        if job_id not in self.jobs or part not in ("", self.jobs[job_id].part):
            raise SlurmRefused(f"Invalid job id specified for job {job_id}{part}")
        self._change_job(job_id, admin_comment=text)

    def set_node_comment(self, name: str, text: str) -> None:
        """Write the comment; unknown nodes are refused."""
        self._log(Call("set_node_comment", (name,), text=text))
        if name not in self.nodes:
            raise SlurmRefused(f"Invalid node name specified: {name}")
        self.nodes[name] = replace(self.nodes[name], comment=text)
        self._set_reason(name, None, self.nodes[name].reason)

    def create_reservation(self, specification: ReservationSpecification) -> None:
        """Keep the reservation; one of that name stays as it is, odd nodes are refused."""
        self._log(Call("create_reservation", specification.nodes, text=specification.name))
        missing = [name for name in specification.nodes if name not in self.nodes]
        if missing or not specification.nodes:
            raise SlurmRefused(f"Invalid node name specified: {missing}")
        start_utc = max(specification.start_time_utc, self.now_utc)
        reservation = Reservation(
            specification.name,
            specification.nodes,
            start_utc,
            start_utc + timedelta(seconds=specification.duration_seconds),
            frozenset({"MAINT", "IGNORE_JOBS", "SPEC_NODES"}),
        )
        self.reservations.setdefault(specification.name, reservation)

    def delete_reservation(self, name: str) -> None:
        """Drop the reservation if it is there."""
        self._log(Call("delete_reservation", text=name))
        self.reservations.pop(name, None)

    def signal_job(self, job_id: int, signal: str, part: str = "") -> None:
        """Only the call is kept; scancel gets no end with a job that does not run yet."""
        self._log(Call("signal_job", job_id=job_id, text=signal))
        job = self.jobs.get(job_id)
        if job is not None and job.state in (JobState.PENDING, JobState.CONFIGURING):
            raise SlurmUnavailable(f"scancel {job_id}: no answer within 30 s")

    def fail_next(self, error: SlurmError) -> None:
        """The next call of the client raises this; several wait in line."""
        self.failures.append(error)

    def fail_at(self, method: str, error: SlurmError) -> None:
        """The next call of this method raises the error."""
        self._failures_by_method[method] = error

    def forget_faults(self) -> None:
        """No error that waits for its call comes any more."""
        self.failures = []
        self._failures_by_method.clear()

    def _request(self, name: str, update: NodeUpdate) -> None:
        reactions = {
            NodeUpdate.POWER_UP: self._power_up,
            NodeUpdate.POWER_DOWN: self._power_down,
            NodeUpdate.POWER_DOWN_FORCE: self._power_down_force,
            NodeUpdate.DOWN: self._down,
            NodeUpdate.DRAIN: self._drain,
            NodeUpdate.IDLE: self._idle,
            NodeUpdate.RESUME: self._resume,
            NodeUpdate.UNDRAIN: self._undrain,
        }
        reactions[update](name)

    def _power_up(self, name: str) -> None:
        if self._has(name, NodeFlag.POWERING_UP):
            # Asked again while waking: shown as off and waking at once until the next pass.
            self._set(name, add={NodeFlag.POWER_UP, NodeFlag.POWERED_DOWN})
        elif self._has(name, NodeFlag.POWERED_DOWN):
            self._set(name, add={NodeFlag.POWER_UP})

    def _power_down(self, name: str) -> None:
        if self._has(name, NodeFlag.POWERING_DOWN):
            return
        self.cancel_reboot([name])
        remove = self._cleared_by_power_down()
        if self.nodes[name].state.base is BaseState.DOWN:
            remove.add(NodeFlag.POWERING_UP)
        self._set(name, add={NodeFlag.POWER_DOWN}, remove=remove)

    def _power_down_force(self, name: str) -> None:
        had_jobs = self._end_jobs_on(name)
        was_up = not self._has(name, NodeFlag.POWERING_UP, NodeFlag.POWERED_DOWN)
        # The epilog of a job that ran has to end first: on a dead VM it never does.
        completing = {NodeFlag.COMPLETING} if had_jobs and was_up else set[NodeFlag]()
        is_down = self.nodes[name].state.base is BaseState.DOWN
        self._set(
            name,
            base=BaseState.DOWN if is_down else BaseState.IDLE,
            add={NodeFlag.POWER_DOWN} | completing,
            remove={NodeFlag.POWERING_UP} | self._cleared_by_power_down(),
        )

    def _cleared_by_power_down(self) -> set[NodeFlag]:
        """Later versions show a node that is off as off until SuspendProgram runs again."""
        return {NodeFlag.POWERED_DOWN} if self._reactions.power_down_hides_off else set()

    def _down(self, name: str) -> None:
        self._end_jobs_on(name)
        self._set(name, base=BaseState.DOWN, remove={NodeFlag.COMPLETING})

    def _drain(self, name: str) -> None:
        if self._has(name, NodeFlag.POWERING_UP, NodeFlag.POWERED_DOWN):
            self._end_jobs_on(name)
        self._set(name, add={NodeFlag.DRAIN})

    def _idle(self, name: str) -> None:
        if self.nodes[name].state.base not in (BaseState.IDLE, BaseState.DOWN):
            raise SlurmRefused("Invalid node state specified")
        self._set(name, base=BaseState.IDLE, remove={NodeFlag.DRAIN, NodeFlag.FAIL})

    def _resume(self, name: str) -> None:
        state = self.nodes[name].state
        if state.has(NodeFlag.POWERING_DOWN):
            self.slept([name])
            return
        leaves_down = state.base in (BaseState.DOWN, BaseState.FUTURE)
        leaves_flag = state.has(NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.REBOOT_REQUESTED)
        if state.has(NodeFlag.INVALID_REG) or not (leaves_down or leaves_flag):
            raise SlurmRefused("Invalid node state specified")
        self._set(
            name,
            base=BaseState.IDLE if leaves_down else state.base,
            add=self._set_by_return(name),
            remove={NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.REBOOT_REQUESTED},
        )

    def _undrain(self, name: str) -> None:
        self._set(name, add=self._set_by_return(name), remove={NodeFlag.DRAIN})

    def _set_by_return(self, name: str) -> set[NodeFlag]:
        is_off = self._has(name, NodeFlag.POWERED_DOWN)
        is_spared = is_off and not self._reactions.return_springs_trap
        return set() if is_spared else {NodeFlag.NOT_RESPONDING}

    def _set_reason(self, name: str, update: NodeUpdate | None, reason: str | None) -> None:
        node = self.nodes[name]
        is_out = node.state.base is BaseState.DOWN or node.state.has(NodeFlag.DRAIN, NodeFlag.FAIL)
        back = (NodeUpdate.IDLE, NodeUpdate.RESUME, NodeUpdate.UNDRAIN, None)
        drops = update in back and self._reactions.healthy_node_drops_reason
        if drops and not is_out:
            self._set_reason_text(name, "")
        elif reason is not None:
            self._set_reason_text(name, reason)

    def _log(self, call: Call) -> None:
        self.calls.append(call)
        if call.method in self._failures_by_method:
            raise self._failures_by_method.pop(call.method)
        if self.failures:
            raise self.failures.pop(0)
