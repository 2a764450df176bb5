"""Repairs have an end: for a node that needs them too often, and for a pool that falls ill."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from slurm_hooks.history.event import EventKind
from tests.end_to_end.clinic import ONLY_WITH_JOBS, TOLD_SECONDS, Clinic, node_name, open_clinic
from tests.end_to_end.fleet import POOL

pytestmark = pytest.mark.slow

MANY = tuple(node_name(index) for index in range(4))
OTHER = node_name(4)
NODE_REBOOT = 2
REPAIRS = {EventKind.VM_REBOOT, EventKind.VM_SLURM_POWER_DOWN, EventKind.VM_DELETION}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A pool under the limits that hold where the cluster file says nothing."""
    directory = tmp_path_factory.mktemp("cluster")
    with open_clinic(
        directory, nodes=len(MANY) + 1, check_seconds=ONLY_WITH_JOBS, policy={}
    ) as clinic:
        yield clinic


@pytest.fixture
def clinic(opened: Clinic) -> Clinic:
    opened.begin_story(*MANY, OTHER)
    return opened


def repairs_of_pool(clinic: Clinic) -> str:
    """What `slurm-hooks repairs` says of the pool."""
    (line,) = [
        line for line in clinic.command("repairs").splitlines() if line.startswith(f"pool {POOL}: ")
    ]
    return line


def test_pool_that_falls_ill_at_once_is_left_alone_until_a_person_says_go_on(
    clinic: Clinic,
) -> None:
    vms = {node: clinic.vm_id(node) for node in MANY}
    for node in MANY:
        clinic.break_gpu(node, "no-driver")
    job = clinic.submit_open_ended(f"-w{','.join(MANY)}", nodes=len(MANY))
    clinic.end_start(job, 1)
    clinic.box.wait_until(
        "the pool's repairs to stop",
        lambda: EventKind.REPAIRS_STOPPED in [event.kind for event in clinic.events()],
        TOLD_SECONDS,
    )
    clinic.wait_for_passes()
    kinds = [event.kind for event in clinic.events()]
    assert REPAIRS.isdisjoint(kinds[kinds.index(EventKind.REPAIRS_STOPPED) :])
    assert clinic.job_state(job) == "PENDING"
    assert "STOPPED since" in repairs_of_pool(clinic)
    (loud,) = clinic.log_lines(" ERROR .*too many nodes condemned at once")
    assert f"slurm-hooks repairs resume {POOL}" in loud

    assert "repaired again" in clinic.command("repairs", "resume", POOL)
    clinic.wait_for_job(job, "COMPLETED")
    assert repairs_of_pool(clinic) == f"pool {POOL}: nodes are repaired"
    assert {node: clinic.vm_id(node) for node in MANY} == vms
    shown = clinic.command("events", "--type", "VM_REBOOT", "--pool", POOL, "--json")
    rebooted = {json.loads(line)["node"] for line in shown.splitlines()}
    assert rebooted == set(MANY)


def test_node_that_was_repaired_twice_waits_for_a_person(clinic: Clinic) -> None:
    vm = clinic.vm_id(OTHER)
    for kind, number in (("no-driver", 0), ("recovery-action", NODE_REBOOT)):
        clinic.begin_story(OTHER)
        clinic.break_gpu(OTHER, kind, number=number)
        job = clinic.submit_open_ended("-w", OTHER)
        clinic.wait_for_event(OTHER, EventKind.VM_REBOOT)
        clinic.slurm("scancel", str(job))
        clinic.wait_for_event(OTHER, EventKind.VM_RETURNED)
    clinic.begin_story(OTHER)
    clinic.break_gpu(OTHER, "lost")
    job = clinic.submit_open_ended("-w", OTHER)
    skipped = clinic.wait_for_event(OTHER, EventKind.REPAIR_SKIPPED)
    assert skipped.message == "repaired 2 times within 7 days: a person must look"
    clinic.wait_for_passes()
    assert clinic.kinds(OTHER) == [
        EventKind.VM_PROLOG_ERROR,
        EventKind.VM_SLURM_DRAIN,
        EventKind.REPAIR_SKIPPED,
    ]
    assert clinic.vm_id(OTHER) == vm
    shown = clinic.shown_repairs(OTHER)
    assert shown is not None
    assert shown["next_step"] == f"stays drained: {skipped.message}"
    clinic.slurm("scancel", str(job))
