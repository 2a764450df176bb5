"""A pass ends soon whatever does not answer, and nothing waits for ever behind a failure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import RequestReference
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.reconcile.act import Actor
from slurm_hooks.reconcile.actions import DeleteRequest, DeleteTemplate, Plan, TellJob
from slurm_hooks.reconcile.memory import remember
from slurm_hooks.reconcile.observe import poll_operations
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.passes import Passes
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.reconcile.turns import MOST_A_PASS, up_to_silence
from slurm_hooks.slurm.client import SlurmUnavailable
from slurm_hooks.slurm.hostlist import expand
from tests.unit.reconcile.builders import GROUP, NOW, example_cluster
from tests.unit.reconcile.scenario import Scenario

RATE = ComputeError(ErrorKind.RATE, "rateLimitExceeded", "", 429)
TRANSIENT = ComputeError(ErrorKind.TRANSIENT, "backendError", "", 503)
FORBIDDEN = ComputeError(ErrorKind.PERMISSION, "forbidden", "", 403)
MANY = 30


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path, example_cluster())


def actor(scenario: Scenario) -> Actor:
    calls = CallsDirectory(scenario.spool, expand)
    consoles = ConsolesDirectory(scenario.spool / "consoles")
    return Actor(scenario.slurm, scenario.compute, calls, consoles)


def deletion(number: int) -> DeleteRequest:
    return DeleteRequest(RequestReference(GROUP.reference, f"request-{number}"))


def fail_always(scenario: Scenario, error: ComputeError, method: str) -> None:
    for _ in range(10 * MANY):
        scenario.compute.fail_next(error, method)


@pytest.mark.parametrize("error", [RATE, TRANSIENT])
def test_service_that_does_not_serve_is_asked_once_a_pass(
    scenario: Scenario, error: ComputeError
) -> None:
    fail_always(scenario, error, "delete_resize_request")
    plan = Plan(actions=(*map(deletion, range(MANY)), DeleteTemplate("old")))
    outcomes = actor(scenario).act(plan, Memory())
    assert [outcome.error for outcome in outcomes] == [error]
    assert len(scenario.compute.calls) == 1


def test_refusal_stops_no_other_call(scenario: Scenario) -> None:
    fail_always(scenario, FORBIDDEN, "delete_resize_request")
    outcomes = actor(scenario).act(Plan(actions=tuple(map(deletion, range(MANY)))), Memory())
    assert len(outcomes) == MANY


def test_jobs_hear_of_a_service_that_does_not_serve(scenario: Scenario) -> None:
    scenario.compute.fail_next(TRANSIENT)
    job_id = scenario.slurm.submit(["flexvm-a3u-0"])
    plan = Plan(actions=(deletion(0), deletion(1), TellJob(job_id, None)))
    actor(scenario).act(plan, Memory())
    assert [c.job_id for c in scenario.slurm.calls if c.method == "set_admin_comment"] == [job_id]


def test_jobs_of_a_slurmctld_that_hangs_cost_one_call_a_pass(scenario: Scenario) -> None:
    scenario.slurm.calls.clear()
    for _ in range(MANY):
        scenario.slurm.fail_next(SlurmUnavailable("no answer"))
    plan = Plan(actions=tuple(TellJob(n, None) for n in range(MANY)))
    actor(scenario).act(plan, Memory())
    assert len(scenario.slurm.calls) == 1


def test_what_never_gets_an_answer_keeps_nothing_else_from_its_turn(scenario: Scenario) -> None:
    """The first deletion fails in each pass, and all others get theirs."""
    actions = tuple(map(deletion, range(3)))
    plan, memory = Plan(actions=(*actions, DeleteTemplate("old"))), Memory()
    scenario.compute.fail_next(TRANSIENT)
    for outcomes_expected in (1, 4):
        outcomes = actor(scenario).act(plan, memory)
        memory = remember(memory, plan, outcomes, NOW)
        assert len(outcomes) == outcomes_expected
    assert outcomes[-1].action == actions[0]


def test_two_that_never_get_an_answer_take_turns(scenario: Scenario) -> None:
    plan, memory = Plan(actions=(deletion(0), deletion(1))), Memory()
    fail_always(scenario, TRANSIENT, "delete_resize_request")
    tried = []
    for _ in range(4):
        outcomes = actor(scenario).act(plan, memory)
        memory = remember(memory, plan, outcomes, NOW)
        tried += [outcome.action for outcome in outcomes]
    assert tried == [deletion(0), deletion(1)] * 2


def test_action_that_is_not_wanted_any_more_is_forgotten() -> None:
    memory = Memory(in_vain=(deletion(0).subject, deletion(1).subject))
    later = remember(memory, Plan(actions=(deletion(1),)), (), NOW)
    assert later.in_vain == (deletion(1).subject,)


def test_finished_requests_are_removed_so_many_a_pass(scenario: Scenario) -> None:
    most = MOST_A_PASS[DeleteRequest]
    plan = Plan(actions=tuple(map(deletion, range(most + 5))))
    assert len(actor(scenario).act(plan, Memory())) == most


def test_operations_are_not_read_on_where_the_service_does_not_answer(scenario: Scenario) -> None:
    scenario.compute.operations_finish_at_once = False
    scenario.slurm.submit(["flexvm-a3u-0"])
    scenario.run()
    (operation,) = scenario.compute.state.operations.values()
    in_flight = {str(n): replace(operation, name=f"operation-{n}") for n in range(MANY)}
    fail_always(scenario, RATE, "get_operation")
    scenario.compute.calls.clear()
    memory = Memory(in_flight=in_flight)
    assert poll_operations(scenario.compute, memory, NOW).in_flight == in_flight
    assert len(scenario.compute.calls) == 1


def test_service_manager_hears_of_us_after_each_call(scenario: Scenario, tmp_path: Path) -> None:
    signs: list[int] = []
    calls = CallsDirectory(scenario.spool, expand)
    consoles = ConsolesDirectory(tmp_path / "consoles")
    signing = Actor(
        scenario.slurm,
        scenario.compute,
        calls,
        consoles,
        lambda: signs.append(len(scenario.compute.calls)),
    )
    signing.act(Plan(actions=tuple(map(deletion, range(3)))), Memory())
    assert signs[:3] == [1, 2, 3]


def test_service_manager_hears_of_us_before_and_after_a_long_read(scenario: Scenario) -> None:
    signs: list[int] = []
    passes = Passes(
        scenario.cluster,
        scenario.slurm,
        scenario.compute,
        CallsDirectory(scenario.spool, expand),
        ConsolesDirectory(scenario.spool / "consoles"),
        lambda: scenario.now,
        alive=lambda: signs.append(len(scenario.compute.calls_of("read"))),
    )
    passes.run()
    assert signs[:2] == [0, 1]


def test_calls_after_silence_are_not_made() -> None:
    made: list[int] = []

    def calls() -> Iterator[tuple[Outcome, ...]]:
        for number in range(3):
            made.append(number)
            yield (Outcome(deletion(number), unanswered=number == 1),)

    assert len(list(up_to_silence(calls()))) == 2
    assert made == [0, 1]
