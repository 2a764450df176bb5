"""Requests that wait for capacity: for how long the last ones did, and when one is given up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import InstanceStatus, RequestState
from slurm_hooks.reconcile.actions import CancelRequest, InsertRequest, TellJob, UpdateNode
from slurm_hooks.reconcile.pool_record import hold_end
from slurm_hooks.reconcile.specifications import run_duration_of
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Job, JobState, NodeFlag
from tests.unit.reconcile.builders import CLUSTER, N0, N1, NOW, World, job, request, starting, vm
from tests.unit.reconcile.scenario import Scenario

UNTOUCHED = "flexvm-a3u-3"
LIMIT_SECONDS = 240
"""Less than the five minutes that the builders' requests have waited."""
POOL = CLUSTER.pools["a3u"]


def with_pool(**changes: object) -> Cluster:
    return replace(CLUSTER, pools={**CLUSTER.pools, "a3u": replace(POOL, **changes)})  # type: ignore[arg-type]


def waiting_world(limit_seconds: int | None) -> World:
    return World(
        [starting(N0), starting(N1)],
        [job(5, N0, N1)],
        [request("job-5-0-x", N0, N1, job_id=5)],
        cluster=with_pool(capacity_wait_limit_seconds=limit_seconds),
    )


def test_request_that_waited_too_long_is_cancelled_and_its_job_told_and_requeued() -> None:
    world = waiting_world(LIMIT_SECONDS)
    (cancellation,) = world.actions(CancelRequest)
    assert isinstance(cancellation, CancelRequest)
    assert cancellation.request.name == "job-5-0-x"
    updates = [a for a in world.plan().actions if isinstance(a, UpdateNode)]
    assert [(u.node, u.updates, u.code) for u in updates] == [
        (N0, (NodeUpdate.POWER_DOWN_FORCE,), "CAPACITY_WAIT_LIMIT"),
        (N1, (NodeUpdate.POWER_DOWN_FORCE,), "CAPACITY_WAIT_LIMIT"),
    ]
    (told,) = [a.status for a in world.plan().actions if isinstance(a, TellJob)]
    assert told is not None
    assert (told.kind, told.code) == ("FAILED", "CAPACITY_WAIT_LIMIT")


def test_request_waits_on_without_a_limit_or_before_it() -> None:
    assert waiting_world(None).actions(CancelRequest) == []
    assert waiting_world(301).actions(CancelRequest) == []


def test_request_of_no_job_waits_without_limit() -> None:
    world = waiting_world(LIMIT_SECONDS)
    world.nodes = [starting(N0, BaseState.IDLE)]
    world.jobs = []
    world.requests = [request("node-x-0", N0)]
    assert world.actions(CancelRequest) == []


def test_request_whose_first_vms_exist_is_not_given_up() -> None:
    world = waiting_world(LIMIT_SECONDS)
    world.vms = [vm(N0, InstanceStatus.PROVISIONING)]
    assert world.actions(CancelRequest) == []


def test_job_that_waited_too_long_is_pending_again_and_keeps_the_reason(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, with_pool(capacity_wait_limit_seconds=LIMIT_SECONDS))
    job_id = scenario.slurm.submit([N0, N1])
    scenario.settle()
    scenario.now += timedelta(seconds=LIMIT_SECONDS + 1)
    scenario.settle()
    assert scenario.slurm.jobs[job_id].state is JobState.PENDING
    assert scenario.slurm.jobs[job_id].admin_comment == (
        "slurm-hooks: failed: 2 x a3-ultragpu-8g in us-central1-a,"
        " wanted since 2026-01-05T12:00:00Z: CAPACITY_WAIT_LIMIT: none came within 240 s"
    )
    assert "CAPACITY_WAIT_LIMIT" in scenario.slurm.nodes[N0].reason
    assert scenario.waiting() == []


def test_pool_whose_request_waited_too_long_is_held_so_that_jobs_try_the_next(
    tmp_path: Path,
) -> None:
    """At once, however many other failures a hold takes: Slurm would choose the pool again."""
    scenario = Scenario(tmp_path, with_pool(capacity_wait_limit_seconds=LIMIT_SECONDS))
    assert scenario.cluster.policy.hold_after_failures > 1
    scenario.slurm.submit([N0])
    scenario.settle()
    scenario.now += timedelta(seconds=LIMIT_SECONDS + 1)
    scenario.run()
    untouched = scenario.slurm.nodes[UNTOUCHED]
    assert untouched.state.has(NodeFlag.DRAIN)
    assert "CAPACITY_WAIT_LIMIT" in untouched.reason


