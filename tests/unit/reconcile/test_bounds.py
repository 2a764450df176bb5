"""A pass is bounded in calls and in time, whatever it has to do, and what is left gets its turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import (
    GroupSpecification,
    Operation,
    RequestReference,
    RequestSpecification,
    Scope,
    ScopeKind,
)
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.reconcile.act import Actor
from slurm_hooks.reconcile.act_deletions import MOST_CALLS_A_PASS
from slurm_hooks.reconcile.act_nodes import MOST_BATCHES_A_PASS
from slurm_hooks.reconcile.actions import (
    Action,
    CancelRequest,
    ClearReason,
    CreateReservation,
    DeleteGroup,
    DeleteInstance,
    DeleteRequest,
    DeleteReservation,
    DeleteTemplate,
    Expectation,
    ForgetCall,
    InsertGroup,
    InsertRequest,
    JobStatus,
    KeepConsole,
    KeepPoolRecord,
    Plan,
    ReasonCode,
    SetNodeAddress,
    SetReason,
    TellJob,
    UpdateNode,
    WaitKind,
    WarnJob,
)
from slurm_hooks.reconcile.memory import remember
from slurm_hooks.reconcile.observe import poll_operations
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.pool_record import PoolRecord, hold_phrase
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.reconcile.specifications import template_of, with_ordinal
from slurm_hooks.reconcile.turns import MOST_A_PASS, SECONDS_A_PASS
from slurm_hooks.slurm.client import NodeUpdate, SlurmRefused
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.model import BaseState, NodeFlag
from tests.fakes.compute import FakeCompute
from tests.fakes.slurm import FakeSlurm
from tests.unit.reconcile.builders import CLUSTER, GROUP, NOW, example_cluster
from tests.unit.reconcile.scenario import Scenario

UNIT = Path(__file__).resolve().parents[3] / "packaging" / "slurm-hooksd.service"
POOL = CLUSTER.pools["a3u"]
ZONE = "us-central1-a"
SECONDS_A_CALL = 9.0
READING_CALLS = 25
"""Four commands of Slurm, and the pages of 10,000 VMs with their groups and requests."""
IN_CALLS_FOR_MANY = {DeleteInstance, UpdateNode, ClearReason, SetReason, SetNodeAddress}
CONFLICT = ComputeError(ErrorKind.CONFLICT, "conditionNotMet", "", 412)


def node(number: int) -> str:
    return f"flexvm-a3u-{number}"


def reference(number: int) -> RequestReference:
    return RequestReference(GROUP.reference, f"job-{number}-0-abcdef-0")


def insertion(number: int, job_id: int | None = None) -> InsertRequest:
    return InsertRequest(RequestSpecification(reference(number), (node(number),), ""), job_id)


def group_insertion(number: int) -> InsertGroup:
    group: GroupSpecification = with_ordinal(GROUP, number + 1)
    return InsertGroup(POOL, template_of(CLUSTER, POOL), Scope(ScopeKind.GLOBAL, ""), group)


def failed_start(number: int) -> UpdateNode:
    """Each with a reason of its own, so that none shares a command with another."""
    return UpdateNode(
        node(number),
        (NodeUpdate.POWER_DOWN_FORCE,),
        Expectation.STARTING,
        ReasonCode.REQUEST_FAILED,
        code=f"CODE_{number}",
    )


MAKERS: dict[type[Action], Callable[[int], Action]] = {
    CancelRequest: lambda n: CancelRequest(reference(n), n),
    InsertGroup: group_insertion,
    InsertRequest: insertion,
    DeleteRequest: lambda n: DeleteRequest(reference(n)),
    KeepConsole: lambda n: KeepConsole(node(n), ZONE, str(n)),
    DeleteInstance: lambda n: DeleteInstance(None, node(n), ZONE, str(n)),
    DeleteGroup: lambda n: DeleteGroup(with_ordinal(GROUP, n + 1).reference),
    DeleteTemplate: lambda n: DeleteTemplate(f"flexvm-a3u-{n}"),
    TellJob: lambda n: TellJob(n, None),
    WarnJob: lambda n: WarnJob(n, 0, node(n), NOW, "USR1", keeps_comment=False),
    KeepPoolRecord: lambda n: KeepPoolRecord(f"pool{n}", node(n), None, frozenset()),
    UpdateNode: failed_start,
    CreateReservation: lambda n: CreateReservation(f"slurm-hooks-eol-{n}", (node(n),), NOW),
    DeleteReservation: lambda n: DeleteReservation(f"slurm-hooks-eol-{n}"),
}
MOST: dict[type[Action], int] = {
    **MOST_A_PASS,
    DeleteInstance: MOST_CALLS_A_PASS,
    UpdateNode: MOST_BATCHES_A_PASS,
}
MANY = 2 * max(MOST.values())
NAMES = [node(number) for number in range(MANY)]


@dataclass
class Slow:
    """A client whose calls are counted and take their time by a clock of the test's."""

    client: object
    clock: Clock

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.client, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.clock.calls[name] += 1
            self.clock.seconds += self.clock.seconds_a_call
            return method(*arguments, **named)

        return call


