"""Every set of all flags at once, with every reason, in every kind of surroundings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from slurm_hooks.compute.model import InstanceStatus, RequestState
from slurm_hooks.reconcile.phases import request_phase_of, vm_phase_of
from slurm_hooks.slurm.model import ACTIVE_JOB_STATES, BaseState, JobState
from tests.unit.reconcile.builders import N0, vm
from tests.unit.reconcile.every_flag import (
    SETS_OF_FLAGS,
    UNKNOWN_WORDS,
    OpenState,
    decided_for_every_set,
)
from tests.unit.reconcile.every_state import REASONS, Decided, Surroundings, surroundings
from tests.unit.reconcile.test_every_state import RULES

pytestmark = pytest.mark.slow

A_VM_OF_EACH_PHASE = (
    None,
    InstanceStatus.PENDING,
    InstanceStatus.RUNNING,
    InstanceStatus.STOPPING,
    InstanceStatus.TERMINATED,
    InstanceStatus.UNKNOWN,
)
A_REQUEST_OF_EACH_PHASE = (
    None,
    RequestState.ACCEPTED,
    RequestState.SUCCEEDED,
    RequestState.FAILED,
    RequestState.UNKNOWN,
)
A_JOB_OF_EACH_KIND = (
    None,
    JobState.PENDING,
    JobState.CONFIGURING,
    JobState.RUNNING,
    JobState.COMPLETING,
    JobState.COMPLETED,
)


def broken_rules(around: Sequence[Surroundings], reasons: Sequence[str]) -> dict[str, Decided]:
    """One example for each rule that does not hold, once no set of flags was left out."""
    broken: dict[str, Decided] = {}
    walked: list[OpenState] = []
    for result in decided_for_every_set(reasons, around):
        for rule in RULES:
            if not rule(result):
                broken.setdefault(rule.__name__, result)
        assert isinstance(result.case.state, OpenState)
        walked.append(result.case.state)
    cases = len(BaseState) * len(UNKNOWN_WORDS) * len(reasons) * len(around)
    assert sum(state.sets_covered for state in walked) == cases * SETS_OF_FLAGS
    return broken


def test_every_set_of_flags_with_every_reason() -> None:
    jobs = (None, JobState.CONFIGURING, JobState.RUNNING)
    around = surroundings((None, InstanceStatus.RUNNING), (None,), jobs)
    assert broken_rules(around, REASONS) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("job", A_JOB_OF_EACH_KIND)
@pytest.mark.parametrize("request_state", A_REQUEST_OF_EACH_PHASE)
def test_every_set_of_flags_in_all_surroundings(
    request_state: RequestState | None, job: JobState | None
) -> None:
    around = surroundings(A_VM_OF_EACH_PHASE, (request_state,), (job,))
    assert broken_rules(around, REASONS) == {}


def test_surroundings_have_every_phase_of_a_vm_and_request_and_every_kind_of_job() -> None:
    def phases_of_vms(statuses: Iterable[InstanceStatus | None]) -> set[object]:
        instances = [vm(N0, status) if status else None for status in statuses]
        return {vm_phase_of(each, deletion_in_flight=False) for each in instances}

    def phases_of_requests(states: Iterable[RequestState | None]) -> set[object]:
        return {request_phase_of(state) for state in states if state is not None}

    def kinds_of_jobs(states: Iterable[JobState | None]) -> set[object]:
        ends = {JobState.COMPLETING, JobState.SUSPENDED, JobState.RUNNING, JobState.CONFIGURING}
        return {(state in ACTIVE_JOB_STATES, state in ends) for state in states if state}

    without_none = set(RequestState) - {RequestState.CANCELLED}
    assert phases_of_vms(A_VM_OF_EACH_PHASE) == phases_of_vms((None, *InstanceStatus))
    assert phases_of_requests(A_REQUEST_OF_EACH_PHASE) == phases_of_requests(without_none)
    assert kinds_of_jobs(A_JOB_OF_EACH_KIND) == kinds_of_jobs(JobState)
