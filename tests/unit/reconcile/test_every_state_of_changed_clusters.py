"""Every state of a node whose pool has changed, and of one that the cluster file names no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import InstanceStatus, RequestState
from slurm_hooks.reconcile.actions import InsertRequest, UpdateNode
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from tests.unit.reconcile.every_flag import decided_for_every_set
from tests.unit.reconcile.every_state import (
    A_PERSONS_REASON,
    CHANGING,
    CLUSTER,
    EMPTIED,
    HEALTH_REASONS,
    LEAVES,
    NEW_GENERATION,
    OTHER_DISK,
    Decided,
    Version,
    decided,
    node_states,
    surroundings,
)
from tests.unit.reconcile.test_every_state import (
    FEW_JOBS,
    FEW_VMS,
    RULES,
    leaves_what_a_person_took_out_alone,
    never_undrains,
)

pytestmark = pytest.mark.slow

Rule = Callable[[Decided], bool]
REASONS = ("", A_PERSONS_REASON, NEW_GENERATION, LEAVES, "Not responding", HEALTH_REASONS[2])
BACK = {NodeUpdate.IDLE, NodeUpdate.RESUME, NodeUpdate.UNDRAIN}
SAME_RULES = tuple(rule for rule in RULES if rule is not never_undrains)
RULES_OF_REMOVALS = tuple(
    rule for rule in SAME_RULES if rule is not leaves_what_a_person_took_out_alone
)
"""A removal is a person's order, too, and later than any drain."""


def updates_of(result: Decided) -> set[NodeUpdate]:
    actions = result.of(UpdateNode)
    return {u for action in actions if isinstance(action, UpdateNode) for u in action.updates}


def lifts_only_what_is_over(result: Decided) -> bool:
    """The node is named; and one that is off has no VM of an outdated generation any more."""
    case = result.case
    is_off = case.reason == NEW_GENERATION and case.is_off and case.around.vm is None
    return not BACK & updates_of(result) or case.reason == LEAVES or is_off


def lifts_nothing(result: Decided) -> bool:
    return not BACK & updates_of(result)


def drains_no_node_that_a_job_is_to_start_on(result: Decided) -> bool:
    """Slurm ends the job of an allocated node that is off or wakes when it is drained."""
    state = result.case.state
    works = state.base in (BaseState.ALLOCATED, BaseState.MIXED)
    return NodeUpdate.DRAIN not in updates_of(result) or not (works and state.has(*CHANGING))


def starts_nothing(result: Decided) -> bool:
    return NodeUpdate.POWER_UP not in updates_of(result) and not result.of(InsertRequest)


def is_left_alone_while_drained_by_others(result: Decided) -> bool:
    """What a person, Slurm or a health run keeps from jobs is not powered down to be renewed."""
    case = result.case
    is_theirs = case.state.has(NodeFlag.DRAIN, NodeFlag.FAIL) and case.reason != NEW_GENERATION
    lives = case.around.vm is InstanceStatus.RUNNING and not case.has_power_flag
    if not (is_theirs and lives) or case.state.base is BaseState.DOWN:
        return True
    return NodeUpdate.POWER_DOWN not in updates_of(result)


def broken(results: Iterator[Decided], rules: tuple[Rule, ...], least: int) -> dict[str, Decided]:
    """One example for each rule that does not hold over at least so many cases."""
    found: dict[str, Decided] = {}
    count = moved = 0
    for result in results:
        count += 1
        moved += bool({NodeUpdate.DRAIN, NodeUpdate.POWER_DOWN} & updates_of(result))
        for rule in rules:
            if not rule(result):
                found.setdefault(rule.__name__, result)
    assert count >= least
    assert moved > 100
    return found


def walk(cluster: Cluster, version: Version) -> Iterator[Decided]:
    around = surroundings((None, InstanceStatus.RUNNING), (None,), (None, JobState.RUNNING))
    states = node_states(version, most_power_flags=1, most_side_flags=2)
    return decided(states, around, REASONS, cluster)


def walk_of_power(cluster: Cluster) -> Iterator[Decided]:
    around = surroundings(FEW_VMS, (None, RequestState.ACCEPTED), FEW_JOBS)
    states = node_states(Version.V24_11, most_power_flags=2, most_side_flags=0)
    return decided(states, around, (LEAVES, ""), cluster)


OF_GENERATIONS: tuple[Rule, ...] = (
    *SAME_RULES,
    lifts_only_what_is_over,
    drains_no_node_that_a_job_is_to_start_on,
    is_left_alone_while_drained_by_others,
)
OF_REMOVALS: tuple[Rule, ...] = (
    *RULES_OF_REMOVALS,
    lifts_nothing,
    drains_no_node_that_a_job_is_to_start_on,
    starts_nothing,
)
OF_NO_CHANGE: tuple[Rule, ...] = (*SAME_RULES, drains_no_node_that_a_job_is_to_start_on)

CHANGES = pytest.mark.parametrize(
    ("cluster", "rules"),
    [(OTHER_DISK, OF_GENERATIONS), (EMPTIED, OF_REMOVALS), (CLUSTER, OF_NO_CHANGE)],
    ids=["another generation", "named no more", "as it was again"],
)


@CHANGES
def test_every_power_state_in_its_surroundings(cluster: Cluster, rules: tuple[Rule, ...]) -> None:
    assert broken(walk_of_power(cluster), rules, least=10_000) == {}


@pytest.mark.parametrize(
    "version", [Version.V22_05, pytest.param(Version.LATER, marks=pytest.mark.thorough)]
)
@CHANGES
def test_every_pair_of_flags_with_every_reason(
    cluster: Cluster, rules: tuple[Rule, ...], version: Version
) -> None:
    assert broken(walk(cluster, version), rules, least=100_000) == {}


@pytest.mark.thorough
@CHANGES
def test_every_set_of_flags_with_every_reason(cluster: Cluster, rules: tuple[Rule, ...]) -> None:
    jobs = (None, JobState.CONFIGURING, JobState.RUNNING)
    around = surroundings((None, InstanceStatus.RUNNING), (None,), jobs)
    results = decided_for_every_set(REASONS, around, cluster)
    assert broken(results, rules, least=10_000) == {}
