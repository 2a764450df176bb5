"""What one pass hands on to the next."""

from datetime import timedelta

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import ErrorDetail, Operation, Scope, ScopeKind
from slurm_hooks.reconcile.actions import ForgetCall, Plan
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.memory import Reading, remember, settle
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.sightings import Sightings
from slurm_hooks.reconcile.snapshot import Memory, Snapshot, System, Unavailable
from slurm_hooks.slurm.model import SlurmSnapshot
from tests.unit.reconcile.builders import CLUSTER, N0, NOW

ZONE = Scope(ScopeKind.ZONE, "us-central1-a")
RUNNING = Operation("o", ZONE)
DONE = Operation("o", ZONE, done=True)
FAILED = Operation("o", ZONE, error=ErrorDetail("QUOTA_EXCEEDED", "GPUS"))
ACTION = ForgetCall("x")


def in_flight() -> Memory:
    return Memory(in_flight={"s": RUNNING})


def test_running_operation_stays_in_flight() -> None:
    assert settle(in_flight(), [Reading("s", RUNNING)], {}, NOW) == in_flight()


def test_finished_operation_uses_up_its_request_id() -> None:
    memory = settle(in_flight(), [Reading("s", DONE)], {}, NOW)
    assert (memory.in_flight, memory.attempts, memory.failures) == ({}, {"s": 1}, {})


def test_operation_that_the_service_does_not_know_is_over() -> None:
    assert settle(in_flight(), [Reading("s", None)], {}, NOW).attempts == {"s": 1}


def test_operation_with_an_error_has_failed_though_it_is_not_done() -> None:
    memory = settle(in_flight(), [Reading("s", FAILED)], {"s": ErrorKind.QUOTA}, NOW)
    assert memory.in_flight == {}
    assert memory.failures["s"].code == "QUOTA_EXCEEDED"
    assert memory.failures["s"].until_utc > NOW


@pytest.mark.parametrize("kind", [ErrorKind.TRANSIENT, ErrorKind.CONFLICT, ErrorKind.GONE])
def test_error_that_may_pass_is_no_standing_failure(kind: ErrorKind) -> None:
    assert settle(in_flight(), [Reading("s", FAILED)], {"s": kind}, NOW).failures == {}
    error = ComputeError(kind, "x", "")
    assert remember(Memory(), Plan(), [Outcome(ACTION, error=error)], NOW).failures == {}


def test_refused_call_stands_for_a_while() -> None:
    error = ComputeError(ErrorKind.PERMISSION, "forbidden", "no")
    memory = remember(Memory(), Plan(), [Outcome(ACTION, error=error)], NOW)
    assert memory.failures[ACTION.subject].kind is ErrorKind.PERMISSION
    later = remember(memory, Plan(), [], NOW + timedelta(minutes=5))
    assert later.failures == {}


def test_pass_that_read_nothing_counts_for_nothing() -> None:
    memory = Memory(sightings=Sightings({N0: NOW}, {N0: NOW}, {"x": NOW}, frozenset({"y"})))
    unread = Unavailable(System.COMPUTE, "no answer")
    plan = decide(
        Snapshot(SlurmSnapshot({}, {}), unread, memory=memory), CLUSTER, NOW + timedelta(seconds=1)
    )
    assert remember(memory, plan, [], NOW + timedelta(seconds=1)) == memory
