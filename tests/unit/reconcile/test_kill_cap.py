"""The cap on kills at its limits: none rather than some, and what does not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import Instance
from slurm_hooks.reconcile.actions import DeleteInstance, NoticeKind, Plan, UpdateNode
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.kill_cap import NODES_IN_QUESTION, VMS_IN_QUESTION, suspended_nodes
from slurm_hooks.reconcile.memory import remember
from slurm_hooks.reconcile.sightings import BELIEVED_AFTER
from slurm_hooks.reconcile.snapshot import Memory, Snapshot, System, Unavailable
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag, SlurmSnapshot
from tests.unit.reconcile.builders import (
    NOW,
    World,
    example_cluster,
    long_seen,
    node,
    off,
    starting,
    stopping,
    vm,
)

NAMES = tuple(f"flexvm-a3u-{index}" for index in range(100))


def cluster(most: int = 3, percent: int = 0) -> Cluster:
    policy = Policy(most_kills_a_pass=most, most_kills_percent=percent)
    return replace(example_cluster(max_node_count=100), policy=policy)


def second_plan(world: World, confirmed_kills: int = 0) -> Plan:
    """What is decided when a pass, long enough before, saw the same."""
    view = world.snapshot()
    before = NOW - BELIEVED_AFTER
    memory = remember(view.memory, decide(view, world.cluster, before), (), before)
    return decide(replace(view, memory=memory), world.cluster, NOW, confirmed_kills)


def lost(plan: Plan) -> list[str]:
    return [
        action.node
        for action in plan.actions
        if isinstance(action, UpdateNode) and NodeUpdate.DOWN in action.updates
    ]


def deleted(plan: Plan) -> list[str]:
    return [action.name for action in plan.actions if isinstance(action, DeleteInstance)]


def held_subjects(plan: Plan) -> list[str]:
    return [n.subject for n in plan.notices if n.kind is NoticeKind.KILLS_HELD]


def missing(count: int, up: int = 0, **limits: int) -> World:
    """`count` registered nodes without a VM, and others that have one so that `up` are up."""
    gone = [node(name) for name in NAMES[:count]]
    well = [node(name) for name in NAMES[count:up]]
    return World([*gone, *well], vms=[vm(n.name) for n in well], cluster=cluster(**limits))


def orphans(count: int) -> list[Instance]:
    return [replace(vm("x-0"), name=f"orphan{index}") for index in range(count)]


def test_as_many_nodes_as_the_limit_are_taken_down() -> None:
    plan = second_plan(missing(3))
    assert len(lost(plan)) == 3
    assert (held_subjects(plan), plan.held, plan.kills_in_question) == ([], (), 0)


def test_one_more_than_the_limit_takes_down_none_and_says_so() -> None:
    plan = second_plan(missing(4))
    assert lost(plan) == []
    assert held_subjects(plan) == [NODES_IN_QUESTION]
    assert len(plan.held) == 4
    assert plan.kills_in_question == 4
    assert plan.unsettled


@pytest.mark.parametrize(("count", "taken"), [(10, 10), (11, 0)])
def test_share_of_the_nodes_that_are_up_raises_the_limit(count: int, taken: int) -> None:
    plan = second_plan(missing(count, up=100, percent=10))
    assert len(lost(plan)) == taken


def test_nodes_that_are_off_or_starting_do_not_count_as_up() -> None:
    world = missing(4, up=9, percent=50)
    assert len(lost(second_plan(world))) == 4
    others: list[Node] = [starting(name) for name in NAMES[20:60]]
    others += [off(name) for name in NAMES[60:]]
    world = missing(5, up=9, percent=50)
    world.nodes = [*world.nodes, *others]
    assert lost(second_plan(world)) == []


def test_missing_for_the_first_time_counts_too() -> None:
    """Three were missing before, and in this pass very many are: that view is not believed."""
    world = missing(3, up=50)
    before = NOW - BELIEVED_AFTER
    memory = remember(Memory(), decide(world.snapshot(), world.cluster, before), (), before)
    worse = missing(50)
    worse.memory = memory
    plan = worse.plan()
    assert lost(plan) == []
    assert held_subjects(plan) == [NODES_IN_QUESTION]


def test_operator_who_confirms_the_number_lets_it_pass() -> None:
    assert lost(second_plan(missing(8), confirmed_kills=7)) == []
    assert len(lost(second_plan(missing(8), confirmed_kills=8))) == 8


@pytest.mark.parametrize(
    "dead",
    [
        [node(name, NodeFlag.NOT_RESPONDING, base=BaseState.ALLOCATED) for name in NAMES[:50]],
        [node(name, base=BaseState.DOWN, reason="Not responding") for name in NAMES[:50]],
    ],
    ids=["NOT_RESPONDING", "DOWN"],
)
def test_nodes_that_slurm_misses_too_are_not_in_question(dead: Sequence[Node]) -> None:
    plan = second_plan(World(dead, cluster=cluster()))
    assert held_subjects(plan) == []


def test_vms_without_need_have_a_limit_of_their_own() -> None:
    at_limit = World([off(NAMES[0])], vms=orphans(3), cluster=cluster())
    assert len(deleted(second_plan(at_limit))) == 3
    beyond = World([off(NAMES[0])], vms=orphans(4), cluster=cluster())
    plan = second_plan(beyond)
    assert deleted(plan) == []
    assert held_subjects(plan) == [VMS_IN_QUESTION]
    assert len(deleted(second_plan(beyond, confirmed_kills=4))) == 4


def test_a_slurm_that_shows_all_nodes_as_off_gets_no_vm_deleted() -> None:
    names = NAMES[:10]
    world = World([off(n) for n in names], vms=[vm(n) for n in names], cluster=cluster())
    plan = second_plan(world)
    assert deleted(plan) == []
    assert held_subjects(plan) == [VMS_IN_QUESTION]


def test_one_sort_that_is_held_does_not_hold_the_other() -> None:
    world = missing(10)
    world.vms = orphans(2)
    plan = second_plan(world)
    assert (lost(plan), len(deleted(plan))) == ([], 2)


def test_deletions_that_slurm_asks_for_are_never_held() -> None:
    world = World([stopping(n) for n in NAMES], vms=[vm(n) for n in NAMES], cluster=cluster())
    assert len(deleted(second_plan(world))) == 100


def test_backlog_of_an_outage_is_deleted_though_slurm_has_gone_on() -> None:
    """While Compute Engine is not readable, SuspendTimeout passes for many nodes."""
    names = NAMES[:50]
    world = World([stopping(n) for n in names], vms=[vm(n) for n in names], cluster=cluster())
    view = world.snapshot()
    blind = replace(view, compute=Unavailable(System.COMPUTE, "503"))
    memory = remember(Memory(), decide(blind, world.cluster, NOW), (), NOW)
    world.nodes, world.memory = [off(n) for n in names], memory
    assert len(deleted(second_plan(world))) == 50


def test_node_that_was_woken_since_is_not_suspended_any_more() -> None:
    def suspended(state: Node, before: frozenset[str]) -> frozenset[str]:
        return suspended_nodes(SlurmSnapshot({state.name: state}), before)

    name = NAMES[0]
    seen = suspended(stopping(name), frozenset())
    assert suspended(off(name), seen) == {name}
    assert suspended(off(name), frozenset()) == frozenset()
    assert suspended(starting(name), seen) == frozenset()
    assert suspended(node(name), seen) == frozenset()


def test_ten_thousand_nodes_whose_list_of_vms_came_empty_lose_nothing() -> None:
    names = [f"flexvm-a3u-{index}" for index in range(10_000)]
    big = example_cluster(max_node_count=10_000)
    view: Snapshot = World([node(n) for n in names], cluster=big).snapshot()
    memory = long_seen(missing=names)
    plan = decide(replace(view, memory=memory), big, NOW + timedelta(days=1))
    assert plan.actions == ()
    assert plan.kills_in_question == 10_000
