"""Nodes that the cluster file names no more: their jobs end in peace, and none starts again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.cluster.topology import Cluster, ProvisioningModel
from slurm_hooks.compute.model import Instance, InstanceStatus, RequestState
from slurm_hooks.reconcile.actions import (
    CreateInstances,
    DeleteInstance,
    InsertGroup,
    InsertRequest,
    UpdateNode,
)
from slurm_hooks.reconcile.comments import node_reason
from slurm_hooks.reconcile.pool_record import PoolRecord, record_text
from slurm_hooks.reconcile.reasons import set_aside_reason
from slurm_hooks.reconcile.repair_actions import RepairNode
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, JobState, Node, NodeFlag, NodeState
from tests.unit.reconcile.builders import (
    CLUSTER,
    N0,
    N1,
    NOW,
    World,
    call,
    example_cluster,
    job,
    long_seen,
    node,
    off,
    request,
    starting,
    stopping,
    vm,
)
from tests.unit.reconcile.life import Life

LEAVES = "slurm-hooks: leaves the cluster"
DRAIN, DOWN = (NodeUpdate.DRAIN,), (NodeUpdate.POWER_DOWN,)
SMALL = example_cluster(max_node_count=1)
WITHOUT_POOL = replace(CLUSTER, pools={"login": CLUSTER.pools["login"]})
BOTH_WAYS = pytest.mark.parametrize(
    "cluster", [SMALL, WITHOUT_POOL], ids=["shrunk pool", "pool gone"]
)


def updates(world: World) -> list[tuple[str, tuple[NodeUpdate, ...], str]]:
    return [
        (action.node, action.updates, node_reason(action))
        for action in world.plan().actions
        if isinstance(action, UpdateNode)
    ]


def up(leaver: Node, *jobs: JobState, cluster: Cluster = SMALL) -> World:
    held = [job(7, N1, state=state) for state in jobs]
    return World([leaver], held, vms=[vm(N1)], cluster=cluster)


@BOTH_WAYS
def test_node_that_is_off_is_drained_so_that_no_job_gets_it(cluster: Cluster) -> None:
    assert updates(World([off(N1)], cluster=cluster)) == [(N1, DRAIN, LEAVES)]
    there = node(N1, NodeFlag.POWERED_DOWN, NodeFlag.DRAIN, reason=LEAVES)
    plan = World([there], cluster=cluster).plan()
    assert (plan.actions, plan.unsettled) == ((), False)


@BOTH_WAYS
def test_free_node_is_powered_down(cluster: Cluster) -> None:
    assert updates(up(node(N1), cluster=cluster)) == [(N1, DOWN, LEAVES)]


@BOTH_WAYS
def test_node_with_a_job_is_drained_and_keeps_it(cluster: Cluster) -> None:
    busy = node(N1, base=BaseState.ALLOCATED)
    assert updates(up(busy, JobState.RUNNING, cluster=cluster)) == [(N1, DRAIN, LEAVES)]
    drained = node(N1, NodeFlag.DRAIN, base=BaseState.ALLOCATED, reason=LEAVES)
    assert updates(up(drained, JobState.RUNNING, cluster=cluster)) == []
    assert updates(up(node(N1, NodeFlag.DRAIN, NodeFlag.COMPLETING, reason=LEAVES))) == []
    ended = node(N1, NodeFlag.DRAIN, reason=LEAVES)
    assert updates(up(ended, cluster=cluster)) == [(N1, DOWN, LEAVES)]


def test_suspended_job_keeps_its_node() -> None:
    assert updates(up(node(N1), JobState.SUSPENDED)) == [(N1, DRAIN, LEAVES)]


def test_removal_holds_for_a_node_that_a_person_has_drained_and_keeps_the_words() -> None:
    drained = node(N1, NodeFlag.DRAIN, reason="to be removed")
    assert updates(up(drained)) == [(N1, DOWN, "to be removed")]
    busy = replace(drained, state=replace(drained.state, base=BaseState.ALLOCATED))
    assert updates(up(busy, JobState.RUNNING)) == []
    off_with_words = replace(off(N1), reason="mind the fan")
    assert updates(World([off_with_words], cluster=SMALL)) == [(N1, DRAIN, "mind the fan")]


@pytest.mark.parametrize("vms", [[], [vm(N1, InstanceStatus.TERMINATED)]], ids=["gone", "bad"])
def test_removal_holds_where_the_vm_of_a_drained_node_is_lost(vms: list[Instance]) -> None:
    drained = node(N1, NodeFlag.DRAIN, base=BaseState.DOWN, reason="to be removed")
    assert updates(World([drained], vms=vms, cluster=SMALL)) == [(N1, DOWN, "to be removed")]


@pytest.mark.parametrize(
    "kept",
    [
        node(N1, NodeFlag.POWER_DOWN),
        node(N1, NodeFlag.REBOOT_ISSUED),
        node(N1, NodeFlag.NOT_RESPONDING, NodeFlag.DRAIN, reason=LEAVES),
        node(N1, NodeFlag.POWERED_DOWN, base=BaseState.ALLOCATED),
        Node(N1, NodeState(BaseState.IDLE, frozenset({NodeFlag.CLOUD}), frozenset({"NEW_WORD"}))),
        Node(N1, NodeState(BaseState.IDLE)),
    ],
    ids=["asked off", "reboots", "silent", "about to start", "unknown word", "no cloud node"],
)
def test_node_in_between_is_left_until_that_is_over(kept: Node) -> None:
    assert updates(up(kept)) == []
    assert not [found for found in updates(World([kept], cluster=SMALL)) if found[2] == LEAVES]


def test_silent_node_is_powered_down_when_slurm_has_given_it_up() -> None:
    flags = NodeFlag.NOT_RESPONDING, NodeFlag.DRAIN
    for reason in (LEAVES, f"{LEAVES} : Not responding"):
        given_up = node(N1, *flags, base=BaseState.DOWN, reason=reason)
        assert [found[1] for found in updates(up(given_up))] == [DOWN]


@pytest.mark.parametrize("status", [InstanceStatus.UNKNOWN, InstanceStatus.STOPPING])
def test_node_whose_vm_does_not_run_is_left_alone(status: InstanceStatus) -> None:
    world = World([node(N1)], vms=[vm(N1, status)], cluster=SMALL)
    assert not [found for found in updates(world) if found[2] == LEAVES]


@BOTH_WAYS
def test_no_vm_is_asked_for_and_the_job_goes_elsewhere(cluster: Cluster) -> None:
    world = World(
        [starting(N0), starting(N1)], [job(7, N0, N1)], calls=(call(7, N0, N1),), cluster=cluster
    )
    plan = world.plan()
    assert (N1, (NodeUpdate.POWER_DOWN_FORCE,), LEAVES) in updates(world)
    asks = (InsertRequest, InsertGroup, CreateInstances)
    assert not [action for action in plan.actions if isinstance(action, asks)]


def test_start_that_waits_for_capacity_fails_and_its_request_is_given_up() -> None:
    waiting = request("r", N1, job_id=7)
    world = World([starting(N1)], [job(7, N1)], [waiting], cluster=SMALL)
    assert updates(world) == [(N1, (NodeUpdate.POWER_DOWN_FORCE,), LEAVES)]
    after = World([stopping(N1)], [job(7, state=JobState.PENDING)], [waiting], cluster=SMALL)
    assert [action.subject for action in after.plan().actions if "cancel" in action.subject]


def test_request_in_a_state_that_we_do_not_know_is_no_licence_to_end_the_start() -> None:
    odd = request("r", N1, job_id=7, state=RequestState.UNKNOWN)
    assert updates(World([starting(N1)], [job(7, N1)], [odd], cluster=SMALL)) == []


def test_vm_that_boots_for_a_job_already_comes_up_and_serves_it() -> None:
    booting = vm(N1, InstanceStatus.STAGING)
    assert updates(World([starting(N1)], [job(7, N1)], vms=[booting], cluster=SMALL)) == []


@BOTH_WAYS
def test_vm_of_a_node_that_goes_off_is_deleted(cluster: Cluster) -> None:
    world = World([stopping(N1)], vms=[vm(N1)], cluster=cluster)
    assert [action.subject for action in world.actions(DeleteInstance)] == [
        f"delete instance {N1} 71"
    ]
    assert updates(world) == [(N1, DRAIN, LEAVES)], "going off has lifted its drain"


@BOTH_WAYS
def test_lost_vm_gives_its_job_back(cluster: Cluster) -> None:
    drained = node(N1, NodeFlag.DRAIN, base=BaseState.ALLOCATED, reason=LEAVES)
    world = World(
        [drained],
        [job(7, N1, state=JobState.RUNNING)],
        memory=long_seen(missing=[N1]),
        cluster=cluster,
    )
    assert [found[:2] for found in updates(world)] == [
        (N1, (NodeUpdate.DOWN, NodeUpdate.POWER_DOWN))
    ]


def test_hold_of_its_pool_is_no_matter_to_a_node_that_leaves() -> None:
    record = PoolRecord(3, NOW, 1, NOW + timedelta(hours=1), "CONFIG")
    keeper = replace(off(N0), comment=record_text(record))
    failed = replace(off(N1), reason="slurm-hooks: request failed CONFIG")
    assert (N1, DRAIN, LEAVES) in updates(World([keeper, failed], cluster=SMALL))


def test_condemned_node_that_leaves_is_not_repaired() -> None:
    reason = "slurm-hooks: REBOOT gpu_lost gpu 3 inst=? boot=0123abcd ctx=prolog job=7 restarts=0"
    condemned = node(N1, NodeFlag.DRAIN, reason=reason)
    world = up(condemned)
    assert updates(world) == [(N1, DOWN, LEAVES)]
    assert world.actions(RepairNode) == []


def test_person_who_took_a_waking_node_out_of_service_keeps_the_words() -> None:
    aside = replace(off(N1), reason=set_aside_reason("fan is loud"))
    assert updates(World([aside], cluster=SMALL)) == [(N1, DRAIN, "fan is loud")]


def test_static_node_that_leaves_is_not_powered_up_again() -> None:
    shrunk = example_cluster(min_node_count=1, max_node_count=1)
    drained = node(N1, NodeFlag.POWERED_DOWN, NodeFlag.DRAIN, reason=LEAVES)
    assert updates(World([node(N0), drained], vms=[vm(N0)], cluster=shrunk)) == []


@pytest.mark.parametrize(
    ("back", "update"),
    [
        (node(N1, NodeFlag.POWERED_DOWN, NodeFlag.DRAIN, reason=LEAVES), NodeUpdate.IDLE),
        (node(N1, NodeFlag.DRAIN, base=BaseState.ALLOCATED, reason=LEAVES), NodeUpdate.RESUME),
    ],
    ids=["off", "up"],
)
def test_node_that_the_file_names_again_serves_again(back: Node, update: NodeUpdate) -> None:
    vms = [] if back.state.has(NodeFlag.POWERED_DOWN) else [vm(N1)]
    jobs = [job(7, N1, state=JobState.RUNNING)] if vms else []
    world = World([back], jobs, vms=vms, cluster=CLUSTER)
    assert updates(world) == [(N1, (update,), "")]


def test_node_that_is_named_again_and_has_lost_its_vm_is_lost_and_not_given_back() -> None:
    drained = node(N1, NodeFlag.DRAIN, reason=LEAVES)
    assert updates(World([drained], cluster=CLUSTER)) == []


def test_pool_that_becomes_the_login_pool_leaves_slurm_first() -> None:
    pools = {"a3u": replace(CLUSTER.pools["a3u"], is_login=True, min_node_count=4)}
    on_demand = replace(pools["a3u"], provisioning_model=ProvisioningModel.ON_DEMAND)
    login = replace(CLUSTER, pools={"a3u": on_demand}, partitions={})
    world = World([node(N1)], vms=[vm(N1)], cluster=login)
    assert updates(world) == [(N1, DOWN, LEAVES)]
    assert world.actions(DeleteInstance) == []
    assert updates(World([off(N1)], cluster=login)) == [(N1, DRAIN, LEAVES)]


def test_shrunk_pool_leaves_no_vm_and_lets_the_job_end(tmp_path: Path) -> None:
    life = Life(tmp_path, example_cluster(max_node_count=2))
    job_id = life.slurm.submit([N1])
    life.deliver_calls()
    life.rest()
    life.grant_all()
    life.rest()
    life.apply(SMALL)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert life.slurm.nodes[N1].state.has(NodeFlag.DRAIN)
    life.slurm.complete(job_id)
    life.rest()
    assert life.vm_names() == []
    leaver = life.slurm.nodes[N1]
    assert leaver.state.flags == {NodeFlag.CLOUD, NodeFlag.POWERED_DOWN, NodeFlag.DRAIN}
    assert leaver.reason == LEAVES
    assert not life.slurm.nodes[N0].state.has(NodeFlag.DRAIN)
