"""Every combination of what Slurm, Compute Engine and the queue may say of one node.

Many cases make one snapshot: each is a node of its own, with its own job, request and VM. The
limits that join nodes (kills a pass, holds of the pool) are lifted, so that a case is judged by
itself and with the most licence that it can have: everything was seen twice before.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.compute.model import Instance, InstanceStatus, RequestState, ResizeRequest
from slurm_hooks.reconcile.actions import (
    Action,
    CancelRequest,
    DeleteInstance,
    DeleteRequest,
    InsertRequest,
    UpdateNode,
)
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.reasons import set_aside_reason
from slurm_hooks.reconcile.repair_actions import RepairNode
from slurm_hooks.reconcile.snapshot import JobShare, ResumeCall
from slurm_hooks.slurm.model import BaseState, Job, JobState, Node, NodeFlag, NodeState
from slurm_hooks.slurm.state_words import node_state_from_text, node_state_from_words
from tests.unit.reconcile.builders import NOW, World, example_cluster, long_seen, request, vm

CASES_A_SNAPSHOT = 1000
UNKNOWN_WORD = "WORD_OF_A_LATER_VERSION"
POWER_FLAGS = (
    NodeFlag.POWER_DOWN,
    NodeFlag.POWER_UP,
    NodeFlag.POWERED_DOWN,
    NodeFlag.POWERING_DOWN,
    NodeFlag.POWERING_UP,
)
CHANGING = (NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP)
SIDE_FLAGS = tuple(flag for flag in NodeFlag if flag not in (*POWER_FLAGS, NodeFlag.CLOUD))
MOST = 1_000_000
A_PERSONS_REASON = "fan is loud"
HEALTH_REASONS = (
    "slurm-hooks: OK health_run passed inst=? boot=0123abcd ctx=background",
    "slurm-hooks: REBOOT gpu_lost gpu 3 inst=? boot=0123abcd ctx=prolog job=7 restarts=0",
    "slurm-hooks: REPLACE gpu_lost gpu 3 inst=? boot=0123abcd ctx=epilog job=7 gpus=8/8",
)
REASONS = (
    "",
    A_PERSONS_REASON,
    "Not responding",
    "ResumeTimeout reached",
    "slurm-hooks: VM gone",
    set_aside_reason(A_PERSONS_REASON),
    f"{A_PERSONS_REASON} : ResumeTimeout reached",
    "kernel : reboot timed out",
    *HEALTH_REASONS,
)


class Version(enum.StrEnum):
    """The supported versions whose sets of flags differ."""

    V22_05 = "22.05"
    V24_11 = "24.11"
    V26_05 = "26.05"
    LATER = "later"


_SINCE = {
    NodeFlag.BLOCKED: Version.V24_11,
    NodeFlag.EXTERNAL: Version.V26_05,
}


def flags_of(version: Version) -> tuple[str, ...]:
    """The words beside the base state that a version may write, CLOUD and power flags aside."""
    order = list(Version)
    known = [
        flag.value
        for flag in SIDE_FLAGS
        if order.index(_SINCE.get(flag, Version.V22_05)) <= order.index(version)
    ]
    return (*known, UNKNOWN_WORD) if version is Version.LATER else tuple(known)


def state_as_written(version: Version, words: Iterable[str]) -> NodeState:
    """A state read from how the version writes it: joined text, or a list in JSON."""
    if version is Version.V22_05:
        return node_state_from_text("+".join(words))
    return node_state_from_words(list(words))


def node_states(
    version: Version, *, most_power_flags: int, most_side_flags: int
) -> Iterator[NodeState]:
    """Every base with every set of up to so many power flags and other flags of the version."""
    power_sets = subsets([flag.value for flag in POWER_FLAGS], most_power_flags)
    side_sets = list(subsets(flags_of(version), most_side_flags))
    for base, power, side in itertools.product(BaseState, power_sets, side_sets):
        yield state_as_written(version, [base.value, "CLOUD", *power, *side])


def subsets(words: Iterable[str], most: int) -> Iterator[tuple[str, ...]]:
    """All sets of at most so many of the words."""
    words = tuple(words)
    for size in range(min(most, len(words)) + 1):
        yield from itertools.combinations(words, size)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All that matters of a node beside its state in Slurm.

    `job` is the state of the job that has it or had it last; None: no job ever asked for it.
    `is_old`: the VM has existed for longer than a boot may take.
    """

    vm: InstanceStatus | None
    request: RequestState | None
    job: JobState | None
    is_static: bool
    is_old: bool

    @property
    def vm_lives(self) -> bool:
        """Whether slurmd may be at work on the VM, as far as we can know."""
        return self.vm in (InstanceStatus.RUNNING, InstanceStatus.UNKNOWN)


