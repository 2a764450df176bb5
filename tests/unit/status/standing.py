"""Statuses of small worlds: what a status says of a node and of the cluster."""

from __future__ import annotations

from dataclasses import replace

from slurm_hooks.compute.model import ComputeSnapshot, Group, Instance, InstanceStatus, Member
from slurm_hooks.reconcile.specifications import group_of
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag
from slurm_hooks.status.derive import derive_status
from slurm_hooks.status.model import ClusterStatus, NodeState, NodeStatus, StatusInputs
from tests.unit.reconcile.builders import N0, N1, NOW, World, example_cluster, node, vm

LOGIN = "flexvm-login-0"
DYNAMIC = example_cluster(login_nodes=1)
"""A cluster of four dynamic nodes and a login node."""
STATIC = example_cluster(min_node_count=2, max_node_count=2, login_nodes=1)
"""A cluster of two static nodes and a login node."""
LOGIN_GROUP = group_of(DYNAMIC, DYNAMIC.pools["login"])


def login_vm(status: InstanceStatus = InstanceStatus.RUNNING) -> Instance:
    """The login node's VM."""
    return replace(vm(LOGIN, status), group=LOGIN_GROUP.reference)


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
    return replace(_compute(world), members={member.name: member})


def with_login_group(world: World) -> ComputeSnapshot:
    """What Compute Engine says of the world, with the group of the login pool as it was made."""
    reference = LOGIN_GROUP.reference
    group = Group(reference, LOGIN_GROUP.template, description=LOGIN_GROUP.description)
    return replace(_compute(world), groups={reference: group})


def _compute(world: World) -> ComputeSnapshot:
    compute = world.snapshot().compute
    assert isinstance(compute, ComputeSnapshot)
    return compute


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