@dataclass
class Clock:
    """Moves with the calls alone."""

    seconds_a_call: float = 0.0
    seconds: float = 0.0
    calls: Counter[str] = field(default_factory=Counter)

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """All nodes are on their way up, so that their start may fail."""
    scenario = Scenario(tmp_path, example_cluster(max_node_count=MANY))
    flags = (NodeFlag.CLOUD, NodeFlag.POWERING_UP)
    for name in NAMES:
        scenario.slurm.set_state(name, BaseState.ALLOCATED, *flags)
    return scenario


def act(scenario: Scenario, plan: Plan, memory: Memory, clock: Clock) -> tuple[Outcome, ...]:
    actor = Actor(
        cast(FakeSlurm, Slow(scenario.slurm, clock)),
        cast(FakeCompute, Slow(scenario.compute, clock)),
        CallsDirectory(scenario.spool, expand),
        ConsolesDirectory(scenario.spool / "consoles"),
        clock=clock,
    )
    return actor.act(plan, memory)


def plan_of(*kinds: type[Action], count: int = MANY) -> Plan:
    return Plan(actions=tuple(MAKERS[kind](n) for kind in kinds for n in range(count)))


@pytest.mark.parametrize("kind", get_args(Action))
def test_every_kind_of_action_that_costs_a_call_has_its_number(kind: type[Action]) -> None:
    assert kind in MOST_A_PASS or kind in IN_CALLS_FOR_MANY or kind is ForgetCall


@pytest.mark.parametrize("kind", MAKERS)
def test_pass_makes_a_bounded_number_of_calls_for_each_kind(
    scenario: Scenario, kind: type[Action]
) -> None:
    clock = Clock()
    outcomes = act(scenario, plan_of(kind), Memory(), clock)
    assert len(outcomes) == MOST[kind]
    assert clock.calls.total() <= 2 * MOST[kind] + 1


