"""One row a case: what an error does to the call, the nodes and the job, wherever it occurs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import RequestState
from slurm_hooks.reconcile.failure_table import COLUMNS, TABLE, Occasion, Reaction, reaction_to
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.unit.reconcile.builders import N0, N1
from tests.unit.reconcile.scenario import Scenario

METHODS = {
    Occasion.INSERT_GROUP: "insert_group",
    Occasion.INSERT_REQUEST: "insert_resize_request",
    Occasion.CANCEL: "cancel_resize_request",
    Occasion.DELETE: "delete_instances",
}
CODES = {
    ErrorKind.RATE: ("RESOURCE_OPERATION_RATE_EXCEEDED", 403),
    ErrorKind.TRANSIENT: ("INTERNAL_ERROR", 500),
    ErrorKind.STOCKOUT: ("ZONE_RESOURCE_POOL_EXHAUSTED", 503),
    ErrorKind.QUOTA: ("QUOTA_EXCEEDED", 403),
    ErrorKind.PERMISSION: ("PERMISSIONS_ERROR", 403),
    ErrorKind.CONFIG: ("UNSUPPORTED_OPERATION", 400),
    ErrorKind.CONFLICT: ("ALREADY_EXISTS", 409),
    ErrorKind.GONE: ("RESOURCE_NOT_FOUND", 404),
}
WHILE_STARTING = (
    Occasion.INSERT_GROUP,
    Occasion.INSERT_REQUEST,
    Occasion.REQUEST_OPERATION,
    Occasion.REQUEST_FAILED,
)
WHILE_ENDING = (Occasion.CANCEL, Occasion.DELETE)


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path)


def fail_once(scenario: Scenario, occasion: Occasion, kind: ErrorKind) -> None:
    """The next time that it comes to this, it fails; a request must wait for it to end FAILED."""
    code, status = CODES[kind]
    if occasion is Occasion.REQUEST_FAILED:
        scenario.settle()
        (reference,) = scenario.waiting()
        scenario.compute.state.fail(reference, code, "text")
    elif occasion is Occasion.REQUEST_OPERATION:
        scenario.run()
        scenario.run()
        scenario.compute.fail_next_operation(code, status)
    else:
        scenario.compute.fail_next(ComputeError(kind, code, "text", status), METHODS[occasion])


def run_some_passes(scenario: Scenario) -> None:
    """Enough of them for anything that does not wait for time to pass."""
    for _ in range(8):
        scenario.run()
        scenario.slurm.pass_power_thread()


def cases(*occasions: Occasion) -> list[tuple[Occasion, ErrorKind]]:
    return [(occasion, kind) for occasion in occasions for kind in COLUMNS]


def test_every_kind_of_error_has_a_column_and_every_occasion_a_row() -> None:
    assert sorted(COLUMNS) == sorted(ErrorKind)
    assert set(TABLE) == set(Occasion)
    assert {reaction_to(*case) for case in cases(*Occasion)} == set(Reaction)


@pytest.mark.parametrize(("occasion", "kind"), cases(*WHILE_STARTING))
def test_start_fails_at_once_or_gets_its_request_in_the_end(
    scenario: Scenario, occasion: Occasion, kind: ErrorKind
) -> None:
    job_id = scenario.slurm.submit([N0])
    fail_once(scenario, occasion, kind)
    run_some_passes(scenario)
    if reaction_to(occasion, kind) is Reaction.FAIL_START:
        code, _ = CODES[kind]
        assert scenario.slurm.jobs[job_id].state is JobState.PENDING
        assert code in scenario.slurm.jobs[job_id].admin_comment
        assert code in scenario.slurm.nodes[N0].reason
        assert scenario.waiting() == []
        return
    scenario.now += timedelta(minutes=1)
    scenario.settle()
    assert scenario.slurm.jobs[job_id].state is JobState.CONFIGURING
    assert scenario.states() == {RequestState.ACCEPTED}


@pytest.mark.parametrize(("occasion", "kind"), cases(*WHILE_ENDING))
def test_end_is_tried_again_until_nothing_is_left(
    scenario: Scenario, occasion: Occasion, kind: ErrorKind
) -> None:
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    if occasion is Occasion.DELETE:
        scenario.grant_all()
        scenario.settle_with_vms()
        scenario.slurm.complete(job_id)
        scenario.slurm.suspend([N0])
    else:
        scenario.slurm.cancel(job_id)
    fail_once(scenario, occasion, kind)
    scenario.run()
    scenario.now += timedelta(minutes=1)
    scenario.settle_with_vms()
    scenario.settle_after_the_grace()
    assert (scenario.requests(), scenario.vm_names()) == ([], [])
    assert len(scenario.compute.calls_of(METHODS[occasion])) == 2


def test_rate_limited_call_is_not_made_again_before_the_minute_turns(scenario: Scenario) -> None:
    scenario.now += timedelta(seconds=20)
    scenario.slurm.submit([N0])
    fail_once(scenario, Occasion.INSERT_REQUEST, ErrorKind.RATE)
    run_some_passes(scenario)
    scenario.now += timedelta(seconds=39)
    run_some_passes(scenario)
    assert len(scenario.compute.calls_of("insert_resize_request")) == 1
    scenario.now += timedelta(seconds=1)
    scenario.settle()
    assert len(scenario.compute.calls_of("insert_resize_request")) == 2


@pytest.mark.parametrize("occasion", [Occasion.INSERT_REQUEST, Occasion.REQUEST_FAILED])
def test_failed_job_takes_no_other_of_its_call_down(scenario: Scenario, occasion: Occasion) -> None:
    first = scenario.slurm.submit([N0])
    fail_once(scenario, occasion, ErrorKind.CONFIG)
    second = scenario.slurm.submit([N1])
    scenario.settle()
    assert scenario.slurm.jobs[first].state is JobState.PENDING
    assert scenario.slurm.jobs[second].state is JobState.CONFIGURING
    assert [r.instances for r in scenario.requests() if r.state.is_active] == [(N1,)]


def test_job_that_cannot_be_requeued_ends_with_the_reason(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0], batch=False)
    fail_once(scenario, Occasion.INSERT_REQUEST, ErrorKind.PERMISSION)
    scenario.settle()
    assert scenario.slurm.jobs[job_id].state is JobState.NODE_FAIL
    assert "PERMISSIONS_ERROR" in scenario.slurm.jobs[job_id].admin_comment
    assert not scenario.slurm.nodes[N0].state.has(NodeFlag.POWERING_UP)
