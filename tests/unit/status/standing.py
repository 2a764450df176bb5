"""Statuses of small worlds: what a status says of a node and of the cluster."""

from __future__ import annotations

from dataclasses import replace

from slurm_hooks.compute.model import ComputeSnapshot, Instance, InstanceStatus, Member
from slurm_hooks.reconcile.specifications import group_of
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag
from slurm_hooks.status.derive import derive_status
from slurm_hooks.status.model import ClusterStatus, NodeState, NodeStatus, StatusInputs
from tests.unit.reconcile.builders import CLUSTER, N0, N1, NOW, World, example_cluster, node, vm

LOGIN = "flexvm-login-0"
STATIC = example_cluster(min_node_count=2, max_node_count=2)
"""A cluster of two static nodes and a login node."""


def login_vm(status: InstanceStatus = InstanceStatus.RUNNING) -> Instance:
    """The login node's VM."""
    group = group_of(CLUSTER, CLUSTER.pools["login"])
    return replace(vm(LOGIN, status), group=group.reference)


def up(
    name: str, *flags: NodeFlag, base: BaseState = BaseState.IDLE, reason: str = "", user: str = ""
) -> Node:
    """A node that has registered."""
    return replace(node(name, *flags, base=base, reason=reason), reason_user=user)


def off_with(name: str, reason: str, *flags: NodeFlag) -> Node:
    """A node that is powered down and has a reason."""
    return replace(node(name, NodeFlag.POWERED_DOWN, *flags, reason=reason), reason_time_utc=NOW)


def all_up() -> World:
    """The static cluster as it should be."""
    return World([up(N0), up(N1)], vms=[vm(N0), vm(N1), login_vm()], cluster=STATIC)


def with_member(world: World, member: Member) -> ComputeSnapshot:
    """What Compute Engine says of the world, with a member of a group that has no VM."""
    compute = world.snapshot().compute
    assert isinstance(compute, ComputeSnapshot)
    return replace(compute, members={member.name: member})


def inputs(world: World, **more: object) -> StatusInputs:
    """What a status of the world is derived from."""
    snapshot = world.snapshot()
    given = {
        "slurm": snapshot.slurm,
        "compute": snapshot.compute,
        "repairs": snapshot.repairs,
        "resume_calls": snapshot.resume_calls,
        **more,
    }
    return StatusInputs(world.cluster, now=NOW, **given)  # type: ignore[arg-type]


def status(world: World, **more: object) -> ClusterStatus:
    """The status of the world."""
    return derive_status(inputs(world, **more))


def one(of: ClusterStatus, name: str) -> NodeStatus:
    """What a status says of one node."""
    return next(stands for stands in of.nodes if stands.name == name)


def found(world: World, name: str, **more: object) -> tuple[NodeState, str]:
    """State and detail of one node."""
    stands = one(status(world, **more), name)
    return stands.state, stands.detail
