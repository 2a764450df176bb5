"""What Slurm refuses for long is said once, and asked for less and less often."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.reconcile.actions import (
    ClearReason,
    Expectation,
    Plan,
    ReasonCode,
    TellJob,
    UpdateNode,
)
from slurm_hooks.reconcile.conditions import Conditions
from slurm_hooks.reconcile.memory import remember
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.pace import Pace
from slurm_hooks.reconcile.refusals import LONGEST_PAUSE, stands
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.client import NodeUpdate, SlurmError, SlurmRefused, SlurmUnavailable
from slurm_hooks.slurm.model import BaseState, NodeFlag
from tests.fakes.slurm import Call
from tests.unit.reconcile.builders import N0, N1, NOW, example_cluster
from tests.unit.reconcile.life import Life

SECOND = timedelta(seconds=1)
MINUTES = 10
NO = SlurmRefused("Invalid node state specified")


@pytest.fixture
def life(tmp_path: Path) -> Life:
    """A static node is up and has a reason of ours, from before."""
    life = Life(tmp_path, example_cluster(min_node_count=1))
    life.rest()
    life.grant_all()
    life.rest()
    life.slurm.set_state(N0, BaseState.IDLE, NodeFlag.CLOUD, reason="slurm-hooks: VM gone")
    return life


def refuse(life: Life, method: str, error: SlurmError, minutes: int) -> list[Call]:
    """A pass each second, all refused; the calls that were made."""
    life.slurm.calls.clear()
    for _ in range(minutes * 60):
        life.slurm.fail_at(method, error)
        life.advance(SECOND)
        life.run()
    life.slurm.forget_faults()
    return [call for call in life.slurm.calls if call.method == method]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_reason_that_slurm_does_not_let_go_is_said_once_and_tried_ever_less_often(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    calls = refuse(life, "update_nodes", NO, MINUTES)
    assert MINUTES <= len(calls) <= MINUTES + 6
    assert len(warnings(caplog)) == 1
    assert life.slurm.nodes[N0].reason


def test_reason_is_cleared_within_a_minute_once_slurm_lets_it(life: Life) -> None:
    refuse(life, "update_nodes", NO, MINUTES)
    for _ in range(LONGEST_PAUSE // SECOND + 1):
        life.advance(SECOND)
        life.run()
    assert not life.slurm.nodes[N0].reason


def test_node_update_that_slurm_refuses_is_said_once_and_tried_ever_less_often(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    life.slurm.set_state(
        N1, BaseState.DOWN, NodeFlag.CLOUD, NodeFlag.POWERED_DOWN, reason="ResumeTimeout reached"
    )
    calls = [c for c in refuse(life, "update_nodes", NO, MINUTES) if c.names == (N1,)]
    assert MINUTES <= len(calls) <= MINUTES + 6
    assert {call.update for call in calls} == {NodeUpdate.POWER_DOWN}
    assert len(warnings(caplog)) == 1


def test_end_of_a_refusal_is_said(life: Life, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="slurm-hooksd")
    refuse(life, "update_nodes", NO, 1)
    for _ in range(2):
        life.advance(LONGEST_PAUSE)
        life.run()
    assert [r.getMessage() for r in caplog.records].count("condition over") == 1


def test_passes_over_a_refusal_come_no_more_often_than_when_all_is_well(life: Life) -> None:
    pace, delays = Pace(), []
    for _ in range(10):
        life.slurm.fail_at("update_nodes", NO)
        plan = life.run()
        delays.append(pace.delay_after(plan, 10, in_vain=life.passes.acted_in_vain))
        life.advance(delays[-1] * SECOND)
    assert delays[-5:] == [10] * 5


def test_slurmctld_that_never_answers_makes_passes_rare_too(life: Life) -> None:
    pace, delays = Pace(), []
    for _ in range(10):
        life.slurm.fail_at("update_nodes", SlurmUnavailable("no answer"))
        delays.append(pace.delay_after(life.run(), 10, in_vain=life.passes.acted_in_vain))
    assert delays[-5:] == [10] * 5


def test_action_that_was_done_is_looked_after_at_once(life: Life) -> None:
    pace = Pace()
    for _ in range(6):
        life.slurm.fail_at("update_nodes", SlurmUnavailable("no answer"))
        pace.delay_after(life.run(), 10, in_vain=life.passes.acted_in_vain)
    assert pace.delay_after(life.run(), 10, in_vain=life.passes.acted_in_vain) == 1


def test_first_unsettled_pass_after_a_calm_one_is_followed_soon() -> None:
    pace = Pace()
    assert pace.delay_after(Plan(), 300, in_vain=True) == 300
    assert pace.delay_after(Plan(unsettled=True), 300, in_vain=True) == 1


def refused(action: UpdateNode | ClearReason | TellJob, memory: Memory | None = None) -> Memory:
    plan = Plan(actions=(action,))
    return remember(memory or Memory(), plan, [Outcome(action, note="no")], NOW)


def test_refusal_stands_for_twice_as_long_each_time_up_to_a_minute() -> None:
    memory, pauses = Memory(), []
    for _ in range(8):
        memory = refused(ClearReason(N0), memory)
        pauses.append((memory.refusals[ClearReason(N0).subject].until_utc - NOW) // SECOND)
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 60]


def test_refusal_stands_only_against_the_very_same_change() -> None:
    lost = UpdateNode(N0, (NodeUpdate.DOWN,), Expectation.REGISTERED, ReasonCode.VM_GONE)
    memory = refused(lost)
    assert stands(memory, lost, NOW)
    assert not stands(memory, replace(lost, updates=(NodeUpdate.POWER_DOWN,)), NOW)
    assert not stands(memory, ClearReason(N0), NOW)


def test_refusal_of_what_is_not_wanted_any_more_is_forgotten() -> None:
    memory = refused(ClearReason(N0))
    later = remember(memory, Plan(), (), NOW + LONGEST_PAUSE)
    assert not later.refusals


def test_refusal_about_a_job_is_no_condition(caplog: pytest.LogCaptureFixture) -> None:
    """It may have ended meanwhile."""
    tell = TellJob(1, None)
    Conditions().report(Plan(actions=(tell,)), [Outcome(tell, note="Invalid job id specified")])
    assert warnings(caplog) == []


def test_many_nodes_of_one_change_are_one_condition(caplog: pytest.LogCaptureFixture) -> None:
    clears = [ClearReason(N0), ClearReason(N1)]
    Conditions().report(Plan(actions=tuple(clears)), [Outcome(c, note="no") for c in clears])
    (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert record.__dict__["fields"]["subject"] == "clear reasons"
