"""Nodes that wait for capacity and for no job: who hears of it, and when it is over."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from slurm_hooks.compute.model import ResizeRequest
from slurm_hooks.history import metrics
from slurm_hooks.reconcile.actions import ClearReason, Notice, NoticeKind, Plan, SetReason
from slurm_hooks.reconcile.conditions import Conditions
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.plan_waits import GRANTED_SOON, MOST_REASONS_A_PASS
from slurm_hooks.reconcile.report import plan_as_text
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, NodeFlag, SlurmSnapshot
from tests.fakes.slurm import SLURM_22_05, SLURM_24_11, FakeSlurm
from tests.unit.reconcile.builders import (
    N0,
    N1,
    NOW,
    World,
    example_cluster,
    job,
    node,
    off,
    request,
    starting,
)
from tests.unit.reconcile.life import Life

STOCKOUT = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
STATIC = example_cluster(min_node_count=2)
OF_A_WAIT = "slurm-hooks: waiting for capacity since 2026-05-01T11:55Z"


def waiting_world(code: str = STOCKOUT, reason: str = "") -> World:
    """Two static nodes whose requests wait for capacity."""
    nodes = [replace(starting(name, BaseState.IDLE), reason=reason) for name in (N0, N1)]
    asked = [request("r0", N0, last_attempt=code), request("r1", N1, last_attempt=code)]
    return World(nodes, requests=asked, cluster=STATIC)


def plan_of(world: World, *, keeps_lone_reason: bool = False) -> Plan:
    view = world.snapshot()
    assert isinstance(view.slurm, SlurmSnapshot)
    slurm = replace(view.slurm, keeps_lone_reason=keeps_lone_reason)
    return decide(replace(view, slurm=slurm), world.cluster, NOW)


def waits(plan: Plan) -> list[Notice]:
    return [notice for notice in plan.notices if notice.kind is NoticeKind.AWAITS_CAPACITY]


def reasons(world: World) -> dict[str, str]:
    """What the nodes' reasons become where Slurm keeps them."""
    set_to = {}
    for action in plan_of(world, keeps_lone_reason=True).actions:
        if isinstance(action, SetReason):
            set_to[action.node] = action.reason
        elif isinstance(action, ClearReason):
            set_to[action.node] = ""
    return set_to


def test_pool_whose_static_nodes_wait_is_told_with_code_and_since_when() -> None:
    (notice,) = waits(waiting_world().plan())
    assert notice.subject == "pool a3u"
    assert notice.detail == f"2 x a3-ultragpu-8g for no job since 2026-05-01T11:55:00Z ({STOCKOUT})"


def test_dry_run_shows_what_static_nodes_wait_for() -> None:
    assert "pool a3u 2 x a3-ultragpu-8g for no job since" in plan_as_text(waiting_world().plan())


def test_nodes_that_wait_for_a_job_are_told_to_its_owner_alone() -> None:
    world = World([starting(N0)], [job(12, N0)], [request("r", N0, job_id=12, last_attempt="X")])
    assert waits(world.plan()) == []


def test_request_that_may_be_granted_at_once_is_no_news_yet() -> None:
    def made(ago: timedelta) -> ResizeRequest:
        return replace(request("r", N0), creation_time_utc=NOW - ago)

    world = World([starting(N0, BaseState.IDLE)], cluster=STATIC)
    for ago, count in ((GRANTED_SOON, 0), (GRANTED_SOON + timedelta(seconds=1), 1)):
        world.requests = [made(ago)]
        assert len(waits(world.plan())) == count


def test_log_says_once_that_a_wait_begins_changes_its_code_and_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="slurm-hooksd")
    fewer = waiting_world()
    fewer.requests = [request("r0", N0, last_attempt=STOCKOUT)]
    conditions = Conditions()
    over = World([node(N0), node(N1)], cluster=STATIC)
    counts = []
    for world in (waiting_world(), waiting_world(), fewer, waiting_world("QUOTA"), over, over):
        conditions.report(Plan(notices=tuple(waits(world.plan()))))
        counts.append(len(caplog.records))
    assert counts == [1, 1, 1, 2, 3, 3]
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_metric_counts_the_nodes_of_a_pool_that_wait_whoever_for() -> None:
    def value() -> float | None:
        labels = {"pool": "a3u"}
        return REGISTRY.get_sample_value("slurm_hooks_nodes_waiting_for_capacity", labels)

    world = World([starting(N0)], [job(12, N0)], [request("r", N0, job_id=12)])
    metrics.record_pass(world.plan(), 0.1)
    assert value() == 1
    metrics.record_pass(World([off(N0)]).plan(), 0.1)
    assert value() == 0