def surroundings(
    vms: Iterable[InstanceStatus | None],
    requests: Iterable[RequestState | None],
    jobs: Iterable[JobState | None],
) -> list[Surroundings]:
    """Every combination; age only matters where there is a VM."""
    return [
        Surroundings(status, state, job, is_static, is_old)
        for status, state, job, is_static, is_old in itertools.product(
            vms, requests, jobs, (False, True), (False, True)
        )
        if status is not None or not is_old
    ]


@dataclass(frozen=True, slots=True)
class Case:
    """One node with all that is said of it."""

    name: str
    job_id: int
    state: NodeState
    reason: str
    around: Surroundings

    @property
    def is_out_of_service(self) -> bool:
        """Whether a person took the node, which is up, out of service."""
        is_theirs = self.reason == A_PERSONS_REASON
        return is_theirs and not self.state.has(*POWER_FLAGS) and self.is_kept_off

    @property
    def is_kept_off(self) -> bool:
        """Whether somebody keeps jobs off the node. One that reboots is DOWN meanwhile."""
        reboots = self.state.has(NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED)
        is_down = self.state.base is BaseState.DOWN and not reboots
        return is_down or self.state.has(NodeFlag.DRAIN, NodeFlag.FAIL)

    @property
    def has_power_flag(self) -> bool:
        """Whether Slurm changes the node's power, or was asked to."""
        return self.state.has(*POWER_FLAGS)

    @property
    def works(self) -> bool:
        """Whether a job may be running or completing on the node: it is up, and has one. Slurm
        ends the jobs of a node before it is DOWN."""
        if self.state.base is BaseState.DOWN or self.state.has(*CHANGING):
            return False
        return (
            self.state.base in (BaseState.ALLOCATED, BaseState.MIXED)
            or self.state.has(NodeFlag.COMPLETING)
            or self.around.job in (JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING)
        )

    @property
    def is_starting(self) -> bool:
        """Whether Slurm has woken the node and wants nothing else of it."""
        others = NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWER_DOWN
        return self.state.has(NodeFlag.POWERING_UP) and not self.state.has(*others)

    @property
    def is_off(self) -> bool:
        """Whether Slurm calls the node powered down, and nothing is under way."""
        return self.state.has(NodeFlag.POWERED_DOWN) and not self.state.has(
            NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP
        )


@dataclass(frozen=True, slots=True)
class Decided:
    """A case with the step and the actions that concern its node."""

    case: Case
    step: Step | None
    actions: tuple[Action, ...]

    def of(self, *kinds: type[Action]) -> list[Action]:
        """The actions of some kinds."""
        return [action for action in self.actions if isinstance(action, kinds)]


def decided(
    states: Iterable[NodeState],
    around: Iterable[Surroundings],
    reasons: Iterable[str] = ("ResumeTimeout reached",),
    cluster: Cluster | None = None,
) -> Iterator[Decided]:
    """What is decided for every state with each reason in all surroundings."""
    cases = itertools.product(states, list(reasons), list(around))
    while chunk := list(itertools.islice(cases, CASES_A_SNAPSHOT)):
        yield from decide_chunk(chunk, cluster or CLUSTER)


