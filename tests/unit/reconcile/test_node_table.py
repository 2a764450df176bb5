"""The decision table is total, has no dead rows, and kills nobody who works."""

import itertools

import pytest

from slurm_hooks.reconcile.node_table import TABLE, Step, row_for
from slurm_hooks.reconcile.phases import Intent, RequestPhase, VmPhase

EVERY_CASE = list(itertools.product(Intent, RequestPhase, VmPhase))
HARMLESS = {
    Step.LEAVE,
    Step.LOOK_AGAIN,
    Step.AWAIT_CAPACITY,
    Step.AWAIT_BOOT,
    Step.AWAIT_DELETION,
    Step.REQUEST,
    Step.REQUEST_AGAIN,
}


@pytest.mark.parametrize(("intent", "request_phase", "vm"), EVERY_CASE)
def test_every_combination_has_a_row(
    intent: Intent, request_phase: RequestPhase, vm: VmPhase
) -> None:
    assert row_for(intent, request_phase, vm).step in Step


def test_every_row_is_the_first_that_fits_somewhere() -> None:
    used = [row_for(*case) for case in EVERY_CASE]
    assert [row for row in TABLE if not any(row is other for other in used)] == []


@pytest.mark.parametrize(("intent", "request_phase", "vm"), EVERY_CASE)
def test_a_registered_node_with_a_living_vm_is_left_alone(
    intent: Intent, request_phase: RequestPhase, vm: VmPhase
) -> None:
    step = row_for(intent, request_phase, vm).step
    if intent is Intent.REGISTERED and vm not in (VmPhase.NONE, VmPhase.BROKEN):
        assert step is Step.LEAVE


@pytest.mark.parametrize(("request_phase", "vm"), list(itertools.product(RequestPhase, VmPhase)))
def test_what_is_not_understood_is_left_alone(request_phase: RequestPhase, vm: VmPhase) -> None:
    assert row_for(Intent.UNKNOWN, request_phase, vm).step is Step.LEAVE


@pytest.mark.parametrize(("intent", "request_phase"), list(itertools.product(Intent, RequestPhase)))
def test_an_unknown_vm_state_is_no_licence_to_delete(
    intent: Intent, request_phase: RequestPhase
) -> None:
    step = row_for(intent, request_phase, VmPhase.UNKNOWN).step
    assert step in HARMLESS


@pytest.mark.parametrize(("intent", "request_phase"), list(itertools.product(Intent, RequestPhase)))
def test_a_name_is_asked_for_only_when_no_vm_has_it(
    intent: Intent, request_phase: RequestPhase
) -> None:
    for vm in VmPhase:
        if row_for(intent, request_phase, vm).step in (Step.REQUEST, Step.REQUEST_AGAIN):
            assert vm is VmPhase.NONE
