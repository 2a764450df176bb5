"""How a plan is carried out: in which order, over a world that has moved on, past refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks.compute.batches import MOST_PER_CALL
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.reconcile.act import Actor
from slurm_hooks.reconcile.actions import (
    CancelRequest,
    DeleteInstance,
    InsertGroup,
    Plan,
    TellJob,
    UpdateNode,
)
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.client import SlurmRefused, SlurmUnavailable
from slurm_hooks.slurm.hostlist import expand
from tests.fakes.compute import FakeCompute
from tests.fakes.slurm import FakeSlurm
from tests.unit.reconcile.builders import GROUP, N0, N1
from tests.unit.reconcile.scenario import Scenario


@pytest.fixture
def journal() -> list[Any]:
    """The calls to both systems, in the order in which they came."""
    return []


@pytest.fixture
def scenario(tmp_path: Path, journal: list[Any]) -> Scenario:
    slurm = FakeSlurm()
    slurm.calls = journal
    return Scenario(tmp_path, slurm=slurm, compute=FakeCompute(calls=journal))


def act(scenario: Scenario, plan: Plan, memory: Memory | None = None) -> tuple[Outcome, ...]:
    calls = CallsDirectory(scenario.spool, expand)
    consoles = ConsolesDirectory(scenario.spool / "consoles")
    return Actor(scenario.slurm, scenario.compute, calls, consoles).act(plan, memory or Memory())


def plan_of_a_cancelled_job(scenario: Scenario) -> Plan:
    """The request and the nodes of a job that was cancelled while it waited are to go."""
    job_id = scenario.slurm.submit([N0, N1])
    scenario.settle()
    scenario.slurm.cancel(job_id)
    plan = scenario.passes.plan()
    assert {CancelRequest, UpdateNode} <= {type(action) for action in plan.actions}
    return plan


def methods(journal: list[Any]) -> list[str]:
    return [call.method for call in journal]


def test_request_is_given_up_before_its_nodes_look_free(
    scenario: Scenario, journal: list[Any]
) -> None:
    plan = plan_of_a_cancelled_job(scenario)
    journal.clear()
    act(scenario, plan)
    assert methods(journal) == ["cancel_resize_request", "read_nodes", "update_nodes"]


def test_node_that_a_job_took_meanwhile_is_left_alone(
    scenario: Scenario, journal: list[Any]
) -> None:
    plan = plan_of_a_cancelled_job(scenario)
    scenario.slurm.allocate(scenario.slurm.queue(), [N0], wake=False)
    journal.clear()
    outcomes = act(scenario, plan)
    (update,) = [call for call in journal if call.method == "update_nodes"]
    assert update.names == (N1,)
    assert [o.action.node for o in outcomes if isinstance(o.action, UpdateNode)] == [N1]


def test_slurm_that_does_not_answer_is_not_asked_again_in_the_pass(
    scenario: Scenario, journal: list[Any]
) -> None:
    plan = plan_of_a_cancelled_job(scenario)
    journal.clear()
    scenario.slurm.fail_next(SlurmUnavailable("no answer"))
    act(scenario, replace(plan, actions=(TellJob(1, None), *plan.actions)))
    assert methods(journal) == ["cancel_resize_request", "set_admin_comment"]


def test_job_that_slurm_refuses_to_tell_stops_nothing_else(
    scenario: Scenario, journal: list[Any]
) -> None:
    plan = plan_of_a_cancelled_job(scenario)
    journal.clear()
    scenario.slurm.fail_next(SlurmRefused("no such job"))
    act(scenario, replace(plan, actions=(TellJob(1, None), *plan.actions)))
    assert methods(journal)[-1] == "update_nodes"


def test_nodes_that_cannot_be_read_again_are_not_changed(
    scenario: Scenario, journal: list[Any]
) -> None:
    plan = plan_of_a_cancelled_job(scenario)
    journal.clear()
    scenario.slurm.fail_next(SlurmUnavailable("no answer"))
    act(scenario, plan)
    assert methods(journal) == ["cancel_resize_request", "read_nodes"]


def test_template_that_is_there_already_leads_to_the_group(scenario: Scenario) -> None:
    scenario.slurm.submit([N0])
    plan = scenario.passes.plan()
    (action,) = [action for action in plan.actions if isinstance(action, InsertGroup)]
    act(scenario, Plan(actions=(action,)))
    assert scenario.compute.state.groups == {}
    act(scenario, Plan(actions=(action,)), Memory(attempts={action.subject: 1}))
    assert list(scenario.compute.state.groups) == [GROUP.reference]


def test_refused_template_is_the_answer_for_the_group(scenario: Scenario) -> None:
    scenario.slurm.submit([N0])
    error = ComputeError(ErrorKind.PERMISSION, "forbidden", "", 403)
    scenario.compute.fail_next(error, "insert_template")
    outcomes = act(scenario, scenario.passes.plan())
    assert error in [outcome.error for outcome in outcomes]
    assert scenario.compute.calls_of("insert_group") == []


def test_many_deletions_go_in_calls_that_the_service_takes(scenario: Scenario) -> None:
    count = MOST_PER_CALL + 1
    deletions = tuple(
        DeleteInstance(GROUP.reference, f"flexvm-a3u-{n}", "us-central1-a", str(n))
        for n in range(count)
    )
    gone = ComputeError(ErrorKind.GONE, "notFound", "", 404)
    for _ in range(2):
        scenario.compute.fail_next(gone, "delete_instances")
    outcomes = act(scenario, Plan(actions=deletions))
    assert len(scenario.compute.calls_of("delete_instances")) == 2
    assert [outcome.error for outcome in outcomes] == [gone] * count
