"""Nodes on VMs of an outdated generation: who moves at once, who when free, and who does not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import Instance, InstanceStatus
from slurm_hooks.reconcile.actions import Action, UpdateNode
from slurm_hooks.reconcile.comments import node_reason
from slurm_hooks.reconcile.pool_record import PoolRecord, record_text
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import (
    BaseState,
    Job,
    JobState,
    Node,
    NodeFlag,
    Reservation,
)
from tests.unit.reconcile.builders import (
    CLUSTER,
    N0,
    N1,
    NOW,
    World,
    example_cluster,
    job,
    node,
    off,
    starting,
    stopping,
    vm,
)
from tests.unit.reconcile.life import Life

NEW = "slurm-hooks: new generation"
DRAIN, DOWN = (NodeUpdate.DRAIN,), (NodeUpdate.POWER_DOWN,)
GPU_LOST = "slurm-hooks: REPLACE gpu_lost gpu 3 inst=? boot=0123abcd ctx=prolog job=7 restarts=0"


def with_other_disk(cluster: Cluster) -> Cluster:
    """The cluster after its pool was given another boot disk."""
    pool = replace(cluster.pools["a3u"], boot_disk_size_gb=500)
    return replace(cluster, pools={**cluster.pools, "a3u": pool})


CHANGED = with_other_disk(CLUSTER)


def busy(name: str, *flags: NodeFlag, base: BaseState = BaseState.ALLOCATED, **more: str) -> Node:
    return node(name, *flags, base=base, **more)


def updates(
    nodes: Iterable[Node],
    jobs: Iterable[Job] = (),
    *,
    cluster: Cluster = CHANGED,
    vms: Iterable[Instance] | None = None,
    reservations: Iterable[Reservation] = (),
) -> list[tuple[str, tuple[NodeUpdate, ...], str]]:
    """What is asked of Slurm, with the reason, for nodes that all have VMs unless told."""
    nodes = list(nodes)
    there = [vm(each.name) for each in nodes] if vms is None else vms
    world = World(nodes, jobs, vms=there, cluster=cluster, reservations=reservations)
    return [
        (action.node, action.updates, node_reason(action))
        for action in world.actions(UpdateNode)
        if isinstance(action, UpdateNode)
    ]


def test_idle_node_of_an_outdated_generation_is_powered_down() -> None:
    assert updates([node(N0)]) == [(N0, DOWN, NEW)]
    assert updates([node(N0)], cluster=CLUSTER) == []


@pytest.mark.parametrize(
    "worker",
    [
        busy(N0),
        busy(N0, base=BaseState.MIXED),
        node(N0, NodeFlag.COMPLETING),
    ],
    ids=["allocated", "mixed", "completing"],
)
def test_busy_node_is_drained_and_keeps_its_job(worker: Node) -> None:
    assert updates([worker], [job(7, N0, state=JobState.RUNNING)]) == [(N0, DRAIN, NEW)]
    assert updates([worker]) == [(N0, DRAIN, NEW)], "its job is not to be seen"


def test_node_that_a_job_holds_or_completes_on_counts_as_busy_although_it_reads_idle() -> None:
    for state in (JobState.RUNNING, JobState.COMPLETING, JobState.SUSPENDED):
        assert updates([node(N0)], [job(7, N0, state=state)]) == [(N0, DRAIN, NEW)]


def test_drained_node_is_powered_down_when_its_job_has_ended() -> None:
    waiting = busy(N0, NodeFlag.DRAIN, reason=NEW)
    assert updates([waiting], [job(7, N0, state=JobState.RUNNING)]) == []
    assert updates([node(N0, NodeFlag.DRAIN, reason=NEW)]) == [(N0, DOWN, NEW)]


def test_silent_node_is_powered_down_when_slurm_has_given_it_up() -> None:
    flags = NodeFlag.NOT_RESPONDING, NodeFlag.DRAIN
    for reason in (NEW, f"{NEW} : Not responding"):
        given_up = node(N0, *flags, base=BaseState.DOWN, reason=reason)
        assert [found[1] for found in updates([given_up])] == [DOWN]


@pytest.mark.parametrize(
    "kept",
    [
        node(N0, NodeFlag.DRAIN, reason="fan is loud"),
        busy(N0, NodeFlag.DRAIN, reason="fan is loud"),
        busy(N0, reason="mind the fan"),
        node(N0, NodeFlag.FAIL, reason="fan is loud"),
        node(N0, NodeFlag.DRAIN, reason="Prolog error"),
        node(N0, NodeFlag.REBOOT_ISSUED),
        busy(N0, NodeFlag.REBOOT_REQUESTED),
        node(N0, NodeFlag.NOT_RESPONDING),
        node(N0, NodeFlag.POWER_DOWN),
        busy(N0, NodeFlag.POWER_DOWN),
        stopping(N0),
        starting(N0),
        replace(node(N0), state=replace(node(N0).state, unknown=frozenset({"NEW_WORD"}))),
    ],
    ids=lambda kept: f"{kept.state.base} {sorted(kept.state.flags)} {kept.reason}",
)
def test_node_that_somebody_else_is_at_is_left_to_that(kept: Node) -> None:
    assert not [found for found in updates([kept]) if found[2] == NEW]


def test_condemned_node_is_left_to_the_repairs() -> None:
    plan = World([node(N0, NodeFlag.DRAIN, reason=GPU_LOST)], vms=[vm(N0)], cluster=CHANGED).plan()
    assert not [action for action in plan.actions if isinstance(action, UpdateNode)]
    assert any("repair" in action.subject for action in plan.actions)


def test_node_whose_end_has_come_is_left_to_that() -> None:
    ended = Reservation("slurm-hooks-eol-x", (N0,), NOW - timedelta(seconds=1))
    assert updates([node(N0)], reservations=[ended]) == []


@pytest.mark.parametrize(
    "status", [each for each in InstanceStatus if each is not InstanceStatus.RUNNING]
)
def test_only_nodes_on_vms_that_run_are_moved(status: InstanceStatus) -> None:
    assert not [found for found in updates([node(N0)], vms=[vm(N0, status)]) if found[2] == NEW]


def test_vm_of_a_group_that_is_not_ours_or_not_listed_is_of_no_known_generation() -> None:
    elsewhere = replace(vm(N0), group=None)
    assert updates([node(N0)], vms=[elsewhere]) == []
    world = World([node(N0)], vms=[vm(N0)], cluster=CHANGED, has_group=False)
    assert world.actions(UpdateNode) == []


def big(count: int, static: int = 0) -> tuple[Cluster, list[str]]:
    cluster = with_other_disk(example_cluster(min_node_count=static, max_node_count=count))
    return cluster, list(cluster.node_names("a3u"))


@pytest.mark.parametrize(("count", "most"), [(4, 1), (19, 1), (30, 3)])
def test_idle_nodes_go_in_turns(count: int, most: int) -> None:
    cluster, names = big(count, static=count)
    moved = updates([node(name) for name in names], cluster=cluster)
    assert moved == [(name, DOWN, NEW) for name in names[:most]]


@pytest.mark.parametrize(
    "first",
    [
        stopping("flexvm-a3u-0"),
        node("flexvm-a3u-0", NodeFlag.POWER_DOWN),
        busy("flexvm-a3u-0", NodeFlag.POWER_DOWN),
        off("flexvm-a3u-0"),
        starting("flexvm-a3u-0", base=BaseState.IDLE),
    ],
    ids=["going off", "asked off", "asked off while busy", "off though static", "coming back"],
)
def test_the_next_goes_when_the_one_before_is_back(first: Node) -> None:
    cluster, names = big(4, static=4)
    rest = [node(name) for name in names[1:]]
    there = [vm(each.name) for each in rest]
    found = updates([first, *rest], cluster=cluster, vms=there)
    assert not [update for update in found if update[2] == NEW]
    back = updates([node(names[0]), *rest], cluster=cluster, vms=there)
    assert back == [(names[1], DOWN, NEW)]


def test_drained_nodes_wait_for_no_turn_since_they_serve_nobody() -> None:
    cluster, names = big(4, static=4)
    drained = [node(name, NodeFlag.DRAIN, reason=NEW) for name in names[1:]]
    found = updates([stopping(names[0]), *drained], cluster=cluster)
    assert found == [(name, DOWN, NEW) for name in names[1:]]


def test_nodes_that_leave_the_cluster_take_no_turn() -> None:
    cluster, names = big(2, static=2)
    leaving = node("flexvm-a3u-8"), stopping("flexvm-a3u-9")
    found = updates([*leaving, node(names[0])], cluster=cluster)
    assert (names[0], DOWN, NEW) in found


def test_nothing_moves_in_a_pool_that_is_held_since_no_new_vm_would_come() -> None:
    record = PoolRecord(3, NOW, 1, NOW + timedelta(hours=1), "CONFIG")
    keeper = replace(off(N1), comment=record_text(record))
    plan = World([node(N0), keeper], vms=[vm(N0)], cluster=CHANGED).plan()
    assert not [action for action in plan.actions if _is_about(action, N0)]


def _is_about(action: Action, name: str) -> bool:
    return isinstance(action, UpdateNode) and action.node == name


@pytest.mark.parametrize(
    ("drained", "there", "back"),
    [
        (node(N0, NodeFlag.DRAIN, reason=NEW), True, NodeUpdate.RESUME),
        (busy(N0, NodeFlag.DRAIN, reason=NEW), True, NodeUpdate.RESUME),
        (node(N0, NodeFlag.DRAIN, NodeFlag.POWERED_DOWN, reason=NEW), False, NodeUpdate.IDLE),
    ],
    ids=["idle", "busy", "off"],
)
def test_drain_is_lifted_when_the_generation_is_the_present_one_again(
    drained: Node, there: bool, back: NodeUpdate
) -> None:
    vms = [vm(N0)] if there else []
    assert updates([drained], cluster=CLUSTER, vms=vms) == [(N0, (back,), "")]


def test_drain_stays_while_the_vm_is_of_no_known_generation() -> None:
    drained = node(N0, NodeFlag.DRAIN, reason=NEW)
    assert updates([drained], cluster=CLUSTER, vms=[replace(vm(N0), group=None)]) == []


def test_static_nodes_move_one_after_another_and_a_job_runs_to_its_end(tmp_path: Path) -> None:
    cluster = example_cluster(min_node_count=2, max_node_count=2)
    life = Life(tmp_path, cluster)
    fill(life)
    before = {name: life.compute.state.instance(name).group for name in (N0, N1)}
    job_id = life.slurm.submit([N1])
    life.apply(with_other_disk(cluster))
    fill(life)
    assert life.compute.state.instance(N0).group != before[N0]
    assert life.compute.state.instance(N1).group == before[N1]
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert life.slurm.nodes[N1].state.has(NodeFlag.DRAIN)
    life.slurm.complete(job_id)
    fill(life)
    assert life.compute.state.instance(N1).group == life.compute.state.instance(N0).group
    assert life.slurm.jobs[job_id].restarts == 0
    for name in (N0, N1):
        assert life.slurm.nodes[name].state == replace(node(name)).state
        assert life.slurm.nodes[name].reason == ""


def fill(life: Life) -> None:
    """Whatever is asked for is granted, until nothing moves."""
    for _ in range(4):
        life.rest()
        life.grant_all()
    life.rest()
