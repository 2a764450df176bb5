"""A pass by hand: what is proposed, and that no more than that is carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import Instance
from slurm_hooks.compute.ownership import CLUSTER_LABEL
from slurm_hooks.reconcile.actions import DeleteInstance, NoticeKind, UpdateNode
from slurm_hooks.reconcile.by_hand import Fate, Proposal, carry_out, propose
from slurm_hooks.reconcile.sightings import BELIEVED_AFTER
from slurm_hooks.slurm.model import JobState
from tests.fakes.compute_state import ComputeState
from tests.unit.reconcile.builders import CLUSTER, GROUP, N0, vm
from tests.unit.reconcile.scenario import Scenario


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    cluster = replace(CLUSTER, policy=Policy(most_kills_a_pass=2, most_kills_percent=0))
    return Scenario(tmp_path, cluster=cluster)


def orphan(scenario: Scenario, name: str) -> Instance:
    """A VM of ours by its label alone, old enough to be reaped."""
    instance = replace(
        vm(N0),
        name=name,
        instance_id=scenario.compute.state.next_id(),
        group=None,
        labels={CLUSTER_LABEL: "flexvm"},
        creation_time_utc=scenario.now - timedelta(hours=1),
    )
    scenario.compute.state.instances[instance.zone, name] = instance
    return instance


def proposal(
    scenario: Scenario,
    *,
    force_kills: bool = False,
    meanwhile: Callable[[ComputeState], None] = lambda _: None,
) -> Proposal:
    def pause(seconds: float) -> None:
        scenario.now += timedelta(seconds=seconds)
        meanwhile(scenario.compute.state)

    return propose(scenario.passes, force_kills=force_kills, pause=pause)


def test_fresh_process_looks_twice_before_it_proposes_to_reap(scenario: Scenario) -> None:
    orphan(scenario, "stray")
    began = scenario.now
    plan = proposal(scenario).plan
    assert [a.name for a in plan.actions if isinstance(a, DeleteInstance)] == ["stray"]
    assert scenario.now - began == BELIEVED_AFTER


def test_person_is_told_what_is_waited_for(scenario: Scenario) -> None:
    orphan(scenario, "stray")
    said: list[str] = []
    propose(scenario.passes, force_kills=False, tell=said.append, pause=lambda _: None)
    (line,) = said
    assert line.endswith("in 10 s")


def test_what_only_the_first_look_saw_is_not_proposed(scenario: Scenario) -> None:
    orphan(scenario, "stray")
    proposed = proposal(scenario, meanwhile=lambda state: state.vanish("stray"))
    assert proposed.plan.actions == ()


def test_nothing_to_see_twice_is_not_waited_for(scenario: Scenario) -> None:
    pauses: list[float] = []
    assert propose(scenario.passes, force_kills=False, pause=pauses.append).plan.actions == ()
    assert pauses == []


def test_proposing_changes_nothing(scenario: Scenario) -> None:
    scenario.slurm.submit([N0])
    orphan(scenario, "stray")
    before = scenario.picture()
    assert proposal(scenario).plan.actions != ()
    assert scenario.picture() == before


def test_what_was_proposed_is_carried_out(scenario: Scenario) -> None:
    orphan(scenario, "stray")
    results = carry_out(scenario.passes, proposal(scenario))
    assert [result.fate for result in results] == [Fate.STARTED]
    scenario.compute.state.step()
    assert scenario.vm_names() == []


def test_what_came_up_since_the_proposal_is_not_carried_out(scenario: Scenario) -> None:
    orphan(scenario, "stray")
    plan = proposal(scenario)
    scenario.slurm.submit([N0])
    orphan(scenario, "another")
    carry_out(scenario.passes, plan)
    assert scenario.requests() == []
    scenario.compute.state.step()
    assert scenario.vm_names() == ["another"]


def test_what_does_not_hold_any_more_is_left_alone(scenario: Scenario) -> None:
    orphan(scenario, "stray")
    plan = proposal(scenario)
    scenario.compute.state.vanish("stray")
    assert [result.fate for result in carry_out(scenario.passes, plan)] == [Fate.LEFT]


def test_refusal_is_told_with_the_answer(scenario: Scenario) -> None:
    orphan(scenario, "stray")
    plan = proposal(scenario)
    error = ComputeError(ErrorKind.PERMISSION, "forbidden", "grant x", 403)
    scenario.compute.fail_next(error, "delete_instance")
    (result,) = carry_out(scenario.passes, plan)
    assert (result.fate, result.why) == (Fate.REFUSED, "forbidden: grant x")


def test_held_kills_are_proposed_only_by_force_and_then_carried_out(scenario: Scenario) -> None:
    for name in ("one", "two", "three"):
        orphan(scenario, name)
    plan = proposal(scenario).plan
    assert (plan.actions, len(plan.held)) == ((), 3)
    assert NoticeKind.KILLS_HELD in {notice.kind for notice in plan.notices}
    forced = proposal(scenario, force_kills=True)
    assert (len(forced.plan.actions), forced.plan.held) == (3, ())
    carry_out(scenario.passes, forced)
    scenario.compute.state.step()
    assert scenario.vm_names() == []


def test_a_worse_view_than_the_confirmed_one_is_held_again(scenario: Scenario) -> None:
    names = list(scenario.cluster.node_names("a3u"))
    job_id = scenario.slurm.submit(names)
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    scenario.restart()
    scenario.compute.state.hidden.update(names[:3])
    proposed = proposal(scenario, force_kills=True)
    assert len([a for a in proposed.plan.actions if isinstance(a, UpdateNode)]) == 3
    scenario.compute.state.hidden.update(names)
    results = carry_out(scenario.passes, proposed)
    assert {r.fate for r in results if isinstance(r.action, UpdateNode)} == {Fate.LEFT}
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    assert GROUP.reference in scenario.compute.state.groups
