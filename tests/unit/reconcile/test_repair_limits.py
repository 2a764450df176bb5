"""When nothing is repaired: a job at fault, half a node, the same node again, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.health.model import Verdict
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.actions import NoticeKind, Plan
from slurm_hooks.reconcile.repair_actions import RepairKind
from slurm_hooks.reconcile.repairs import log_of
from slurm_hooks.slurm.model import Node
from tests.unit.reconcile.builders import CLUSTER, N0, NOW, World, example_cluster, node, off
from tests.unit.reconcile.condemned import (
    LATER_BOOT,
    after,
    drained,
    events_of,
    happened,
    kinds,
    reason,
    recorded,
    repairs,
    world_of,
)

DRAINING = (Verdict.RESET, Verdict.REBOOT, Verdict.REPLACE)
BIG = example_cluster(max_node_count=100)


def notices(plan: Plan) -> list[tuple[NoticeKind, str]]:
    return [(notice.kind, notice.subject) for notice in plan.notices]


def is_skipped(node_: Node, why: str, past: Sequence[Event] = ()) -> bool:
    """Whether the node stays drained for this, which is told while it lasts and recorded once."""
    world = world_of(node_, past=past)
    plan = world.plan()
    skips = [event for event in recorded(plan) if event.kind is EventKind.REPAIR_SKIPPED]
    told = notices(plan) == [(NoticeKind.REPAIR_SKIPPED, N0)]
    is_once = [why in event.message for event in skips] == [True]
    again = replace(world, repairs=after(plan, past)).plan()
    lasts = recorded(again) == [] and notices(again) == notices(plan)
    return not repairs(plan) and told and is_once and lasts


@pytest.mark.parametrize("verdict", DRAINING)
def test_job_that_was_started_often_may_be_at_fault_itself(verdict: Verdict) -> None:
    often = drained(reason(verdict, restart_count=3))
    assert is_skipped(often, "the job may be at fault")
    assert repairs(world_of(drained(reason(verdict, restart_count=2))).plan())


@pytest.mark.parametrize("verdict", DRAINING)
def test_node_of_which_the_job_had_half_is_only_drained(verdict: Verdict) -> None:
    half = drained(reason(verdict, gpus_used=4))
    assert is_skipped(half, "4 of its 8 GPUs")


def test_manual_verdict_waits_for_a_person() -> None:
    assert is_skipped(drained(reason(Verdict.MANUAL)), "only a person")


def test_condition_ends_when_the_person_has_taken_over() -> None:
    assert notices(world_of(drained("fan is loud")).plan()) == []


PAST_REPAIRS = [
    happened(EventKind.VM_REBOOT, minutes_ago=60 * 24 * 6, instance_id="1"),
    happened(EventKind.VM_DELETION, minutes_ago=60 * 24 * 5, instance_id="1"),
]


@pytest.mark.parametrize("verdict", DRAINING)
def test_node_that_was_repaired_twice_in_a_week_waits_for_a_person(verdict: Verdict) -> None:
    assert is_skipped(drained(reason(verdict)), "repaired 2 times", PAST_REPAIRS)


def test_repairs_of_long_ago_do_not_count() -> None:
    old = [replace(PAST_REPAIRS[0], time_utc=NOW - timedelta(days=8)), PAST_REPAIRS[1]]
    assert repairs(world_of(drained(reason()), past=old).plan()) == {N0: RepairKind.REPLACE}


def test_repairs_of_other_nodes_do_not_count() -> None:
    others = [replace(event, node="flexvm-a3u-3") for event in PAST_REPAIRS]
    assert repairs(world_of(drained(reason()), past=others).plan()) == {N0: RepairKind.REPLACE}


def test_repair_that_was_cut_short_does_not_forbid_itself() -> None:
    world = world_of(drained(reason()), past=PAST_REPAIRS[:1])
    again = replace(world, repairs=after(world.plan(), PAST_REPAIRS[:1]))
    assert repairs(again.plan()) == {N0: RepairKind.REPLACE}


def test_vm_that_outlived_its_replacement_counts_as_repaired() -> None:
    world = world_of(drained(reason()), past=PAST_REPAIRS[:1])
    past = after(world.plan(), PAST_REPAIRS[:1])
    again = world_of(drained(reason(), given=NOW))
    assert repairs(replace(again, repairs=past).plan()) == {}


def test_what_is_no_repair_does_not_count() -> None:
    drains = [happened(EventKind.VM_SLURM_DRAIN, minutes_ago=at) for at in (600, 500, 400)]
    assert repairs(world_of(drained(reason()), past=drains).plan()) == {N0: RepairKind.REPLACE}


@pytest.mark.parametrize("verdict", [Verdict.OK, Verdict.REQUEUE])
def test_limits_keep_no_healthy_node_drained(verdict: Verdict) -> None:
    healthy = drained(reason(verdict, restart_count=9, gpus_used=1))
    assert repairs(world_of(healthy, past=PAST_REPAIRS).plan()) == {N0: RepairKind.RETURN}


def test_limits_are_the_operators() -> None:
    lenient = Policy(most_job_restarts=10, most_repairs_a_node=3, repair_days=30)
    world = world_of(drained(reason(restart_count=9)), past=PAST_REPAIRS)
    world.cluster = replace(CLUSTER, policy=lenient)
    assert repairs(world.plan())


def pool(condemned: int, healthy: int, seconds_apart: float = 1, **more: object) -> World:
    """A pool of which some nodes were condemned one after another, the last a minute ago."""
    nodes: list[Node] = []
    for index in range(condemned):
        name = f"flexvm-a3u-{index}"
        given = NOW - timedelta(seconds=60 + seconds_apart * (condemned - 1 - index))
        nodes.append(drained(reason(name=name), name=name, given=given))
    nodes += [node(f"flexvm-a3u-{index}") for index in range(condemned, condemned + healthy)]
    world = world_of(*nodes, **more)  # type: ignore[arg-type]
    world.cluster = BIG
    return world


@pytest.mark.parametrize("verdict", [Verdict.REPLACE, Verdict.MANUAL])
def test_jobs_that_fill_disks_do_not_stop_the_repairs_of_a_pool(verdict: Verdict) -> None:
    names = [f"flexvm-a3u-{index}" for index in range(4)]
    full = [drained(reason(verdict, name, check="disk_space"), name=name) for name in names[:3]]
    sick = drained(reason(Verdict.REPLACE, names[3]), name=names[3])
    plan = world_of(*full, sick).plan()
    assert NoticeKind.REPAIRS_STOPPED not in [notice.kind for notice in plan.notices]
    assert names[3] in repairs(plan)
    assert (names[0] in repairs(plan)) is (verdict is Verdict.REPLACE)


def is_stopped(world: World) -> bool:
    plan = world.plan()
    stop = (NoticeKind.REPAIRS_STOPPED, "pool a3u") in notices(plan)
    assert stop != bool(repairs(plan))
    return stop


@pytest.mark.parametrize(
    ("condemned", "healthy", "stops"),
    [
        (1, 0, False),
        (2, 0, False),
        (3, 0, True),
        (3, 26, True),
        (3, 27, False),
        (10, 90, False),
        (11, 89, True),
    ],
)
def test_many_nodes_condemned_at_once_stop_the_repairs_of_their_pool(
    condemned: int, healthy: int, stops: bool
) -> None:
    assert is_stopped(pool(condemned, healthy)) is stops


def test_nodes_condemned_one_by_one_are_repaired() -> None:
    assert is_stopped(pool(3, 0, seconds_apart=150))
    assert not is_stopped(pool(3, 0, seconds_apart=151))


def test_nodes_that_are_off_do_not_make_a_pool_large() -> None:
    world = pool(3, 0)
    world.nodes = [*world.nodes, *(off(f"flexvm-a3u-{index}") for index in range(3, 80))]
    assert is_stopped(world)


def test_requeued_jobs_condemn_no_node() -> None:
    names = [f"flexvm-a3u-{index}" for index in range(4)]
    nodes = [drained(reason(Verdict.REQUEUE, name), name=name) for name in names]
    assert not is_stopped(replace(world_of(*nodes), cluster=BIG))


def test_condemned_node_among_requeued_jobs_is_one_condemned_node() -> None:
    names = [f"flexvm-a3u-{index}" for index in range(1, 5)]
    nodes = [drained(reason(Verdict.REQUEUE, name), name=name) for name in names]
    world = replace(world_of(drained(reason()), *nodes), cluster=BIG)
    assert repairs(world.plan())[N0] is RepairKind.REPLACE


def test_stop_is_recorded_once_and_counts_all_nodes() -> None:
    world = pool(4, 0)
    plan = world.plan()
    (stop,) = [e for e in recorded(plan) if e.kind is EventKind.REPAIRS_STOPPED]
    assert (stop.pool, stop.node) == ("a3u", "")
    assert stop.message.startswith("4 of 4 nodes were condemned within 300 s (gpu_lost)")
    again = replace(world, repairs=after(plan))
    assert recorded(again.plan()) == []
    assert is_stopped(again)


def test_stop_lasts_when_its_nodes_are_mended_and_others_fail() -> None:
    stop = happened(EventKind.REPAIRS_STOPPED, "", 60 * 24 * 100, key="stop", message="many")
    world = world_of(drained(reason()), past=[stop])
    assert is_stopped(world)
    skips = [event for event in recorded(world.plan()) if event.kind is EventKind.REPAIR_SKIPPED]
    assert "pool a3u are stopped" in skips[0].message


def test_stop_of_one_pool_is_none_of_another() -> None:
    stop = happened(EventKind.REPAIRS_STOPPED, "", key="stop", pool="other")
    world = world_of(drained(reason()), past=[stop])
    assert repairs(world.plan()) == {N0: RepairKind.REPLACE}


def test_stopped_pool_returns_no_node_either() -> None:
    stop = happened(EventKind.REPAIRS_STOPPED, "", key="stop")
    assert repairs(world_of(drained(reason(Verdict.OK)), past=[stop]).plan()) == {}


def test_person_lets_the_pool_be_repaired_again() -> None:
    world = pool(4, 0)
    stopped = events_of(world.plan())
    resumed = Event(NOW, EventKind.REPAIRS_RESUMED, "a3u", "resumed")
    world.repairs = log_of((*stopped, resumed))
    assert not is_stopped(world)
    assert len(repairs(world.plan())) == 4


def test_only_later_condemnations_stop_a_resumed_pool() -> None:
    world = pool(3, 0)
    resumed = Event(NOW - timedelta(seconds=61.5), EventKind.REPAIRS_RESUMED, "a3u", "resumed")
    world.repairs = log_of([resumed])
    assert not is_stopped(world)
    world.repairs = log_of([replace(resumed, time_utc=NOW - timedelta(seconds=63))])
    assert is_stopped(world)


def test_burst_that_is_over_stops_nothing_later() -> None:
    names = [f"flexvm-a3u-{index}" for index in range(1, 5)]
    burst = [happened(EventKind.VM_SLURM_DRAIN, name, 600, key=name) for name in names]
    assert not is_stopped(world_of(drained(reason()), past=burst))


def test_sixth_sighting_of_one_node_is_one_node() -> None:
    past = [happened(EventKind.VM_SLURM_DRAIN, N0, 1 + at / 10) for at in range(6)]
    assert not is_stopped(world_of(drained(reason(boot=LATER_BOOT)), past=past))


def test_events_of_a_skipped_node_are_the_sighting_and_the_cause() -> None:
    plan = world_of(drained(reason(Verdict.MANUAL))).plan()
    assert kinds(events_of(plan)) == [
        EventKind.VM_PROLOG_ERROR,
        EventKind.VM_SLURM_DRAIN,
        EventKind.REPAIR_SKIPPED,
    ]
