"""Slurm or Compute Engine down, slow, forgetful or refusing for many passes: nothing is killed,
nothing is lost, work goes on afterwards, and the log says it once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import RequestState
from slurm_hooks.reconcile.actions import Notice, NoticeKind, Plan
from slurm_hooks.reconcile.conditions import Conditions
from slurm_hooks.slurm.client import SlurmError, SlurmRefused, SlurmUnavailable
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.unit.reconcile.builders import N0, N1, example_cluster
from tests.unit.reconcile.life import Life

N2, N3 = "flexvm-a3u-2", "flexvm-a3u-3"
MANY = 30
READ_ONLY = {"read", "get_operation", "get_group", "read_templates"}


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    """One job runs on N0 and N1, another waits for N2."""
    life = Life(tmp_path, example_cluster())
    life.slurm.submit([N0, N1])
    life.rest()
    life.grant_all()
    life.rest()
    life.slurm.submit([N2])
    life.rest()
    yield life
    assert life.slurm.jobs[1].state is JobState.RUNNING


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said at level WARNING or above, by the test alone."""
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def passes_without_slurm(life: Life, count: int) -> None:
    for number in range(count):
        life.advance(timedelta(seconds=10))
        life.slurm.fail_next(SlurmUnavailable(f"no answer, try {number}"))
        life.run()


def passes_without_compute(life: Life, count: int) -> None:
    for number in range(count):
        life.advance(timedelta(seconds=10))
        error = ComputeError(ErrorKind.TRANSIENT, "backendError", f"trace {number}", 503)
        life.compute.fail_next(error, "read")
        life.run()


def test_slurm_down_for_long_costs_nothing_and_is_said_once(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    before = life.picture()
    life.compute.calls.clear()
    passes_without_slurm(life, MANY)
    assert life.picture() == before
    assert {call.method for call in life.compute.calls} <= READ_ONLY
    assert len(warnings(caplog)) == 1
    life.grant_all()
    life.rest()
    assert life.vm_names() == [N0, N1, N2]


def test_compute_engine_down_for_long_costs_nothing_and_is_said_once(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    before = life.picture()
    passes_without_compute(life, MANY)
    assert life.picture() == before
    assert len(warnings(caplog)) == 1
    life.grant_all()
    life.rest()
    assert life.vm_names() == [N0, N1, N2]


def test_what_happens_during_an_outage_is_made_up_for_afterwards(life: Life) -> None:
    passes_without_compute(life, 3)
    life.slurm.cancel(2)
    third = life.slurm.submit([N3])
    life.deliver_calls()
    passes_without_compute(life, 3)
    life.rest()
    assert [request.instances for request in life.requests() if request.state.is_active] == [(N3,)]
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[third].state is JobState.RUNNING
    assert life.vm_names() == [N0, N1, N3]


def test_vm_that_vanished_during_an_outage_is_believed_lost_only_after_two_clean_looks(
    life: Life,
) -> None:
    passes_without_compute(life, 3)
    life.compute.state.hidden.add(N0)
    life.run()
    life.compute.state.hidden.clear()
    passes_without_compute(life, 3)
    life.rest()


def test_lists_that_miss_a_vm_every_other_time_cost_no_job(life: Life) -> None:
    for number in range(MANY):
        life.compute.state.hidden = {N0, N1} if number % 2 else set()
        life.tick()


def test_records_of_slurm_that_nobody_can_read_cost_nothing(life: Life) -> None:
    """Half of the nodes are missing from every answer, as if they had never been."""
    kept = {name: life.slurm.nodes.pop(name) for name in (N1, N2)}
    life.slurm.unreadable = (N1, N2)
    for _ in range(MANY):
        life.advance(timedelta(seconds=100))
        life.run()
    life.slurm.nodes.update(kept)
    life.slurm.unreadable = ()
    life.grant_all()
    life.rest()
    assert life.vm_names() == [N0, N1, N2]


def test_calls_refused_for_long_are_said_once_and_made_afterwards(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    life.slurm.submit([N3])
    for number in range(MANY):
        error = ComputeError(ErrorKind.RATE, "rateLimitExceeded", f"trace {number}", 429)
        life.compute.fail_next(error, "insert_resize_request")
        life.tick()
    assert len(warnings(caplog)) == 1
    life.compute.forget_faults()
    life.rest()
    assert (N3,) in [request.instances for request in life.requests()]


@pytest.mark.parametrize("error", [SlurmUnavailable("no answer"), SlurmRefused("no")])
def test_changes_that_slurm_refuses_for_long_are_said_once_and_made_afterwards(
    life: Life, caplog: pytest.LogCaptureFixture, error: SlurmError
) -> None:
    job_id = life.slurm.submit([N3])
    life.rest()
    life.grant_all()
    for _ in range(MANY):
        life.slurm.fail_at("create_reservation", error)
        life.tick()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    assert len(warnings(caplog)) == 1
    life.rest()
    assert any(N3 in reservation.nodes for reservation in life.slurm.reservations.values())


def test_slow_answers_do_no_harm(life: Life) -> None:
    """Every call takes 20 s, so Compute Engine is read long after Slurm."""
    check = life.door.check

    def slow() -> None:
        life.advance(timedelta(seconds=20))
        check()

    life.door.check = slow
    life.restart()
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[2].state is JobState.RUNNING


def test_request_granted_during_an_outage_serves_its_job(life: Life) -> None:
    passes_without_slurm(life, 3)
    life.grant_all()
    life.live()
    passes_without_slurm(life, 3)
    life.rest()
    assert life.slurm.jobs[2].state is JobState.RUNNING
    assert RequestState.FAILED not in life.states()
    assert not life.slurm.nodes[N2].state.has(NodeFlag.POWERING_UP)


def plan_with(*notices: Notice) -> Plan:
    return Plan(notices=notices)


def test_condition_that_cannot_be_judged_is_not_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It ended with every outage and began again after it."""
    caplog.set_level(logging.INFO, logger="slurm-hooksd")
    twice = Notice(NoticeKind.DUPLICATE_VM, N0, "us-central1-a")
    down = Notice(NoticeKind.UNAVAILABLE, "Slurm", "no answer")
    conditions = Conditions()
    for plan in (plan_with(twice), plan_with(down), plan_with(down), plan_with(twice)):
        conditions.report(plan)
    assert len(caplog.records) == 3
    conditions.report(plan_with())
    assert len(caplog.records) == 4
