"""Small worlds for decision tests: the example cluster, nodes, jobs, requests and VMs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from slurm_hooks.cluster.topology import (
    Cluster,
    NodePool,
    ProvisioningModel,
    ReservationAffinityType,
    Reservations,
)
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    ErrorDetail,
    Group,
    Instance,
    InstanceStatus,
    RequestReference,
    RequestState,
    ResizeRequest,
)
from slurm_hooks.compute.ownership import CLUSTER_LABEL, Mark, encode
from slurm_hooks.reconcile.actions import Action, Plan
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.repairs import RepairLog
from slurm_hooks.reconcile.sightings import BELIEVED_AFTER, Sightings
from slurm_hooks.reconcile.snapshot import JobShare, Memory, ResumeCall, Snapshot, Unavailable
from slurm_hooks.reconcile.specifications import group_of
from slurm_hooks.slurm.model import (
    BaseState,
    Job,
    JobState,
    Node,
    NodeFlag,
    NodeState,
    Partition,
    Reservation,
    SlurmSnapshot,
)

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
ANY_RESERVATION = Reservations(ReservationAffinityType.ANY_RESERVATION)
N0, N1 = "flexvm-a3u-0", "flexvm-a3u-1"


def example_cluster(
    *,
    min_node_count: int = 0,
    max_node_count: int = 4,
    model: ProvisioningModel = ProvisioningModel.FLEX_START,
    login_nodes: int = 0,
) -> Cluster:
    """A cluster with one pool `a3u` of a provisioning model and a login pool."""
    is_flex_start = model is ProvisioningModel.FLEX_START
    pool = NodePool(
        "a3u",
        "a3-ultragpu-8g",
        model,
        min_node_count,
        max_node_count,
        "us-central1",
        ("us-central1-a",),
        accelerator_type="nvidia-h200-141gb",
        accelerator_count=8,
        run_duration_seconds=604800 if is_flex_start else None,
        source_image="projects/p/global/images/family/f",
        reservations=ANY_RESERVATION if model is ProvisioningModel.RESERVATION else None,
    )
    login = NodePool(
        "login",
        "n2-standard-8",
        ProvisioningModel.ON_DEMAND,
        login_nodes,
        login_nodes,
        "us-central1",
        ("us-central1-a",),
        is_login=True,
    )
    return Cluster(
        "flexvm",
        "demo",
        "us-central1",
        "projects/demo/global/networks/default",
        "",
        {"a3u": pool, "login": login},
        {"a3u": ("a3u",)},
    )


CLUSTER = example_cluster()
GROUP = group_of(CLUSTER, CLUSTER.pools["a3u"])


def node(name: str, *flags: NodeFlag, base: BaseState = BaseState.IDLE, **more: str) -> Node:
    """A cloud node in the given state; `reason=` and the like go through."""
    return Node(name, NodeState(base, frozenset({NodeFlag.CLOUD, *flags})), **more)  # type: ignore[arg-type]


def starting(name: str, base: BaseState = BaseState.ALLOCATED) -> Node:
    """`alloc#`, as a job's nodes are while it waits; `base=IDLE` gives `idle#`."""
    return node(name, NodeFlag.POWERING_UP, NodeFlag.NOT_RESPONDING, base=base)


def off(name: str) -> Node:
    """`idle~`."""
    return node(name, NodeFlag.POWERED_DOWN)


def stopping(name: str) -> Node:
    """`idle%`."""
    return node(name, NodeFlag.POWERING_DOWN)


def job(
    job_id: int,
    *nodes: str,
    state: JobState = JobState.CONFIGURING,
    restarts: int = 0,
    admin_comment: str = "",
) -> Job:
    """A batch job that holds the nodes."""
    return Job(
        job_id, state, nodes=nodes, restarts=restarts, admin_comment=admin_comment, batch=True
    )


def request(
    name: str,
    *nodes: str,
    state: RequestState = RequestState.ACCEPTED,
    job_id: int | None = None,
    restarts: int | None = 0,
    last_attempt: str = "",
    error: str = "",
) -> ResizeRequest:
    """A resize request of ours in the pool's group."""
    mark = Mark("flexvm", "a3u", job_id=job_id, restarts=restarts if job_id else None)
    return ResizeRequest(
        RequestReference(GROUP.reference, name),
        state,
        instances=nodes,
        description=encode(mark),
        creation_time_utc=NOW - timedelta(minutes=5),
        last_attempt_error=ErrorDetail(last_attempt, "text") if last_attempt else None,
        error=ErrorDetail(error, "text") if error else None,
    )


def vm(name: str, status: InstanceStatus = InstanceStatus.RUNNING) -> Instance:
    """A VM of ours in the pool's group."""
    return Instance(
        name,
        "7" + name[-1],
        "us-central1-a",
        status,
        group=GROUP.reference,
        labels={CLUSTER_LABEL: "flexvm"},
        creation_time_utc=NOW - timedelta(minutes=10),
    )


def call(job_id: int | None, *nodes: str) -> ResumeCall:
    """A ResumeProgram call, with a resume file that names the job unless it is None."""
    jobs = (JobShare(job_id, nodes),) if job_id is not None else ()
    return ResumeCall("call-1", NOW, nodes, jobs)


def long_seen(
    *,
    missing: Iterable[str] = (),
    surplus: Iterable[str] = (),
    unneeded: Iterable[str] = (),
    finished: Iterable[str] = (),
) -> Memory:
    """What passes remember that have seen these for just long enough to believe it."""
    since = NOW - BELIEVED_AFTER
    return Memory(
        sightings=Sightings(
            dict.fromkeys(missing, since),
            dict.fromkeys(surplus, since),
            dict.fromkeys(unneeded, since),
            frozenset(finished),
        )
    )


@dataclass
class World:
    """What a decision is made over; every part may be left out."""

    nodes: Iterable[Node] = ()
    jobs: Iterable[Job] = ()
    requests: Iterable[ResizeRequest] = ()
    vms: Iterable[Instance] = ()
    calls: tuple[ResumeCall, ...] = ()
    has_group: bool = True
    memory: Memory = field(default_factory=Memory)
    cluster: Cluster = CLUSTER
    reservations: Iterable[Reservation] = ()
    partitions: Iterable[Partition] = ()
    repairs: RepairLog | Unavailable = field(default_factory=RepairLog)

    def snapshot(self) -> Snapshot:
        """The world as one read of both systems gives it."""
        group = Group(GROUP.reference, GROUP.template, description=GROUP.description)
        groups = {GROUP.reference: group} if self.has_group else {}
        return Snapshot(
            SlurmSnapshot(
                {n.name: n for n in self.nodes},
                {j.job_id: j for j in self.jobs},
                partitions={p.name: p for p in self.partitions},
                reservations={r.name: r for r in self.reservations},
            ),
            ComputeSnapshot(
                groups,
                {r.reference: r for r in self.requests},
                {v.name: v for v in self.vms},
            ),
            self.calls,
            self.memory,
            repairs=self.repairs,
        )

    def plan(self) -> Plan:
        """What is decided over this world."""
        return decide(self.snapshot(), self.cluster, NOW)

    def actions(self, kind: type[Action]) -> list[Action]:
        """The planned actions of one kind."""
        return [action for action in self.plan().actions if isinstance(action, kind)]