@pytest.mark.parametrize("kind", MAKERS)
def test_what_a_pass_leaves_gets_its_turn_though_all_is_in_vain(
    scenario: Scenario, kind: type[Action]
) -> None:
    """Nothing is ever done, so the plan stays the same: whoever comes first must not stay first."""
    plan, memory, tried = plan_of(kind), Memory(), set()
    for number in range(-(-MANY // MOST[kind])):
        outcomes = act(scenario, plan, memory, Clock())
        tried |= {outcome.action for outcome in outcomes}
        now = NOW + timedelta(minutes=number)
        memory = remember(memory, plan, [Outcome(o.action, error=CONFLICT) for o in outcomes], now)
    assert tried == set(plan.actions)


def test_requests_of_one_job_are_made_in_one_pass(scenario: Scenario) -> None:
    most = MOST_A_PASS[InsertRequest]
    others = [insertion(number, 1000 + number) for number in range(most - 1)]
    gang = [insertion(most + number, 1) for number in range(3)]
    plan = Plan(actions=(*others, *gang, insertion(most + 5, 2)))
    outcomes = act(scenario, plan, Memory(), Clock())
    assert [outcome.action for outcome in outcomes] == [*others, *gang]


def test_kind_that_has_used_up_its_time_leaves_the_rest_and_others_their_turn(
    scenario: Scenario,
) -> None:
    clock = Clock(SECONDS_A_CALL)
    outcomes = act(scenario, plan_of(*MAKERS), Memory(), clock)
    made = Counter(type(outcome.action) for outcome in outcomes)
    assert made.keys() >= MAKERS.keys() - {InsertRequest, DeleteReservation}
    assert made[CancelRequest] < MOST[CancelRequest]


def test_pass_whose_calls_take_nine_seconds_each_ends_before_the_watchdog_bites(
    scenario: Scenario,
) -> None:
    clock = Clock(SECONDS_A_CALL)
    scope = Scope(ScopeKind.ZONE, ZONE)
    in_flight = {str(n): Operation(f"operation-{n}", scope) for n in range(MANY)}
    compute = cast(FakeCompute, Slow(scenario.compute, clock))
    poll_operations(compute, Memory(in_flight=in_flight), NOW, clock)
    act(scenario, plan_of(*MAKERS), Memory(), clock)
    assert clock.seconds + READING_CALLS * SECONDS_A_CALL < watchdog_seconds()


def watchdog_seconds() -> float:
    found = re.search(r"^WatchdogSec=([0-9]+)min$", UNIT.read_text(), re.MULTILINE)
    assert found is not None
    return 60.0 * int(found[1])


def told_of_failure(job_id: int) -> TellJob:
    return TellJob(job_id, JobStatus(WaitKind.FAILED, 1, "a3-ultragpu-8g", ZONE, code="FORBIDDEN"))


def test_nodes_of_a_job_that_was_not_told_yet_of_its_failure_wait_for_the_next_pass(
    scenario: Scenario,
) -> None:
    """A job that has lost its nodes takes no comment."""
    most = MOST_A_PASS[TellJob]
    jobs = range(1, most + 6)
    updates = [start_failed_of(job_id) for job_id in jobs]
    plan = Plan(actions=(*map(told_of_failure, jobs), *updates))
    outcomes = act(scenario, plan, Memory(), Clock())
    changed = [o.action.told_job for o in outcomes if isinstance(o.action, UpdateNode)]
    assert changed == list(jobs)[:most]


def start_failed_of(job_id: int) -> UpdateNode:
    return UpdateNode(
        node(job_id),
        (NodeUpdate.POWER_DOWN_FORCE,),
        Expectation.STARTING,
        ReasonCode.REQUEST_FAILED,
        told_job=job_id,
    )


def test_a_hold_whose_drains_are_left_for_the_next_pass_is_not_in_its_record_yet(
    scenario: Scenario,
) -> None:
    """Once it is in the record, only nodes that fail after that are drained."""
    holds = [PoolRecord(3, NOW, 1, NOW + timedelta(minutes=n), "QUOTA") for n in range(3)]
    for number in range(len(holds)):
        scenario.slurm.set_state(
            node(number), BaseState.IDLE, NodeFlag.CLOUD, NodeFlag.POWERED_DOWN
        )
    drains = [drain_of_hold(number, record) for number, record in enumerate(holds)]
    records = [
        KeepPoolRecord(f"pool{number}", node(10 + number), record, frozenset())
        for number, record in enumerate(holds)
    ]
    slow = Clock(0.7 * SECONDS_A_PASS[UpdateNode])
    outcomes = act(scenario, Plan(actions=(*drains, *reversed(records))), Memory(), slow)
    assert [outcome.action for outcome in outcomes] == [drains[0], records[0]]


def drain_of_hold(number: int, record: PoolRecord) -> UpdateNode:
    return UpdateNode(
        node(number),
        (NodeUpdate.DRAIN,),
        Expectation.FREE_AND_OFF,
        ReasonCode.POOL_HELD,
        code=hold_phrase(record),
        detail=record.cause,
    )


def test_one_node_that_slurm_refuses_keeps_no_other_from_its_change(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command is refused for one of its nodes, at the first, second, third try."""
    bad = node(MANY // 2)
    update = scenario.slurm.update_nodes

    def refuse_bad(names: Any, state: Any, reason: Any = None) -> None:
        if bad in names:
            raise SlurmRefused("Invalid node state specified")
        update(names, state, reason)

    monkeypatch.setattr(scenario.slurm, "update_nodes", refuse_bad)
    actions = tuple(start_failed_of(number) for number in range(MANY))
    memory, left = Memory(), actions
    for minute in range(5):
        plan = Plan(actions=left)
        outcomes = act(scenario, plan, memory, Clock())
        memory = remember(memory, plan, outcomes, NOW + timedelta(minutes=minute))
        done = {outcome.action for outcome in outcomes if outcome.is_done}
        left = tuple(action for action in left if action not in done)
    assert [action.node for action in left] == [bad]
