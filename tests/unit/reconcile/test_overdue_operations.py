"""An operation that never ends, or that nobody may read, blocks nothing for ever."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.reconcile.memory import LONGEST_OPERATION
from tests.unit.reconcile.builders import N0
from tests.unit.reconcile.scenario import Scenario

SECOND = timedelta(seconds=1)
POLLS = 5


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """The operation that makes the template of a job's pool is on its way."""
    scenario = Scenario(tmp_path)
    scenario.compute.operations_finish_at_once = False
    scenario.slurm.submit([N0])
    scenario.run()
    assert tries(scenario) == 1
    return scenario


def tries(scenario: Scenario) -> int:
    """How many different calls were made to create the template."""
    return len({call.request_id for call in scenario.compute.calls_of("insert_template")})


def test_operation_is_waited_for_half_an_hour(scenario: Scenario) -> None:
    scenario.now += LONGEST_OPERATION
    scenario.run()
    assert tries(scenario) == 1
    assert scenario.passes.has_operations


def test_operation_that_never_ends_is_given_up_and_its_action_tried_again(
    scenario: Scenario,
) -> None:
    scenario.now += LONGEST_OPERATION + SECOND
    scenario.compute.state.templates.clear()
    scenario.run()
    assert tries(scenario) == 2


def test_next_try_has_half_an_hour_of_its_own(scenario: Scenario) -> None:
    scenario.compute.state.templates.clear()
    scenario.now += LONGEST_OPERATION + SECOND
    scenario.run()
    scenario.compute.state.templates.clear()
    scenario.now += LONGEST_OPERATION
    scenario.run()
    assert tries(scenario) == 2


def test_operation_given_up_for_nothing_costs_nothing(scenario: Scenario) -> None:
    """The template was made, only its operation never ended: what it is for goes on."""
    scenario.now += LONGEST_OPERATION + SECOND
    scenario.compute.operations_finish_at_once = True
    scenario.settle()
    assert [request.instances for request in scenario.requests()] == [(N0,)]


def test_operation_that_nobody_may_read_is_given_up(scenario: Scenario) -> None:
    refusal = ComputeError(ErrorKind.PERMISSION, "forbidden", "", 403)
    for _ in range(POLLS):
        scenario.compute.fail_next(refusal, "get_operation")
        scenario.now += LONGEST_OPERATION / (POLLS - 1)
        scenario.passes.poll_operations()
    assert not scenario.passes.has_operations


def test_operation_given_up_is_said_once(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    scenario.now += LONGEST_OPERATION + SECOND
    for _ in range(POLLS):
        scenario.run()
    said = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert [r.getMessage() for r in said] == [
        "operation does not end, its action will be tried again"
    ]
