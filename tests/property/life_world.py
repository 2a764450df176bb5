"""The world of the state machine: two pools, things of other people, and what a model knows.

The model reads the two fakes and nothing of the controller: which VMs are needed, which jobs run
on VMs that all live, and what the owner of a waiting job must be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from slurm_hooks.compute.model import (
    Group,
    GroupReference,
    Instance,
    InstanceStatus,
    RequestReference,
    RequestState,
    ResizeRequest,
    Scope,
    ScopeKind,
)
from slurm_hooks.compute.ownership import CLUSTER_LABEL, Mark, decode, encode
from slurm_hooks.reconcile.specifications import group_of, template_of
from slurm_hooks.slurm.client import ReservationSpecification
from slurm_hooks.slurm.model import BaseState, Job, JobState, Node, NodeFlag
from slurm_hooks.slurm.versions import SlurmVersion
from tests.fakes.slurm import FakeSlurm
from tests.unit.reconcile.builders import example_cluster
from tests.unit.reconcile.life import Life
from tests.unit.reconcile.scenario import POWERED_DOWN_CLOUD

ZONES = ("us-central1-a", "us-central1-b")
LIFE_SECONDS = 3600
PARTITION = "a3u"
POWER = (NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP)

_ONE = example_cluster(min_node_count=1, max_node_count=3)
_A3U = replace(_ONE.pools["a3u"], run_duration_seconds=LIFE_SECONDS)
_SPARE = replace(_A3U, pool_id="spare", min_node_count=0, max_node_count=2, zones=ZONES)
CLUSTER = replace(
    _ONE,
    pools={**_ONE.pools, "a3u": _A3U, "spare": _SPARE},
    partitions={PARTITION: ("a3u", "spare")},
)
"""A zonal pool with a static node and a regional one, in one partition."""

OTHER_DISKS = replace(
    CLUSTER,
    pools={
        **CLUSTER.pools,
        **{pool.pool_id: replace(pool, boot_disk_size_gb=500) for pool in (_A3U, _SPARE)},
    },
)
SMALLER = replace(
    CLUSTER,
    pools={**_ONE.pools, "a3u": replace(_A3U, min_node_count=0, max_node_count=1)},
    partitions={PARTITION: ("a3u",)},
)
"""One pool has lost its static node and two others, the other pool is gone."""
CHANGES = {"other disks": OTHER_DISKS, "smaller": SMALLER, "as it was": CLUSTER}

NAMES = (*CLUSTER.node_names("a3u"), *CLUSTER.node_names("spare"))
GROUP = group_of(CLUSTER, _A3U)

BY_HAND = RequestReference(GROUP.reference, "by-hand")
"""A request that somebody else makes in our group."""

_FOREIGN_VMS = (
    Instance("flexvm-a3u-9", "1", ZONES[0], InstanceStatus.TERMINATED),
    Instance(
        "flexvm-spare-0-old",
        "2",
        ZONES[1],
        InstanceStatus.RUNNING,
        labels={CLUSTER_LABEL: "flexvm2"},
    ),
)
_FOREIGN_GROUPS = (
    Group(GroupReference(GROUP.reference.scope, f"{GROUP.reference.name}-2"), description="mine"),
    Group(
        GroupReference(GROUP.reference.scope, "flexvm-a3u-0ld0ld00"),
        description=encode(Mark("flexvm2", "a3u", "0ld0ld00")),
    ),
)
_FOREIGN_NODES = ("other-a3u-0", "flexvm-a3u-07", "flexvmx-a3u-0")
_FOREIGN_RESERVATIONS = ("maintenance", "my-slurm-hooks-eol-20260105T110000Z-00000000")


class LivingWorld(Life):
    """A life with two pools and with things that are not ours, whose names look alike."""

    def __init__(self, spool: Path, version: SlurmVersion, skew: timedelta) -> None:
        super().__init__(spool, CLUSTER, FakeSlurm(version=version), skew=skew)
        self.compute.operations_finish_at_once = False
        self.lives_end = True
        self.slurm.add_nodes(CLUSTER.node_names("spare"), PARTITION, POWERED_DOWN_CLOUD)
        self.slurm.add_nodes(_FOREIGN_NODES, "other")
        for name in _FOREIGN_RESERVATIONS:
            node = _FOREIGN_NODES[:1]
            self.slurm.create_reservation(ReservationSpecification(name, node, self.now, 600))
        state = self.compute.state
        state.instances |= {(vm.zone, vm.name): vm for vm in _FOREIGN_VMS}
        state.groups |= {group.reference: group for group in _FOREIGN_GROUPS}
        template = replace(template_of(CLUSTER, _A3U), name="flexvm-a3u-by-hand", labels=())
        state.templates[Scope(ScopeKind.GLOBAL, ""), template.name] = template
        self._foreign = self._things_of_others()

    def assert_others_untouched(self) -> None:
        """What is not ours is as it was."""
        assert self._things_of_others() == self._foreign

    def somebody_asks_in_our_group(self) -> None:
        """A request without our mark stands in our group from now on."""
        self.compute.state.requests[BY_HAND] = ResizeRequest(
            BY_HAND, RequestState.ACCEPTED, ("by-hand-0",), "mine", self.now
        )
        self.compute.state.change_target_size(BY_HAND.group, 1)
        self._foreign = self._things_of_others()

    @property
    def may_somebody_ask(self) -> bool:
        """Whether our group is there, and nobody else has asked in it yet."""
        state = self.compute.state
        return GROUP.reference in state.groups and BY_HAND not in state.requests

    def _things_of_others(self) -> list[object]:
        state = self.compute.state
        named = [(scope, n) for scope, n in state.templates if n.endswith("by-hand")]
        return [
            *(state.instances.get((vm.zone, vm.name)) for vm in _FOREIGN_VMS),
            *(state.groups.get(group.reference) for group in _FOREIGN_GROUPS),
            *(state.templates[key] for key in named),
            *(self.slurm.nodes[name] for name in _FOREIGN_NODES),
            *(self.slurm.reservations.get(name) for name in _FOREIGN_RESERVATIONS),
            state.requests.get(BY_HAND),
        ]

    def ours_waiting(self) -> list[ResizeRequest]:
        """The active requests of ours."""
        return [r for r in self.requests() if r.state.is_active and r.reference != BY_HAND]

    def grant_ours(self, zone_number: int = 0) -> None:
        """Capacity for every request of ours; a regional one gets it in a zone of choice."""
        for request in self.ours_waiting():
            zones = self.compute.state.group_zones.get(request.reference.group) or ZONES[:1]
            zone = zones[zone_number % len(zones)]
            self.compute.state.grant(request.reference, zone)

    def is_of_outdated_generation(self, name: str) -> bool:
        """Whether the VM of a node is of another generation than its pool."""
        pool = self.cluster.pool_of(name)
        vm = self.vms().get(name)
        if pool is None or vm is None or vm.group is None:
            return False
        present = group_of(self.cluster, pool).reference.name
        return not vm.group.name.startswith(present)

    def vms(self) -> dict[str, Instance]:
        """The VMs of our nodes by name."""
        instances = self.compute.state.instances.values()
        return {vm.name: vm for vm in instances if vm.name in NAMES}

    def end_lives(self) -> None:
        """Compute Engine deletes the VMs whose end of life has come."""
        for name, vm in self.vms().items():
            end = vm.termination_time_utc
            is_over = self.lives_end and end is not None and end <= self.now
            if is_over and vm.status is InstanceStatus.RUNNING:
                self.compute.state.set_status(name, InstanceStatus.STOPPING)

    def unneeded_vms(self) -> Iterator[Instance]:
        """VMs older than the grace of nodes that are off or going off, in states that we know."""
        grace = timedelta(seconds=CLUSTER.policy.reap_grace_seconds) - self.skew
        for name, vm in self.vms().items():
            state = self.slurm.nodes[name].state
            is_off = state.has(NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN)
            created = vm.creation_time_utc
            if (
                is_off
                and not state.has(NodeFlag.POWERING_UP)
                and not state.unknown
                and vm.status not in (InstanceStatus.UNKNOWN, InstanceStatus.STOPPING)
                and created is not None
                and self.now - created > grace
            ):
                yield vm

    def working(self) -> list[Working]:
        """The running jobs whose VMs all run and do not end soon, on nodes that nobody ordered
        away."""
        return [
            Working(job, self.vm_ids(job.nodes))
            for job in self.slurm.jobs.values()
            if job.state is JobState.RUNNING
            and len(self.vm_ids(job.nodes)) == len(job.nodes)
            and not any(self.slurm.nodes[name].state.has(*POWER) for name in job.nodes)
            and not any(self._ends_soon(name) for name in job.nodes)
        ]

    def vm_ids(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The ids of the VMs of these names that run."""
        return tuple(
            vm.instance_id
            for name, vm in self.vms().items()
            if name in names and vm.status is InstanceStatus.RUNNING
        )

    def _ends_soon(self, name: str) -> bool:
        end = self.compute.state.instance(name).termination_time_utc
        return end is not None and end - self.now <= abs(self.skew)


