"""Before and at the end of a VM's life: reservations, warnings, and the loss of the node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_hooks.compute.model import Instance, InstanceStatus
from slurm_hooks.reconcile.actions import (
    CreateReservation,
    DeleteReservation,
    TellJob,
    UpdateNode,
    WarnJob,
)
from slurm_hooks.reconcile.comments import end_of_life_comment
from slurm_hooks.reconcile.end_of_life import EndOfLife, ends_of_life
from slurm_hooks.reconcile.report import describe
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Job, JobState, Node, NodeFlag, Reservation
from tests.unit.reconcile.builders import (
    CLUSTER,
    N0,
    N1,
    NOW,
    World,
    node,
    off,
    starting,
    stopping,
    vm,
)
from tests.unit.reconcile.builders import job as job_of

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
NOTICE = timedelta(seconds=CLUSTER.policy.end_of_life_notice_seconds)


def living(
    name: str, end: datetime = NOW + HOUR, status: InstanceStatus = InstanceStatus.RUNNING
) -> Instance:
    return replace(vm(name, status), termination_time_utc=end)


def reservation(end: EndOfLife) -> Reservation:
    return Reservation(end.name, end.nodes, end.time_utc, end.time_utc + 10 * MINUTE)


def reserved(*ends: tuple[str, datetime]) -> list[Reservation]:
    return [reservation(end) for end in ends_of_life(ends)]


def running(*nodes: str, limit: timedelta | None = 2 * HOUR, comment: str = "") -> Job:
    return replace(
        job_of(7, *nodes, state=JobState.RUNNING, admin_comment=comment),
        start_time_utc=NOW - MINUTE,
        time_limit_seconds=None if limit is None else int(limit.total_seconds()),
    )


def created(world: World) -> list[tuple[tuple[str, ...], datetime]]:
    made = [action for action in world.plan().actions if isinstance(action, CreateReservation)]
    return [(action.nodes, action.start_time_utc) for action in made]


def deleted(world: World) -> list[str]:
    return [action.name for action in world.plan().actions if isinstance(action, DeleteReservation)]


def warnings(world: World) -> list[WarnJob]:
    return [a for a in world.plan().actions if isinstance(a, WarnJob)]


def test_nodes_that_end_within_one_minute_share_a_reservation_from_the_first_end() -> None:
    world = World(
        nodes=[node(N0), node(N1)],
        vms=[living(N0, NOW + HOUR + 40 * SECOND), living(N1, NOW + HOUR + 5 * SECOND)],
    )
    assert created(world) == [((N0, N1), NOW + HOUR + 5 * SECOND)]


def test_nodes_that_end_in_different_minutes_have_one_each() -> None:
    world = World(nodes=[node(N0), node(N1)], vms=[living(N0), living(N1, NOW + HOUR + 2 * MINUTE)])
    assert created(world) == [((N0,), NOW + HOUR), ((N1,), NOW + HOUR + 2 * MINUTE)]


def test_reservation_that_stands_is_not_made_again() -> None:
    world = World(nodes=[node(N0)], vms=[living(N0)], reservations=reserved((N0, NOW + HOUR)))
    assert created(world) == []
    assert deleted(world) == []


def test_reservation_of_an_end_that_has_passed_begins_now() -> None:
    world = World(nodes=[node(N0)], vms=[living(N0, NOW - HOUR)])
    assert created(world) == [((N0,), NOW)]


@pytest.mark.parametrize(
    "gone",
    [
        World(nodes=[node(N0, NodeFlag.POWERED_DOWN)]),
        World(nodes=[stopping(N0)], vms=[living(N0)]),
        World(nodes=[off(N0)], vms=[living(N0)]),
        World(nodes=[starting(N0)], vms=[living(N0, status=InstanceStatus.STOPPING)]),
        World(nodes=[node(N0)], vms=[living(N0, NOW + 2 * HOUR)]),
        World(nodes=[]),
    ],
    ids=["no VM", "suspended", "off", "woken while the old VM goes", "another VM", "no node"],
)
def test_reservation_goes_with_its_vm(gone: World) -> None:
    ours = reserved((N0, NOW + HOUR))
    assert deleted(replace(gone, reservations=ours)) == [ours[0].name]


def test_node_keeps_its_reservation_while_its_vm_stops_at_the_end() -> None:
    world = World(
        nodes=[node(N0)],
        vms=[living(N0, NOW - SECOND, InstanceStatus.STOPPING)],
        reservations=reserved((N0, NOW - SECOND)),
    )
    assert deleted(world) == []


def test_one_of_two_vms_gone_makes_the_new_reservation_before_the_old_one_goes() -> None:
    old = reserved((N0, NOW + HOUR), (N1, NOW + HOUR))
    world = World(nodes=[node(N0), stopping(N1)], vms=[living(N0)], reservations=old)
    changes = [
        a for a in world.plan().actions if isinstance(a, CreateReservation | DeleteReservation)
    ]
    assert [type(change) for change in changes] == [CreateReservation, DeleteReservation]


def test_reservations_of_others_are_never_touched() -> None:
    others = [Reservation("maintenance", (N0,), NOW), Reservation("slurm-hooks", (N0,), NOW)]
    assert deleted(World(nodes=[off(N0)], reservations=others)) == []


def test_number_of_reservation_calls_does_not_grow_with_the_nodes() -> None:
    names = [f"flexvm-a3u-{index}" for index in range(4)]
    world = World(nodes=[node(name) for name in names], vms=[living(name) for name in names])
    assert len(created(world)) == 1


def test_vm_missing_after_its_end_is_lost_at_the_first_sighting() -> None:
    world = World(nodes=[node(N0)], reservations=reserved((N0, NOW - SECOND)))
    assert [a.updates for a in world.plan().actions if isinstance(a, UpdateNode)] == [
        (NodeUpdate.DOWN, NodeUpdate.POWER_DOWN)
    ]
    assert deleted(world) == [], "it tells of the end until the node is down"


def test_vm_missing_before_its_end_or_in_a_reservation_of_others_is_not_believed_at_once() -> None:
    for early in (reserved((N0, NOW + SECOND)), [Reservation("maintenance", (N0,), NOW - HOUR)]):
        world = World(nodes=[node(N0)], reservations=early)
        assert not any(isinstance(a, UpdateNode) for a in world.plan().actions)


def test_many_nodes_that_end_together_are_not_held_by_the_cap_on_kills() -> None:
    cluster = replace(CLUSTER, policy=replace(CLUSTER.policy, most_kills_a_pass=1))
    ours = reserved((N0, NOW - SECOND), (N1, NOW - SECOND))
    world = World(nodes=[node(N0), node(N1)], reservations=ours, cluster=cluster)
    assert len([a for a in world.plan().actions if isinstance(a, UpdateNode)]) == 2


def test_living_vm_past_its_end_by_a_wrong_clock_is_left_alone() -> None:
    world = World(
        nodes=[node(N0)],
        vms=[living(N0, NOW - MINUTE)],
        reservations=reserved((N0, NOW - MINUTE)),
    )
    assert world.plan().actions == ()


def test_job_that_will_be_cut_is_told_at_once_and_signalled_when_the_end_is_near() -> None:
    early = World(nodes=[busy(N0)], vms=[living(N0, NOW + NOTICE + SECOND)], jobs=[running(N0)])
    (told,) = warnings(early)
    assert (told.signal, told.keeps_comment) == ("", False)
    assert "before the job's time limit" in end_of_life_comment(told)

    near = replace(early, vms=[living(N0, NOW + NOTICE)])
    near = replace(near, jobs=[running(N0, comment=end_of_life_comment(told))])
    (signalled,) = warnings(near)
    assert signalled.signal == "URG"

    known = replace(near, jobs=[running(N0, comment=end_of_life_comment(signalled))])
    assert warnings(known) == []
    assert not any(isinstance(a, TellJob) for a in known.plan().actions)


def test_job_that_ends_before_by_its_own_limit_is_not_signalled() -> None:
    ends_first = running(N0, limit=MINUTE + 5 * MINUTE)
    world = World(nodes=[busy(N0)], vms=[living(N0, NOW + 5 * MINUTE)], jobs=[ends_first])
    assert warnings(world) == []


def test_limit_beyond_all_times_is_a_limit_like_others() -> None:
    endless = replace(running(N0), time_limit_seconds=10**18)
    world = World(nodes=[busy(N0)], vms=[living(N0)], jobs=[endless])
    assert len(warnings(world)) == 1


def test_job_without_a_limit_is_warned_of_the_first_of_its_ends() -> None:
    world = World(
        nodes=[busy(N0), busy(N1)],
        vms=[living(N0, NOW + HOUR), living(N1, NOW + 2 * MINUTE)],
        jobs=[running(N0, N1, limit=None)],
    )
    (warning,) = warnings(world)
    assert (warning.node, warning.end_time_utc) == (N1, NOW + 2 * MINUTE)


def test_job_with_a_comment_of_a_person_is_signalled_and_keeps_the_comment() -> None:
    world = World(
        nodes=[busy(N0)],
        vms=[living(N0, NOW + MINUTE)],
        jobs=[running(N0, comment="do not touch")],
    )
    (warning,) = warnings(world)
    assert (warning.signal, warning.keeps_comment) == ("URG", True)
    remembered = Memory(warned={warning.subject: warning.end_time_utc})
    assert warnings(replace(world, memory=remembered)) == []


def test_no_signal_is_sent_where_none_is_configured() -> None:
    cluster = replace(CLUSTER, policy=replace(CLUSTER.policy, end_of_life_signal=""))
    world = World(
        nodes=[busy(N0)], vms=[living(N0, NOW + MINUTE)], jobs=[running(N0)], cluster=cluster
    )
    assert [warning.signal for warning in warnings(world)] == [""]


def test_waiting_job_is_told_nothing_of_ends() -> None:
    configuring = replace(running(N0), state=JobState.CONFIGURING)
    world = World(nodes=[starting(N0)], vms=[living(N0, NOW + MINUTE)], jobs=[configuring])
    assert warnings(world) == []


def test_plan_says_which_nodes_a_reservation_is_for() -> None:
    action = CreateReservation("slurm-hooks-eol-1", (N0, N1), NOW)
    assert describe(action) == (
        "create reservation slurm-hooks-eol-1: flexvm-a3u-[0-1] from 2026-05-01T12:00:00+00:00"
    )


def busy(name: str) -> Node:
    return node(name, base=BaseState.ALLOCATED)


ends = st.lists(
    st.tuples(
        st.integers(0, 50).map(lambda index: f"flexvm-a3u-{index}"),
        st.integers(0, 600).map(lambda seconds: NOW + timedelta(seconds=seconds)),
    ),
    unique_by=lambda end: end[0],
)


@given(ends, st.randoms(use_true_random=False))
def test_desired_reservations_are_the_same_for_the_same_ends_in_any_order(
    given_ends: list[tuple[str, datetime]], random: Random
) -> None:
    shuffled = list(given_ends)
    random.shuffle(shuffled)
    assert ends_of_life(shuffled) == ends_of_life(given_ends)


@given(ends)
def test_every_node_is_in_one_reservation_that_begins_within_the_minute_before_its_end(
    given_ends: list[tuple[str, datetime]],
) -> None:
    desired = ends_of_life(given_ends)
    assert sorted(members(desired)) == sorted(name for name, _ in given_ends)
    assert len({end.name for end in desired}) == len(desired)
    times = dict(given_ends)
    for end in desired:
        for name in end.nodes:
            assert timedelta(0) <= times[name] - end.time_utc < MINUTE


@given(ends)
def test_reservations_once_made_are_left_as_they_are(
    given_ends: list[tuple[str, datetime]],
) -> None:
    mine = [(name, end) for name, end in given_ends if CLUSTER.pool_of(name) is not None]
    world = World(
        nodes=[node(name) for name, _ in mine],
        vms=[living(name, end) for name, end in mine],
        reservations=reserved(*mine),
    )
    assert (created(world), deleted(world)) == ([], [])


def members(desired: Iterable[EndOfLife]) -> list[str]:
    return [name for end in desired for name in end.nodes]
