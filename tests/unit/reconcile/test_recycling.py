"""Idle nodes that end too early for a waiting job are renewed, as few as it needs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_hooks.compute.model import Instance, InstanceStatus
from slurm_hooks.reconcile.actions import Expectation, UpdateNode
from slurm_hooks.reconcile.end_of_life import ends_of_life
from slurm_hooks.reconcile.memory import remember
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.pool_record import PoolRecord, record_text
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import (
    BaseState,
    Job,
    JobState,
    Node,
    NodeFlag,
    Partition,
    Reservation,
)
from tests.unit.reconcile.builders import NOW, World, node, off, starting, stopping, vm

DAY = timedelta(days=1)
NAMES = [f"flexvm-a3u-{index}" for index in range(4)]
N0, N1, N2, _ = NAMES


def up(name: str, *flags: NodeFlag, base: BaseState = BaseState.IDLE) -> Node:
    return node(name, *flags, base=base, partitions=("a3u",))  # type: ignore[arg-type]


def in_partition(*nodes: Node) -> list[Node]:
    return [replace(each, partitions=("a3u",)) for each in nodes]


def living(name: str, left: timedelta) -> Instance:
    return replace(vm(name), termination_time_utc=NOW + left)


def waiting(
    job_id: int = 1,
    limit: timedelta | None = 2 * DAY,
    node_count: int = 1,
    reason: str = "ReqNodeNotAvail",
    priority: int = 1,
) -> Job:
    return Job(
        job_id,
        JobState.PENDING,
        partition="a3u",
        reason=reason,
        node_count=node_count,
        priority=priority,
        time_limit_seconds=None if limit is None else int(limit.total_seconds()),
    )


LONG_AGO = NOW - timedelta(hours=1)


def renewed(world: World) -> list[str]:
    updates = [a for a in world.plan().actions if isinstance(a, UpdateNode)]
    assert all(a.updates == (NodeUpdate.POWER_DOWN,) for a in updates)
    assert all(a.expectation is Expectation.IDLE for a in updates)
    return [a.node for a in updates]


STALE = World(
    nodes=[up(N0), up(N1)],
    vms=[living(N0, DAY), living(N1, DAY / 2)],
    jobs=[waiting()],
)


def test_idle_node_with_the_shortest_life_is_renewed_for_a_job_that_needs_more() -> None:
    assert renewed(STALE) == [N1]


def test_as_many_are_renewed_as_the_job_needs() -> None:
    assert sorted(renewed(replace(STALE, jobs=[waiting(node_count=2)]))) == [N0, N1]


def test_none_is_renewed_for_a_job_that_would_lack_nodes_even_then() -> None:
    assert renewed(replace(STALE, jobs=[waiting(node_count=3)])) == []


def test_each_waiting_job_gets_nodes_of_its_own_by_priority() -> None:
    jobs = [waiting(1, priority=1), waiting(2, priority=9), waiting(3, priority=5)]
    assert renewed(replace(STALE, jobs=jobs)) == [N1, N0]


@pytest.mark.parametrize(
    "free",
    [
        off(N2),
        stopping(N2),
        node(N2, NodeFlag.POWER_DOWN),
        starting(N2, base=BaseState.IDLE),
    ],
    ids=["off", "suspended", "asked off", "starting for nobody"],
)
def test_none_is_renewed_while_another_node_is_free_or_will_be(free: Node) -> None:
    assert renewed(replace(STALE, nodes=[*STALE.nodes, *in_partition(free)])) == []


def test_job_gets_what_is_free_and_renewed_nodes_for_the_rest() -> None:
    nodes = [*STALE.nodes, *in_partition(off(N2))]
    assert renewed(replace(STALE, nodes=nodes, jobs=[waiting(node_count=2)])) == [N1]


def test_none_is_renewed_where_the_job_fits() -> None:
    assert renewed(replace(STALE, vms=[living(N0, DAY), living(N1, 3 * DAY)])) == []


@pytest.mark.parametrize("reason", ["", "Priority", "Dependency", "JobHeldUser", "BeginTime"])
def test_none_is_renewed_for_a_job_that_waits_for_something_else(reason: str) -> None:
    assert renewed(replace(STALE, jobs=[waiting(reason=reason)])) == []


@pytest.mark.parametrize(
    "unfree",
    [
        up(N0, base=BaseState.ALLOCATED),
        up(N0, base=BaseState.MIXED),
        up(N0, NodeFlag.COMPLETING),
        up(N0, NodeFlag.DRAIN),
        up(N0, NodeFlag.REBOOT_REQUESTED),
        up(N0, NodeFlag.NOT_RESPONDING),
    ],
    ids=lambda each: "+".join(sorted([each.state.base, *each.state.flags])),
)
def test_only_idle_nodes_are_renewed(unfree: Node) -> None:
    assert renewed(replace(STALE, nodes=[unfree])) == []


def test_node_in_a_reservation_of_others_is_left_alone() -> None:
    theirs = [Reservation("maintenance", (N0, N1), NOW + DAY)]
    assert renewed(replace(STALE, reservations=theirs)) == []
    ours = [
        Reservation(end.name, end.nodes, end.time_utc)
        for end in ends_of_life([(N0, NOW + DAY), (N1, NOW + DAY / 2)])
    ]
    assert renewed(replace(STALE, reservations=ours)) == [N1]


def test_none_is_renewed_while_its_pool_is_held() -> None:
    record = PoolRecord(
        3, NOW, holds=1, until_utc=NOW + timedelta(minutes=5), cause="QUOTA_EXCEEDED"
    )
    keeper = replace(up(N2, base=BaseState.ALLOCATED), comment=record_text(record))
    assert renewed(replace(STALE, nodes=[*STALE.nodes, keeper])) == []
    past = replace(keeper, comment=record_text(replace(record, until_utc=NOW)))
    assert renewed(replace(STALE, nodes=[*STALE.nodes, past])) == [N1]


def test_node_of_another_partition_is_left_alone() -> None:
    assert renewed(replace(STALE, nodes=[replace(up(N0), partitions=("other",))])) == []


@pytest.mark.parametrize("limit", [None, 30 * DAY], ids=["no limit", "beyond the pool's life"])
def test_job_that_no_vm_can_outlive_gets_a_fresh_node_but_no_endless_renewal(
    limit: timedelta | None,
) -> None:
    assert renewed(replace(STALE, jobs=[waiting(limit=limit)])) == [N1]
    fresh = [living(name, 7 * DAY - timedelta(minutes=9)) for name in (N0, N1)]
    assert renewed(replace(STALE, vms=fresh, jobs=[waiting(limit=limit)])) == []


def test_none_is_renewed_for_a_job_that_names_a_node_which_it_cannot_have() -> None:
    drained = up(N2, NodeFlag.DRAIN)
    job = replace(waiting(reason="ReqNodeNotAvail"), required_nodes=(N2,))
    assert renewed(replace(STALE, nodes=[*STALE.nodes, drained], jobs=[job])) == []
    both = replace(job, node_count=2, required_nodes=(N0, N2))
    assert renewed(replace(STALE, nodes=[*STALE.nodes, drained], jobs=[both])) == []


def test_the_node_that_a_job_names_is_renewed_and_no_other() -> None:
    job = replace(waiting(), required_nodes=(N0,))
    assert renewed(replace(STALE, jobs=[job])) == [N0]


def test_a_job_of_more_nodes_than_it_names_gets_others_too() -> None:
    job = replace(waiting(node_count=2), required_nodes=(N0,))
    assert sorted(renewed(replace(STALE, jobs=[job]))) == [N0, N1]


def test_none_is_renewed_where_the_node_that_the_job_names_has_life_enough() -> None:
    world = replace(STALE, vms=[living(N0, 3 * DAY), living(N1, DAY / 2)])
    assert renewed(replace(world, jobs=[replace(waiting(), required_nodes=(N0,))])) == []


def test_no_node_that_a_job_excludes_is_renewed_for_it() -> None:
    assert renewed(replace(STALE, jobs=[replace(waiting(), excluded_nodes=(N1,))])) == [N0]
    assert renewed(replace(STALE, jobs=[replace(waiting(), excluded_nodes=(N0, N1))])) == []


@pytest.mark.parametrize("state", ["DOWN", "DRAIN", "INACTIVE"])
def test_none_is_renewed_for_jobs_of_a_closed_partition(state: str) -> None:
    closed = [Partition("a3u", state, (N0, N1))]
    assert renewed(replace(STALE, partitions=closed)) == []
    assert renewed(replace(STALE, partitions=[Partition("a3u", "UP", (N0, N1))])) == [N1]


def renewed_over_passes(world: World, *jobs: Job) -> list[str]:
    """What is renewed over passes, each of which finds all nodes idle and old again."""
    memory, names = Memory(), []
    for _ in range(5):
        for job in jobs:
            world = replace(world, jobs=[job], memory=memory)
            names += renewed(world)
            plan = world.plan()
            memory = remember(memory, plan, [Outcome(a) for a in plan.actions], NOW)
    return names


def test_job_that_no_renewal_helps_costs_as_many_nodes_as_it_needs_and_no_more() -> None:
    assert renewed_over_passes(STALE, waiting()) == [N1]
    assert sorted(renewed_over_passes(STALE, waiting(node_count=2))) == [N0, N1]


def test_renewal_that_was_refused_does_not_count() -> None:
    plan = STALE.plan()
    refused = remember(Memory(), plan, [Outcome(a, note="no") for a in plan.actions], LONG_AGO)
    assert renewed(replace(STALE, memory=refused)) == [N1]


def test_job_that_was_queued_again_gets_fresh_nodes_again() -> None:
    again = replace(waiting(), restarts=1)
    assert renewed_over_passes(STALE, waiting(), again) == [N1, N1]


def test_drained_node_that_slurm_names_as_unavailable_keeps_no_job_from_fresh_nodes() -> None:
    reason = f"ReqNodeNotAvail, UnavailableNodes:{N2}"
    nodes = [*STALE.nodes, up(N2, NodeFlag.DRAIN)]
    assert renewed(replace(STALE, nodes=nodes, jobs=[waiting(reason=reason)])) == [N1]


@pytest.mark.parametrize("status", [InstanceStatus.STOPPING, InstanceStatus.PENDING_STOP])
def test_an_idle_node_whose_vm_goes_is_powered_down_before_a_job_gets_it(
    status: InstanceStatus,
) -> None:
    assert renewed(World([up(N0), up(N1)], vms=[vm(N0, status), vm(N1)])) == [N0]


@pytest.mark.parametrize(
    "busy",
    [
        up(N0, base=BaseState.ALLOCATED),
        up(N0, base=BaseState.MIXED),
        up(N0, NodeFlag.COMPLETING),
        up(N0, NodeFlag.REBOOT_REQUESTED),
        replace(up(N0, NodeFlag.DRAIN), reason="fan is loud"),
    ],
)
def test_a_node_in_use_whose_vm_goes_keeps_its_jobs_until_then(busy: Node) -> None:
    assert renewed(World([busy], vms=[vm(N0, InstanceStatus.STOPPING)])) == []