@dataclass(frozen=True)
class Working:
    """A running job with the VMs below it, all of them alive."""

    job: Job
    vm_ids: tuple[str, ...]


ASKING = (
    "slurm-hooks: asking for ",
    "slurm-hooks: creating the instance group for ",
    "slurm-hooks: waiting for its turn to ask for ",
)
DELETION = ("slurm-hooks: waiting for earlier VMs of the same names to go: ",)
BOOT = ("slurm-hooks: VMs granted, booting: ",)
CAPACITY = "slurm-hooks: waiting for capacity for "
FAILED = "slurm-hooks: failed: "


@dataclass(frozen=True)
class Explanation:
    """What the owner of a job must be told: how the text begins, and one of the codes in it.

    The rank is that of the node that the job waits for longest.
    """

    rank: int
    beginnings: tuple[str, ...]
    codes: tuple[str, ...] = ("",)

    def fits(self, comment: str) -> bool:
        """Whether a comment tells this."""
        return comment.startswith(self.beginnings) and any(code in comment for code in self.codes)


NOTHING = Explanation(9, ("",))
"""Nothing is awaited that the model knows of, so it demands nothing."""


def explanation_for(world: LivingWorld, job: Job) -> Explanation | None:
    """What the job's owner must be told as the world is now; None where nobody can know."""
    nodes = [world.slurm.nodes[name] for name in job.nodes]
    if any(node.state.unknown or node.state.base is BaseState.DOWN for node in nodes):
        return None
    found = [_of_node(world, job, node) for node in nodes if node.state.has(NodeFlag.POWERING_UP)]
    known = [explanation for explanation in found if explanation is not None]
    first = min(known, key=lambda explanation: explanation.rank, default=NOTHING)
    codes = (code for other in known if other.rank == first.rank for code in other.codes)
    return replace(first, codes=tuple(codes) or first.codes)