def decide_chunk(
    chunk: list[tuple[NodeState, str, Surroundings]], cluster: Cluster | None = None
) -> Iterator[Decided]:
    """What is decided for so many cases at once, in their order."""
    cases = [_case(index, *said) for index, said in enumerate(chunk)]
    names = [case.name for case in cases]
    world = World(
        nodes=[Node(case.name, case.state, reason=case.reason) for case in cases],
        jobs=[job for case in cases if (job := _job(case))],
        requests=[made for case in cases if (made := _request(case))],
        vms=[instance for case in cases if (instance := _vm(case))],
        calls=tuple(call for case in cases if (call := _call(case))),
        memory=long_seen(missing=names, surplus=names),
        cluster=cluster or CLUSTER,
    )
    plan = world.plan()
    by_name: dict[str, list[Action]] = {case.name: [] for case in cases}
    for action in plan.actions:
        for name in _nodes_of(action):
            by_name[name].append(action)
    for case in cases:
        yield Decided(case, plan.steps.get(case.name), tuple(by_name[case.name]))


def _cluster() -> Cluster:
    cluster = example_cluster(min_node_count=CASES_A_SNAPSHOT, max_node_count=2 * CASES_A_SNAPSHOT)
    policy = Policy(
        hold_after_failures=MOST,
        most_kills_a_pass=MOST,
        most_kills_percent=100,
        stop_repairs_least=MOST,
    )
    return replace(cluster, policy=policy)


CLUSTER = _cluster()
_POOL = CLUSTER.pools["a3u"]


def _with_pool(pool: NodePool) -> Cluster:
    return replace(CLUSTER, pools={**CLUSTER.pools, pool.pool_id: pool})


OTHER_DISK = _with_pool(replace(_POOL, boot_disk_size_gb=500, max_node_count=20 * CASES_A_SNAPSHOT))
"""The pool has another generation than all VMs, and is so large that no node waits for its turn."""
EMPTIED = _with_pool(replace(_POOL, min_node_count=0, max_node_count=0))
"""The cluster file names none of the nodes any more."""
NEW_GENERATION = "slurm-hooks: new generation"
LEAVES = "slurm-hooks: leaves the cluster"


def _case(index: int, state: NodeState, reason: str, around: Surroundings) -> Case:
    number = index if around.is_static else CASES_A_SNAPSHOT + index
    return Case(f"flexvm-a3u-{number}", index + 1, state, reason, around)


def _job(case: Case) -> Job | None:
    if case.around.job is None:
        return None
    return Job(case.job_id, case.around.job, nodes=(case.name,), batch=True)


def _request(case: Case) -> ResizeRequest | None:
    if case.around.request is None:
        return None
    job_id = case.job_id if case.around.job is not None else None
    name = f"for-{case.name}"
    return request(name, case.name, state=case.around.request, job_id=job_id, error="QUOTA")


def _vm(case: Case) -> Instance | None:
    if case.around.vm is None:
        return None
    age = timedelta(seconds=2 * CLUSTER.policy.boot_timeout_seconds if case.around.is_old else 60)
    return replace(vm(case.name, case.around.vm), creation_time_utc=NOW - age)


def _call(case: Case) -> ResumeCall | None:
    """Slurm's call says for whom the node was started, where no request does."""
    if case.around.job is None or case.around.request is not None:
        return None
    share = JobShare(case.job_id, (case.name,))
    return ResumeCall(f"call-{case.job_id}", NOW, (case.name,), (share,))


def _nodes_of(action: Action) -> tuple[str, ...]:
    match action:
        case UpdateNode() | RepairNode():
            return (action.node,)
        case DeleteInstance():
            return (action.name,)
        case InsertRequest():
            return action.request.instances
        case CancelRequest() | DeleteRequest():
            return (action.request.name.removeprefix("for-"),)
        case _:
            return ()
