"""GPUs break while no job starts or ends: checks in the background find it, people have a say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm_hooks.history.event import EventKind
from tests.end_to_end.clinic import NO_STOP, Clinic, open_clinic
from tests.end_to_end.fleet import GONE_SECONDS, N2
from tests.end_to_end.lifecycle import N0, N1
from tests.end_to_end.watch import glances, served_between

pytestmark = pytest.mark.slow

CHECK_SECONDS = 4
POLICY = {**NO_STOP, "most_repairs_a_node": 1000}
NODE_REBOOT, RECOVER_IMEX_DOMAIN = 2, 5
"""Recovery actions that a driver may ask for (NVML field 230)."""
ILL = [EventKind.VM_CONTINUOUS_GPU_ERROR, EventKind.VM_SLURM_DRAIN]
REPLACED = [EventKind.VM_SLURM_POWER_DOWN, EventKind.VM_DELETION]
STARTS = 5
"""More starts than a job has here."""
MINE = "looked at by me"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    directory = tmp_path_factory.mktemp("cluster")
    with open_clinic(directory, nodes=3, check_seconds=CHECK_SECONDS, policy=POLICY) as clinic:
        yield clinic


@pytest.fixture
def clinic(opened: Clinic) -> Clinic:
    opened.begin_story(N0, N1)
    return opened


def test_fault_that_a_reboot_cures_costs_a_reboot_and_no_vm(clinic: Clinic) -> None:
    vm, states = clinic.vm_id(N0), clinic.set_burn_in(N0)
    with glances(clinic, N0) as seen:
        clinic.break_gpu(N0, "recovery-action", number=NODE_REBOOT)
        clinic.wait_for_event(N0, EventKind.VM_RETURNED)
        clinic.wait_until_up(N0)
    assert clinic.vm_id(N0) == vm
    events = clinic.events(N0)
    assert [event.kind for event in events] == [*ILL, EventKind.VM_REBOOT, EventKind.VM_RETURNED]
    reboot, returned = events[-2:]
    assert returned.message == "a health run passed"
    assert served_between(seen, reboot.time_utc, returned.time_utc) == []
    (burning_in,) = states.read_text(encoding="utf-8").splitlines()
    assert "DRAIN" in burning_in


def test_fault_that_a_reboot_does_not_cure_costs_the_vm(clinic: Clinic) -> None:
    vm = clinic.vm_id(N1)
    with glances(clinic, N1) as seen:
        clinic.break_gpu(N1, "recovery-action", number=NODE_REBOOT, lasting=True)
        replaced = clinic.wait_for_event(N1, EventKind.VM_DELETION)
    assert replaced.message == "recovery_action fails again after a reboot"
    kinds = clinic.kinds(N1)
    assert kinds == [*ILL, EventKind.VM_REBOOT, *ILL, *REPLACED]
    reboot = clinic.events(N1)[kinds.index(EventKind.VM_REBOOT)]
    assert served_between(seen, reboot.time_utc, replaced.time_utc) == []
    clinic.wait_until_up(N1, another_than=vm)


def test_vm_that_is_ill_from_its_first_moment_takes_no_job_and_is_replaced(
    clinic: Clinic,
) -> None:
    first = clinic.vm_id(N1)
    clinic.set_gpus_of_next_boots(N1, 7)
    clinic.break_gpu(N1, "row-remap-failure")
    clinic.wait_for_event(N1, EventKind.VM_DELETION)
    job = clinic.submit_open_ended("-w", N1)
    for start in range(STARTS):
        clinic.end_start(job, start)
    clinic.wait_for_event(N1, EventKind.VM_REBOOT)
    second = clinic.vm_id(N1)
    clinic.box.wait_until(
        "the second VM to be given up",
        lambda: (second, EventKind.VM_DELETION) in vms_of_events(clinic, N1),
        GONE_SECONDS,
    )
    clinic.set_gpus_of_next_boots(N1, 8)
    clinic.wait_for_job(job, "COMPLETED")
    (ran,) = [place for start in range(STARTS) for place in clinic.places(job, start)]
    assert ran.vm_id == clinic.vm_id(N1)
    assert ran.vm_id not in (first, second)
    found = {event.check for event in clinic.events(N1) if event.instance_id == second}
    assert found == {"inventory"}


def vms_of_events(clinic: Clinic, node: str) -> set[tuple[str, EventKind]]:
    return {(event.instance_id, event.kind) for event in clinic.events(node)}


def test_static_node_without_a_job_is_replaced_and_comes_back(clinic: Clinic) -> None:
    vm, inserts = clinic.vm_id(N0), len(clinic.inserts())
    clinic.break_gpu(N0, "row-remap-failure", gpu=7)
    clinic.wait_for_event(N0, EventKind.VM_DELETION)
    clinic.wait_until_up(N0, another_than=vm)
    assert clinic.kinds(N0) == [*ILL, *REPLACED]
    assert clinic.reason(N0) == ""
    assert len(clinic.inserts()) == inserts + 1


def test_under_observation_faults_are_told_and_nothing_is_done(clinic: Clinic) -> None:
    vm = clinic.vm_id(N0)
    clinic.set_health_policy(N0, "observe: true")
    clinic.break_gpu(N0, "recovery-action", number=NODE_REBOOT)
    clinic.wait_for_health_log(N0, "check=recovery_action verdict=REBOOT gpu=0")
    job = clinic.submit_open_ended("-w", N0)
    clinic.end_start(job, 0)
    clinic.wait_for_job(job, "COMPLETED")
    clinic.wait_for_passes()
    assert clinic.is_up(N0)
    assert (clinic.vm_id(N0), clinic.reason(N0), clinic.events(N0)) == (vm, "", [])
    clinic.cure(N0)
    clinic.set_health_policy(N0, "observe: false")


def test_person_who_reboots_a_condemned_node_gets_it_back_after_a_run_that_passed(
    clinic: Clinic,
) -> None:
    vm = clinic.vm_id(N0)
    clinic.break_gpu(N0, "recovery-action", number=RECOVER_IMEX_DOMAIN)
    skipped = clinic.wait_for_event(N0, EventKind.REPAIR_SKIPPED)
    assert skipped.message == "only a person can repair it"
    clinic.reboot_by_hand(N0)
    returned = clinic.wait_for_event(N0, EventKind.VM_RETURNED)
    assert returned.message == "a health run passed"
    clinic.wait_until_up(N0)
    assert clinic.vm_id(N0) == vm
    assert clinic.kinds(N0) == [*ILL, EventKind.REPAIR_SKIPPED, EventKind.VM_RETURNED]


def test_person_who_takes_over_a_condemned_node_keeps_it(clinic: Clinic) -> None:
    node, vm = N2, clinic.vm_id(N2)
    job = clinic.submit_open_ended("-w", node)
    clinic.wait_for_start(job, 0)
    clinic.break_gpu(node, "recovery-action", gpu=1, number=NODE_REBOOT)
    clinic.wait_for_event(node, EventKind.VM_SLURM_DRAIN)
    clinic.update(node, "drain", MINE)
    clinic.end_start(job, 0)
    clinic.wait_for_job(job, "COMPLETED")
    clinic.wait_for_health_log(node, f"reason of somebody else's: {MINE}")
    clinic.wait_for_passes()
    assert clinic.reason(node) == MINE
    assert {"DRAIN", "IDLE"} <= clinic.node_flags(node)
    assert clinic.vm_id(node) == vm
    assert clinic.kinds(node) == ILL
    clinic.update(node, "resume")
    clinic.wait_for_event(node, EventKind.VM_RETURNED)
    clinic.wait_until_up(node)


def test_fault_on_a_node_that_a_person_drained_changes_nothing(clinic: Clinic) -> None:
    vm = clinic.vm_id(N1)
    clinic.update(N1, "drain", MINE)
    clinic.break_gpu(N1, "recovery-action", number=NODE_REBOOT)
    clinic.wait_for_health_log(N1, f"reason of somebody else's: {MINE}")
    clinic.wait_for_passes()
    assert clinic.reason(N1) == MINE
    assert clinic.vm_id(N1) == vm
    assert clinic.events(N1) == []
    clinic.cure(N1)
    clinic.update(N1, "resume")
    clinic.wait_until_up(N1)
