"""The nodes and jobs of a Slurm in memory, and what happens to them in slurmctld.

Nothing happens by itself: power steps come when a test says so, with `pass_power_thread`,
`register`, `slept` and `resume_timeout`. Source: 22.05.8 as measured, the rest from source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from slurm_hooks.slurm.model import (
    BaseState,
    Job,
    JobState,
    Node,
    NodeFlag,
    NodeState,
    Partition,
    Reservation,
)

POWERED_DOWN = NodeState(BaseState.IDLE, frozenset({NodeFlag.CLOUD, NodeFlag.POWERED_DOWN}))
_ALLOCATING = frozenset({JobState.CONFIGURING, JobState.RUNNING, JobState.SUSPENDED})


@dataclass(frozen=True)
class ProgramCall:
    """ResumeProgram, SuspendProgram or ResumeFailProgram that slurmctld would have started."""

    program: str
    names: tuple[str, ...]


class SlurmMachine:
    """Nodes, jobs and the steps of slurmctld; `program_calls` tells which programs it started.

    `now_utc` is the time that start and boot times are set to. `names_are_addresses`: the address
    of a node that is off is its name, as in slurmctld; else one that nobody has to care about.
    """

    def __init__(self, *, idle_on_node_suspend: bool = True) -> None:
        self.nodes: dict[str, Node] = {}
        self.jobs: dict[int, Job] = {}
        self.partitions: dict[str, Partition] = {}
        self.reservations: dict[str, Reservation] = {}
        self.unreadable: tuple[str, ...] = ()
        self.program_calls: list[ProgramCall] = []
        self.now_utc = datetime(2026, 1, 5, 12, tzinfo=UTC)
        self.names_are_addresses = False
        self._idle_on_node_suspend = idle_on_node_suspend
        self._last_job_id = 0

    def add_nodes(
        self, names: Iterable[str], partition: str = "batch", state: NodeState = POWERED_DOWN
    ) -> None:
        """Nodes of a partition, powered-down cloud nodes unless told otherwise."""
        known = self.partitions.get(partition, Partition(partition, "UP"))
        names = tuple(names)
        for name in names:
            self.nodes[name] = Node(
                name,
                state,
                partitions=(partition,),
                address=self._address_when_off(name),
                hostname=name,
            )
        self.partitions[partition] = replace(known, nodes=known.nodes + names)

    def set_state(self, name: str, base: BaseState, *flags: NodeFlag, reason: str = "") -> None:
        """Put a node into any state, CLOUD included only if named."""
        state = NodeState(base, frozenset(flags))
        self.nodes[name] = replace(self.nodes[name], state=state, reason=reason)

    def queue(
        self,
        partition: str = "batch",
        user: str = "user1",
        batch: bool = True,
        time_limit_seconds: int | None = 3600,
        node_count: int = 1,
        reason: str = "",
    ) -> int:
        """A pending job without nodes, and why it waits; its id."""
        self._last_job_id += 1
        job = Job(
            job_id=self._last_job_id,
            state=JobState.PENDING,
            reason=reason,
            user=user,
            name="wrap",
            partition=partition,
            requeue=batch,
            batch=batch,
            priority=1,
            time_limit_seconds=time_limit_seconds,
            node_count=node_count,
        )
        self.jobs[job.job_id] = job
        return job.job_id

    def submit(
        self,
        names: Sequence[str],
        partition: str = "batch",
        user: str = "user1",
        batch: bool = True,
        wake: bool = True,
        time_limit_seconds: int | None = 3600,
    ) -> int:
        """A job that gets these nodes at once and, if `wake`, has them resumed; its id."""
        job_id = self.queue(partition, user, batch, time_limit_seconds, len(names))
        self.allocate(job_id, names, wake)
        return job_id

    def allocate(self, job_id: int, names: Sequence[str], wake: bool = True) -> None:
        """Give a pending job its nodes: CONFIGURING if one of them is not up, else RUNNING."""
        for name in names:
            self._set(name, base=BaseState.ALLOCATED)
            self.nodes[name] = replace(self.nodes[name], reason="")
        self._change_job(
            job_id,
            state=JobState.CONFIGURING,
            reason="",
            nodes=tuple(names),
            start_time_utc=self.now_utc,
        )
        if wake:
            self.wake([name for name in names if self._has(name, NodeFlag.POWERED_DOWN)])
        self._start_jobs()

    def wake(self, names: Sequence[str]) -> None:
        """ResumeProgram has been called for these nodes."""
        for name in names:
            self._set(
                name,
                add={NodeFlag.POWERING_UP, NodeFlag.NOT_RESPONDING},
                remove={NodeFlag.POWERED_DOWN, NodeFlag.POWER_UP},
            )
        self._program("ResumeProgram", names)

    def register(self, names: Sequence[str], address: str = "127.0.0.1") -> None:
        """Their slurmd has registered; jobs with all nodes up start."""
        for name in names:
            self._set(
                name,
                remove={
                    NodeFlag.NOT_RESPONDING,
                    NodeFlag.POWERING_UP,
                    NodeFlag.POWERED_DOWN,
                    NodeFlag.POWERING_DOWN,
                },
            )
            self.nodes[name] = replace(
                self.nodes[name], address=address, boot_time_utc=self.now_utc
            )
        self._start_jobs()

    def answer_pings(self) -> None:
        """slurmd of each node that is up has answered, as it does soon after a RESUME."""
        for name, node in self.nodes.items():
            away = (NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP)
            if node.state.base is not BaseState.DOWN and not node.state.has(*away):
                self._set(name, remove={NodeFlag.NOT_RESPONDING})

    def pass_power_thread(self) -> None:
        """One pass of slurmctld's power thread: requested power ups and downs are carried out."""
        self.suspend([name for name in self.nodes if self._may_power_down(name)])
        self.wake(
            [
                name
                for name, node in self.nodes.items()
                if node.state.has(NodeFlag.POWERED_DOWN)
                and not node.state.has(NodeFlag.POWERING_DOWN)
                and (node.state.has(NodeFlag.POWER_UP) or node.state.base is BaseState.ALLOCATED)
            ]
        )

    def suspend(self, names: Sequence[str]) -> None:
        """SuspendProgram has been called for these nodes, asked for or after SuspendTime."""
        for name in names:
            state = self.nodes[name].state
            remove = {NodeFlag.POWER_DOWN, NodeFlag.POWERED_DOWN, NodeFlag.NOT_RESPONDING}
            if state.has(NodeFlag.POWER_DOWN) or self._idle_on_node_suspend:
                remove.add(NodeFlag.DRAIN)
            base = state.base
            if self._idle_on_node_suspend:
                remove.add(NodeFlag.FAIL)
                base = BaseState.IDLE
            self._set(name, base=base, add={NodeFlag.POWERING_DOWN}, remove=remove)
        self._program("SuspendProgram", names)

    def slept(self, names: Sequence[str]) -> None:
        """SuspendTimeout is over for these nodes: they count as powered down."""
        for name in names:
            self._set(
                name,
                add={NodeFlag.POWERED_DOWN},
                remove={NodeFlag.POWERING_DOWN, NodeFlag.INVALID_REG},
            )
            self.nodes[name] = replace(
                self.nodes[name],
                address=self._address_when_off(name),
                hostname=name,
                instance_id="",
            )

    def forget_addresses(self) -> None:
        """slurmctld has read its configuration: nodes that are off have their names again."""
        for name, node in self.nodes.items():
            if node.state.has(NodeFlag.POWERED_DOWN):
                self.nodes[name] = replace(node, address=self._address_when_off(name))

    def _address_when_off(self, name: str) -> str:
        return name if self.names_are_addresses else "127.0.0.1"

    def resume_timeout(self, names: Sequence[str]) -> None:
        """ResumeTimeout is over for these nodes without a registration (23.02.5 and later)."""
        for name in names:
            self._end_jobs_on(name)
            self._set(
                name,
                base=BaseState.DOWN,
                add={NodeFlag.POWERED_DOWN},
                remove={
                    NodeFlag.DRAIN,
                    NodeFlag.POWER_DOWN,
                    NodeFlag.POWERING_UP,
                    NodeFlag.NOT_RESPONDING,
                },
            )
            reason = self.nodes[name].reason
            text = f"{reason} : ResumeTimeout reached" if reason else "ResumeTimeout reached"
            self.nodes[name] = replace(self.nodes[name], reason=text)
        self._program("ResumeFailProgram", names)

    def request_reboot(self, names: Sequence[str], reason: str) -> None:
        """`scontrol reboot` (22.05.8, measured): takes no node out of service before it is free."""
        for name in names:
            if not self._has(name, NodeFlag.REBOOT_ISSUED):
                self._set(name, add={NodeFlag.REBOOT_REQUESTED})
                self._set_reason_text(name, reason)

    def issue_reboots(self) -> list[str]:
        """slurmd of each free node that is to be rebooted has been told so; which ones."""
        names = [
            name
            for name, node in self.nodes.items()
            if node.state.has(NodeFlag.REBOOT_REQUESTED)
            and node.state.base is BaseState.IDLE
            and not node.state.has(NodeFlag.COMPLETING)
        ]
        for name in names:
            self._set(
                name,
                base=BaseState.DOWN,
                add={NodeFlag.REBOOT_ISSUED, NodeFlag.NOT_RESPONDING},
                remove={NodeFlag.REBOOT_REQUESTED},
            )
            self._set_reason_text(name, f"{self.nodes[name].reason} : reboot issued")
        return names

    def come_back(self, names: Sequence[str]) -> None:
        """Their slurmd has registered after the reboot: a node that was drained is so still, with
        its reason (22.05.8, measured)."""
        for name in names:
            gone = {NodeFlag.REBOOT_ISSUED, NodeFlag.NOT_RESPONDING}
            self._set(name, base=BaseState.IDLE, remove=gone)
            if not self._has(name, NodeFlag.DRAIN):
                self._set_reason_text(name, "")
            self.nodes[name] = replace(self.nodes[name], boot_time_utc=self.now_utc)

    def reboot_timeout(self, names: Sequence[str]) -> None:
        """ResumeTimeout is over for nodes that were rebooted (22.05.8, measured)."""
        for name in names:
            self._set(
                name,
                base=BaseState.DOWN,
                add={NodeFlag.NOT_RESPONDING},
                remove={NodeFlag.DRAIN, NodeFlag.REBOOT_ISSUED},
            )
            self._set_reason_text(name, f"{self.nodes[name].reason} : reboot timed out")

    def cancel_reboot(self, names: Sequence[str]) -> None:
        """What POWER_DOWN does to a node that reboots: it is as if never asked for."""
        for name in names:
            if self._has(name, NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED):
                self._set(
                    name,
                    base=BaseState.IDLE,
                    remove={NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED},
                )
                self._set_reason_text(name, "")

    def cancel(self, job_id: int) -> None:
        """The user cancels the job; its nodes become free and keep their power flags."""
        self._end(job_id, JobState.CANCELLED)

    def complete(self, job_id: int) -> None:
        """The job ends well."""
        self._end(job_id, JobState.COMPLETED)

    def forget(self, job_id: int) -> None:
        """MinJobAge is over: the ended job is no longer listed."""
        del self.jobs[job_id]

    def _program(self, program: str, names: Sequence[str]) -> None:
        if names:
            self.program_calls.append(ProgramCall(program, tuple(names)))

    def _has(self, name: str, *flags: NodeFlag) -> bool:
        return self.nodes[name].state.has(*flags)

    def _set(
        self,
        name: str,
        base: BaseState | None = None,
        add: set[NodeFlag] | frozenset[NodeFlag] = frozenset(),
        remove: set[NodeFlag] | frozenset[NodeFlag] = frozenset(),
    ) -> None:
        node = self.nodes[name]
        state = replace(
            node.state, base=base or node.state.base, flags=(node.state.flags - remove) | add
        )
        self.nodes[name] = replace(node, state=state)

    def _set_reason_text(self, name: str, reason: str) -> None:
        self.nodes[name] = replace(
            self.nodes[name], reason=reason, reason_time_utc=self.now_utc if reason else None
        )

    def _may_power_down(self, name: str) -> bool:
        state = self.nodes[name].state
        return (
            state.has(NodeFlag.POWER_DOWN)
            and state.base in (BaseState.IDLE, BaseState.DOWN)
            and not state.has(NodeFlag.COMPLETING, NodeFlag.POWERING_UP, NodeFlag.POWERING_DOWN)
        )

    def _start_jobs(self) -> None:
        for job in list(self.jobs.values()):
            if job.state is JobState.CONFIGURING and not any(
                self._has(name, NodeFlag.POWERED_DOWN, NodeFlag.POWERING_UP) for name in job.nodes
            ):
                self._change_job(job.job_id, state=JobState.RUNNING)

    def _end_jobs_on(self, name: str) -> bool:
        """Requeue batch jobs of the node, fail the others; whether there were any."""
        ended = [
            job for job in self.jobs.values() if job.state in _ALLOCATING and name in job.nodes
        ]
        for job in ended:
            if job.batch and job.requeue:
                self._end(job.job_id, JobState.PENDING)
                self._change_job(
                    job.job_id,
                    nodes=(),
                    reason="BeginTime",
                    restarts=job.restarts + 1,
                    start_time_utc=None,
                )
            else:
                self._end(job.job_id, JobState.NODE_FAIL)
        return bool(ended)

    def _end(self, job_id: int, state: JobState) -> None:
        self._change_job(job_id, state=state)
        held = {
            name for job in self.jobs.values() if job.state in _ALLOCATING for name in job.nodes
        }
        for name in self.jobs[job_id].nodes:
            if name not in held and self.nodes[name].state.base is not BaseState.DOWN:
                self._set(name, base=BaseState.IDLE)

    def _change_job(self, job_id: int, **changes: object) -> None:
        self.jobs[job_id] = replace(self.jobs[job_id], **changes)  # type: ignore[arg-type]