def test_slurm_that_drops_a_reason_that_comes_alone_is_given_none() -> None:
    actions = plan_of(waiting_world()).actions
    assert not any(isinstance(action, SetReason | ClearReason) for action in actions)


def test_nodes_of_one_minute_and_code_get_the_same_reason() -> None:
    assert reasons(waiting_world()) == dict.fromkeys((N0, N1), f"{OF_A_WAIT} ({STOCKOUT})")


def test_reason_is_written_only_when_its_text_changes() -> None:
    told = f"{OF_A_WAIT} ({STOCKOUT})"
    assert reasons(waiting_world(reason=told)) == {}
    assert reasons(waiting_world("QUOTA", told)) == dict.fromkeys((N0, N1), f"{OF_A_WAIT} (QUOTA)")


@pytest.mark.parametrize("reason", ["rack 7 is slow", "slurm-hooks: out of service: rack 7"])
def test_reason_of_a_person_stays(reason: str) -> None:
    assert reasons(waiting_world(reason=reason)) == {}


def test_nodes_of_a_job_that_waits_have_it_in_their_reason_too() -> None:
    asked = request("r", N0, N1, job_id=12, last_attempt=STOCKOUT)
    world = World([starting(N0), starting(N1)], [job(12, N0, N1)], [asked])
    assert reasons(world) == dict.fromkeys((N0, N1), f"{OF_A_WAIT} ({STOCKOUT})")


def test_no_more_texts_are_written_in_a_pass_than_its_share() -> None:
    names = [f"flexvm-a3u-{index}" for index in range(MOST_REASONS_A_PASS + 3)]
    world = World(
        [starting(name, BaseState.IDLE) for name in names],
        requests=[request(name, name, last_attempt=name) for name in names],
        cluster=example_cluster(max_node_count=len(names)),
    )
    assert len(set(reasons(world).values())) == MOST_REASONS_A_PASS


def test_reason_is_cleared_when_the_node_waits_no_more() -> None:
    told = replace(off(N0), reason=f"{OF_A_WAIT} ({STOCKOUT})")
    assert reasons(World([told])) == {N0: ""}


def static_life(directory: Path, slurm: FakeSlurm) -> Life:
    life = Life(directory, STATIC, slurm)
    life.rest()
    for reference in life.waiting():
        life.compute.state.note_attempt(reference, STOCKOUT)
    life.rest()
    return life


def test_static_nodes_tell_what_they_wait_for_until_they_are_up(tmp_path: Path) -> None:
    life = static_life(tmp_path, FakeSlurm(version=SLURM_24_11))
    assert all(STOCKOUT in life.slurm.nodes[name].reason for name in (N0, N1))
    writes = len([call for call in life.slurm.calls if call.method == "update_nodes"])
    life.rest()
    assert writes == len([call for call in life.slurm.calls if call.method == "update_nodes"])
    life.grant_all()
    life.rest()
    assert [life.slurm.nodes[name].reason for name in (N0, N1)] == ["", ""]


def test_static_nodes_that_cannot_keep_a_reason_are_left_in_peace(tmp_path: Path) -> None:
    life = static_life(tmp_path, FakeSlurm(version=SLURM_22_05))
    alone = [c for c in life.slurm.calls if c.method == "update_nodes" and c.update is None]
    assert alone == []


def test_wait_that_a_person_ends_leaves_no_reason(tmp_path: Path) -> None:
    life = static_life(tmp_path, FakeSlurm(version=SLURM_24_11))
    life.cluster = example_cluster()
    life.restart()
    life.person_updates(N0, NodeUpdate.POWER_DOWN_FORCE, "")
    life.rest()
    assert not life.slurm.nodes[N0].state.has(NodeFlag.POWERING_UP)
    assert life.slurm.nodes[N0].reason == ""