def test_pool_that_gives_nothing_again_and_again_is_held_for_longer_each_time(
    tmp_path: Path,
) -> None:
    """However long its limit is: nobody asks a held pool, so its failures are far apart."""
    limit_seconds = 12 * 3600
    scenario = Scenario(tmp_path, with_pool(capacity_wait_limit_seconds=limit_seconds))
    holds = []
    for _ in range(3):
        job_id = scenario.slurm.submit([N0])
        scenario.settle()
        scenario.now += timedelta(seconds=limit_seconds + 1)
        scenario.settle()
        end = hold_end(scenario.slurm.nodes[UNTOUCHED].reason)
        assert end is not None
        holds.append(round((end - scenario.now).total_seconds()))
        scenario.slurm.cancel(job_id)
        scenario.slurm.slept([N0])
        scenario.now = scenario.compute.state.now_utc = end
        scenario.settle()
        assert not scenario.slurm.nodes[UNTOUCHED].state.has(NodeFlag.DRAIN)
    first = scenario.cluster.policy.hold_seconds
    assert holds == [first, 2 * first, 4 * first]


def test_waiting_job_is_told_what_the_last_requests_waited() -> None:
    waiting = "flexvm-a3u-2"
    granted = [
        request("a", N0, state=RequestState.SUCCEEDED, job_id=1),
        request("b", N1, state=RequestState.SUCCEEDED, job_id=2),
    ]
    asked = NOW - timedelta(minutes=5)
    vms = [
        replace(vm(N0), creation_time_utc=asked + timedelta(minutes=3)),
        replace(vm(N1), creation_time_utc=asked + timedelta(minutes=4)),
    ]
    world = World(
        [starting(waiting)], [job(7, waiting)], [*granted, request("c", waiting, job_id=7)], vms
    )
    (told,) = [a.status for a in world.plan().actions if isinstance(a, TellJob)]
    assert told is not None
    assert (told.usual_wait_seconds, told.usual_wait_requests) == (210, 2)


def test_vm_of_a_later_request_says_nothing_of_the_earlier_one() -> None:
    waiting = "flexvm-a3u-2"
    earlier = replace(
        request("a", N0, state=RequestState.SUCCEEDED, job_id=1),
        creation_time_utc=NOW - timedelta(hours=9),
    )
    later = request("b", N0, state=RequestState.SUCCEEDED, job_id=1)
    vms = [replace(vm(N0), creation_time_utc=NOW - timedelta(minutes=4))]
    world = World(
        [starting(waiting)],
        [job(7, waiting)],
        [earlier, later, request("c", waiting, job_id=7)],
        vms,
    )
    (told,) = [a.status for a in world.plan().actions if isinstance(a, TellJob)]
    assert told is not None
    assert (told.usual_wait_seconds, told.usual_wait_requests) == (60, 1)


def limited(*limits_seconds: int | None) -> list[Job]:
    return [
        replace(job(number, N0), time_limit_seconds=limit)
        for number, limit in enumerate(limits_seconds, 1)
    ]


def test_life_follows_the_longest_job_between_the_services_minimum_and_the_pools_maximum() -> None:
    follows = replace(POOL, run_duration_follows_job=True, run_duration_seconds=86_400)
    assert run_duration_of(follows, limited(3600), 600) == 4200
    assert run_duration_of(follows, limited(3600, 7200), 600) == 7800
    assert run_duration_of(follows, limited(60), 60) == 600
    assert run_duration_of(follows, limited(86_400), 600) == 86_400


def test_life_is_the_pools_without_a_time_limit_a_job_or_the_wish() -> None:
    follows = replace(POOL, run_duration_follows_job=True)
    assert run_duration_of(follows, limited(3600, None), 600) == POOL.run_duration_seconds
    assert run_duration_of(follows, [], 600) == POOL.run_duration_seconds
    assert run_duration_of(POOL, limited(3600), 600) == POOL.run_duration_seconds


def test_request_of_a_job_asks_for_the_life_of_all_jobs_on_its_nodes() -> None:
    owner, guest = limited(3600, 7200)
    world = World([starting(N0)], [owner, guest], cluster=with_pool(run_duration_follows_job=True))
    (insertion,) = world.actions(InsertRequest)
    assert isinstance(insertion, InsertRequest)
    assert insertion.request.run_duration_seconds == 7800