def _of_node(world: LivingWorld, job: Job, node: Node) -> Explanation | None:
    naming = [r for r in world.requests() if node.name in r.instances and r.reference != BY_HAND]
    latest = max(
        naming, key=lambda r: (r.state.is_active, r.creation_time_utc, r.reference), default=None
    )
    vm = world.vms().get(node.name)
    if latest is not None and latest.state.is_active:
        error = latest.last_attempt_error
        return Explanation(4, (CAPACITY,), (error.code if error else "",))
    if vm is None:
        return _of_missing(job, latest)
    if vm.status is InstanceStatus.UNKNOWN:
        return None
    boot_timeout = timedelta(seconds=CLUSTER.policy.boot_timeout_seconds)
    is_old = world.now + world.skew - (vm.creation_time_utc or world.now) > boot_timeout
    comes = (InstanceStatus.PROVISIONING, InstanceStatus.STAGING, InstanceStatus.RUNNING)
    if vm.status in comes and not is_old:
        return Explanation(5, BOOT)
    return Explanation(2, DELETION)


def _of_missing(job: Job, latest: ResizeRequest | None) -> Explanation:
    if latest is not None and latest.state is RequestState.FAILED:
        mark = decode(latest.description)
        assert mark is not None
        if (mark.job_id, mark.restarts) == (job.job_id, job.restarts):
            return Explanation(1, (FAILED,), (latest.error.code if latest.error else "",))
    return Explanation(3, ASKING)
