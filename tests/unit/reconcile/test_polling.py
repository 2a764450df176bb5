"""Operations are read again by their age: young ones often, old ones every ten seconds."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import Operation, Scope, ScopeKind
from slurm_hooks.reconcile.memory import due_for_poll
from slurm_hooks.reconcile.observe import MOST_POLLED, poll_operations
from slurm_hooks.reconcile.snapshot import Memory
from tests.fakes.compute import FakeCompute
from tests.unit.reconcile.builders import N0, NOW
from tests.unit.reconcile.scenario import Scenario

SECOND = timedelta(seconds=1)
SCOPE = Scope(ScopeKind.ZONE, "us-central1-a")


def operations(count: int) -> Memory:
    names = [f"operation-{number}" for number in range(count)]
    return Memory(
        in_flight={name: Operation(name, SCOPE) for name in names},
        started_utc=dict.fromkeys(names, NOW),
    )


@pytest.fixture
def compute() -> FakeCompute:
    """Its operations never end."""
    compute = FakeCompute()
    compute.state.operations = dict(operations(2 * MOST_POLLED).in_flight)
    return compute


def polls(compute: FakeCompute, memory: Memory, first: int, last: int) -> int:
    """How many reads a poll each second makes from one age to another."""
    before = len(compute.calls_of("get_operation"))
    for age in range(first, last):
        memory = poll_operations(compute, memory, NOW + age * SECOND)
    return len(compute.calls_of("get_operation")) - before


def test_young_operation_is_read_each_second(compute: FakeCompute) -> None:
    assert polls(compute, operations(1), 0, 6) == 6


def test_operation_of_a_minute_and_more_is_read_every_ten_seconds(compute: FakeCompute) -> None:
    assert polls(compute, operations(1), 60, 660) == 60


def test_first_minute_costs_few_reads(compute: FakeCompute) -> None:
    assert polls(compute, operations(1), 0, 60) < 25


def test_end_of_an_operation_is_seen_within_a_sixth_of_its_age(compute: FakeCompute) -> None:
    memory = operations(1)
    for age in range(20):
        memory = poll_operations(compute, memory, NOW + age * SECOND)
    compute.state.finish_operations()
    for age in range(20, 25):
        memory = poll_operations(compute, memory, NOW + age * SECOND)
    assert not memory.in_flight


def test_operation_that_was_not_read_for_longest_is_read_first(compute: FakeCompute) -> None:
    memory = operations(MOST_POLLED + 1)
    memory = poll_operations(compute, memory, NOW)
    assert due_for_poll(memory, NOW)[0] == f"operation-{MOST_POLLED}"


def test_many_operations_are_all_read_though_a_poll_reads_only_so_many(
    compute: FakeCompute,
) -> None:
    memory = operations(2 * MOST_POLLED)
    for age in range(2):
        memory = poll_operations(compute, memory, NOW + age * SECOND)
    read = {call.subject for call in compute.calls_of("get_operation")}
    assert len(compute.calls_of("get_operation")) == 2 * MOST_POLLED
    assert len(read) == 2 * MOST_POLLED


def test_operation_that_nobody_may_read_is_not_read_more_often(compute: FakeCompute) -> None:
    for _ in range(100):
        compute.fail_next(ComputeError(ErrorKind.PERMISSION, "forbidden", "", 403))
    assert polls(compute, operations(1), 60, 160) == 10


def test_next_operation_of_a_subject_is_young_again(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path)
    scenario.compute.operations_finish_at_once = False
    scenario.slurm.submit([N0])
    scenario.run()
    scenario.now += timedelta(minutes=5)
    scenario.passes.poll_operations()
    scenario.compute.state.finish_operations()
    scenario.now += timedelta(seconds=10)
    scenario.run()
    before = len(scenario.compute.calls_of("get_operation"))
    scenario.now += SECOND
    scenario.passes.poll_operations()
    assert len(scenario.compute.calls_of("get_operation")) == before + 1
