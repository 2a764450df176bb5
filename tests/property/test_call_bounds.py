"""Whatever a plan holds, a pass makes no more calls than the numbers of its kinds allow."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_hooks.reconcile import act_deletions, act_nodes
from slurm_hooks.reconcile.actions import Action, Plan
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.reconcile.turns import MOST_A_PASS
from tests.unit.reconcile.builders import example_cluster
from tests.unit.reconcile.scenario import Scenario
from tests.unit.reconcile.test_bounds import MAKERS, Clock, act

MOST_CALLS_AN_ACTION = 3
"""A group is preceded by its template and its policy, each of which may exist already."""
READS_OF_NODES = 2
MOST_OF_A_KIND = 8

amounts = st.dictionaries(st.sampled_from(list(MAKERS)), st.integers(1, MOST_OF_A_KIND))
tried_before = st.sets(st.tuples(st.sampled_from(list(MAKERS)), st.integers(0, MOST_OF_A_KIND)))


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(amounts=amounts, most=st.integers(1, 3), tried=tried_before)
def test_pass_makes_no_more_calls_than_its_kinds_may(
    monkeypatch: pytest.MonkeyPatch,
    amounts: dict[type[Action], int],
    most: int,
    tried: set[tuple[type[Action], int]],
) -> None:
    for kind in MOST_A_PASS:
        monkeypatch.setitem(MOST_A_PASS, kind, most)
    monkeypatch.setattr(act_deletions, "MOST_CALLS_A_PASS", most)
    monkeypatch.setattr(act_nodes, "MOST_BATCHES_A_PASS", most)
    plan = Plan(
        actions=tuple(MAKERS[kind](n) for kind, count in amounts.items() for n in range(count))
    )
    memory = Memory(in_vain=tuple(MAKERS[kind](n).subject for kind, n in tried))
    with tempfile.TemporaryDirectory() as spool:
        scenario = Scenario(Path(spool), example_cluster())
        clock = Clock()
        outcomes = act(scenario, plan, memory, clock)
    carried_out = Counter(type(outcome.action) for outcome in outcomes)
    assert all(count <= most for count in carried_out.values())
    assert clock.calls.total() <= MOST_CALLS_AN_ACTION * most * len(amounts) + READS_OF_NODES
