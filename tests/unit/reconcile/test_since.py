"""Since when: every comment and reason tells a time that both systems keep, in UTC."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ErrorKind
from slurm_hooks.compute.model import InstanceStatus, RequestState
from slurm_hooks.reconcile.actions import JobStatus, TellJob, UpdateNode, WaitKind
from slurm_hooks.reconcile.comments import job_comment, node_reason
from slurm_hooks.reconcile.failure_table import Occasion
from slurm_hooks.reconcile.places import MOST_ACTIVE_REQUESTS
from slurm_hooks.reconcile.snapshot import Failure, Memory
from slurm_hooks.slurm.model import Job
from tests.unit.reconcile.builders import GROUP, N0, NOW, World, job, request, starting, vm
from tests.unit.reconcile.scenario import Scenario

GIVEN = NOW - timedelta(minutes=7)
"""When Slurm gave the job its nodes."""
ASKED = NOW - timedelta(minutes=5)
"""When the request of `builders` was made."""
MADE = NOW - timedelta(minutes=10)
"""When the VM of `builders` was made."""


def waiting_job() -> Job:
    return replace(job(12, N0), start_time_utc=GIVEN)


def waiting(**parts: object) -> World:
    return World([starting(N0)], [waiting_job()], **parts)  # type: ignore[arg-type]


FULL = [request(f"r{n}", f"flexvm-a3u-{n + 100}", job_id=n + 100) for n in range(100)]
REFUSED = Failure(
    ErrorKind.PERMISSION,
    "forbidden",
    "grant x",
    NOW + timedelta(minutes=1),
    Occasion.INSERT_GROUP,
    "a3u",
)
NO_GROUP = f"insert group {GROUP.reference.scope}/{GROUP.reference.name}"

WAITS = {
    WaitKind.PLACE: (waiting(requests=FULL), GIVEN),
    WaitKind.GROUP: (waiting(has_group=False), GIVEN),
    WaitKind.REQUEST: (waiting(), GIVEN),
    WaitKind.DELETION: (waiting(vms=[vm(N0, InstanceStatus.STOPPING)]), GIVEN),
    WaitKind.CAPACITY: (waiting(requests=[request("r", N0, job_id=12)]), ASKED),
    WaitKind.BOOT: (
        waiting(requests=[request("r", N0, job_id=12, state=RequestState.SUCCEEDED)], vms=[vm(N0)]),
        MADE,
    ),
}


def stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def status_of(world: World) -> JobStatus:
    (status,) = [action.status for action in world.plan().actions if isinstance(action, TellJob)]
    assert status is not None
    return status


@pytest.mark.parametrize("kind", WAITS)
def test_each_wait_is_told_with_a_time_that_survives_us(kind: WaitKind) -> None:
    assert len(FULL) == MOST_ACTIVE_REQUESTS
    world, since = WAITS[kind]
    status = status_of(world)
    assert (status.kind, status.since_utc) == (kind, since)
    assert f"since {stamp(since)}" in job_comment(status)


@pytest.mark.parametrize(
    ("world", "since"),
    [
        (waiting(requests=[request("r", N0, job_id=12, state=RequestState.FAILED)]), ASKED),
        (waiting(has_group=False, memory=Memory(failures={NO_GROUP: REFUSED})), GIVEN),
    ],
    ids=["failed request", "refusal"],
)
def test_failure_tells_job_and_node_since_when_the_vm_was_wanted(
    world: World, since: datetime
) -> None:
    status = status_of(world)
    assert status.kind is WaitKind.FAILED
    assert f"wanted since {stamp(since)}" in job_comment(status)
    (update,) = [a for a in world.plan().actions if isinstance(a, UpdateNode)]
    assert f"wanted since {stamp(since)}" in node_reason(update)


def test_time_that_nobody_knows_is_not_made_up() -> None:
    status = status_of(World([starting(N0)], [job(12, N0)]))
    assert status.since_utc is None
    assert "since" not in job_comment(status)


def test_times_are_told_in_utc() -> None:
    local = GIVEN.astimezone(timezone(timedelta(hours=2)))
    status = replace(status_of(WAITS[WaitKind.REQUEST][0]), since_utc=local)
    assert stamp(GIVEN.astimezone(UTC)) in job_comment(status)


def test_comment_is_written_once_and_a_restart_writes_it_no_second_time(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path)
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    comment = scenario.slurm.jobs[job_id].admin_comment
    assert "since" in comment
    for restarts in (False, True):
        if restarts:
            scenario.restart()
        for _ in range(3):
            scenario.now += timedelta(minutes=1)
            assert not any(isinstance(a, TellJob) for a in scenario.run().actions)
    assert scenario.slurm.jobs[job_id].admin_comment == comment
