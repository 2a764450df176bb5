"""When what was seen is believed: not by the number of looks, by the time between them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from slurm_hooks.reconcile.actions import Plan, UpdateNode
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.memory import remember
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.pace import Pace
from slurm_hooks.reconcile.sightings import (
    BELIEVED_AFTER,
    Sightings,
    is_believed,
    seen_since,
)
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.model import BaseState, JobState
from tests.unit.reconcile.builders import CLUSTER, N0, NOW, World, job, node, vm

SECOND = timedelta(seconds=1)
BUSY = World([node(N0, base=BaseState.ALLOCATED)], [job(12, N0, state=JobState.RUNNING)])
WITH_VM = replace(BUSY, vms=[vm(N0)])
SILENT = World([node(N0, base=BaseState.DOWN, reason="Not responding")])


class Looks:
    """Passes over one node whose VM the lists show, or do not."""

    def __init__(self) -> None:
        self.memory = Memory()

    def look(self, world: World, now: datetime) -> Plan:
        plan = decide(replace(world.snapshot(), memory=self.memory), CLUSTER, now)
        self.memory = remember(self.memory, plan, (), now)
        return plan

    def loses_node(self, world: World, now: datetime) -> bool:
        return any(isinstance(action, UpdateNode) for action in self.look(world, now).actions)


def test_running_job_survives_any_number_of_looks_at_a_list_that_lags() -> None:
    looks = Looks()
    instants = [NOW + SECOND * count / 10 for count in range(100)]
    assert not any(looks.loses_node(BUSY, now) for now in instants)
    assert looks.loses_node(BUSY, NOW + BELIEVED_AFTER)


def test_list_that_shows_the_vm_in_between_makes_the_next_sighting_a_first_one() -> None:
    looks = Looks()
    looks.look(BUSY, NOW)
    looks.look(WITH_VM, NOW + 5 * SECOND)
    assert not looks.loses_node(BUSY, NOW + BELIEVED_AFTER)
    assert not looks.loses_node(BUSY, NOW + 2 * BELIEVED_AFTER - SECOND)
    assert looks.loses_node(BUSY, NOW + 2 * BELIEVED_AFTER)


def test_node_that_slurm_has_given_up_is_lost_at_the_first_sighting() -> None:
    assert Looks().loses_node(SILENT, NOW)


def test_clock_that_is_set_back_delays_belief_by_no_more_than_that() -> None:
    back = NOW - timedelta(hours=1)
    since = seen_since({N0: NOW}, [N0], back)
    assert not is_believed(N0, since, back)
    assert is_believed(N0, since, back + BELIEVED_AFTER)


@pytest.mark.parametrize("ago_seconds", [0, 4, 9])
def test_plan_says_when_the_first_sighting_may_be_believed(ago_seconds: int) -> None:
    sightings = Sightings({N0: NOW}, {"x": NOW - ago_seconds * SECOND}, {"y": NOW - BELIEVED_AFTER})
    assert sightings.seconds_to_belief(NOW) == BELIEVED_AFTER.total_seconds() - ago_seconds


def test_nothing_is_waited_for_once_all_is_believed() -> None:
    assert Sightings(unneeded={"y": NOW - BELIEVED_AFTER}).seconds_to_belief(NOW) is None


def test_next_pass_comes_when_the_sighting_may_be_believed_not_an_interval_later() -> None:
    looks, pace, now = Looks(), Pace(), NOW
    delays = []
    while not (plan := looks.look(BUSY, now)).actions:
        delays.append(pace.delay_after(plan, 60.0, in_vain=False))
        now += timedelta(seconds=delays[-1])
    assert now == NOW + BELIEVED_AFTER
    assert len(delays) <= 4


def test_sighting_leaves_the_pass_unsettled_until_it_is_believed() -> None:
    plan = Looks().look(BUSY, NOW)
    assert (plan.steps[N0], plan.unsettled) == (Step.LOSE_NODE, True)
    assert plan.second_look_seconds == BELIEVED_AFTER.total_seconds()
