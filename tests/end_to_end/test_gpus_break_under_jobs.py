"""GPUs break before a job and under it: the job runs again, the node is repaired, by nobody's hand.

No check runs in the background here but the one as slurmd starts, so Prolog and Epilog find what
they are about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from slurm_hooks.health.model import Verdict
from slurm_hooks.history.event import EventKind
from tests.end_to_end.clinic import NO_STOP, ONLY_WITH_JOBS, Clinic, open_clinic
from tests.end_to_end.fleet import N2
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

POLICY = {**NO_STOP, "most_repairs_a_node": 1000, "most_job_restarts": 2}
N3 = "flexvm-a3u-3"
FAILED = 3
"""The status of a start that the fault of its hardware has ended."""
ILL_BEFORE = [EventKind.VM_PROLOG_ERROR, EventKind.VM_SLURM_DRAIN]
ILL_AT_BOOT = [EventKind.VM_CONTINUOUS_GPU_ERROR, EventKind.VM_SLURM_DRAIN]
ILL_AFTER = [EventKind.VM_EPILOG_ERROR, EventKind.VM_SLURM_DRAIN]
REBOOTED = [EventKind.VM_REBOOT, EventKind.VM_RETURNED]
REPLACED = [EventKind.VM_SLURM_POWER_DOWN, EventKind.VM_DELETION]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    directory = tmp_path_factory.mktemp("cluster")
    with open_clinic(directory, nodes=4, check_seconds=ONLY_WITH_JOBS, policy=POLICY) as clinic:
        yield clinic


@pytest.fixture
def clinic(opened: Clinic) -> Clinic:
    opened.begin_story(N0, N1)
    return opened


def test_gpu_lost_before_a_job_costs_a_reboot_then_the_vm_and_the_job_runs_on_the_next(
    clinic: Clinic,
) -> None:
    well, ill = N0, N1
    old_vm, inserts = clinic.vm_id(ill), len(clinic.inserts())
    clinic.break_gpu(ill, "lost", gpu=3, lasting=True)
    job = clinic.submit_open_ended(f"-w{well},{ill}", nodes=2)
    clinic.end_start(job, 1)
    clinic.wait_for_job(job, "COMPLETED")
    assert clinic.places(job, 0) == []
    assert [place.node for place in clinic.places(job, 1)] == [well, ill]
    assert clinic.vm_id(ill) == clinic.places(job, 1)[1].vm_id != old_vm
    assert len(clinic.inserts()) == inserts + 1
    kinds = clinic.kinds(ill)
    assert kinds == [*ILL_BEFORE, EventKind.VM_REBOOT, *ILL_AT_BOOT, *REPLACED]
    assert clinic.events(ill)[0].job_id == job
    assert clinic.kinds(well) == []


@pytest.mark.parametrize(
    ("break_it", "check"),
    [
        pytest.param(lambda clinic: clinic.set_driver(N0, "ecc.1", "1"), "ecc", id="memory error"),
        pytest.param(lambda clinic: clinic.break_gpu(N0, "lost"), "gpu_lost", id="lost GPU"),
    ],
)
def test_job_that_failed_as_its_gpu_broke_runs_again_on_healthy_ones(
    clinic: Clinic, break_it: Callable[[Clinic], None], check: str
) -> None:
    job = clinic.submit_open_ended("-w", N0)
    (first,) = clinic.wait_for_start(job, 0)
    break_it(clinic)
    clinic.end_start(job, 0, FAILED)
    clinic.end_start(job, 1)
    clinic.wait_for_job(job, "COMPLETED")
    (second,) = clinic.places(job, 1)
    assert (second.node, second.vm_id) == (N0, first.vm_id)
    assert second.boot != first.boot
    clinic.wait_for_event(N0, EventKind.VM_RETURNED)
    assert clinic.kinds(N0) == [*ILL_AFTER, *REBOOTED]
    assert clinic.events(N0)[0].check == check


def test_job_on_memory_that_cannot_heal_runs_again_while_the_vm_is_replaced(
    clinic: Clinic,
) -> None:
    job = clinic.submit_open_ended()
    (first,) = clinic.wait_for_start(job, 0)
    clinic.break_gpu(first.node, "row-remap-failure", gpu=5)
    clinic.end_start(job, 0, FAILED)
    clinic.end_start(job, 1)
    clinic.wait_for_job(job, "COMPLETED")
    (second,) = clinic.places(job, 1)
    assert second.vm_id != first.vm_id
    clinic.wait_until_up(first.node, another_than=first.vm_id)
    assert clinic.kinds(first.node)[-4:] == [*ILL_AFTER, *REPLACED]


def test_job_that_ended_well_on_a_gpu_that_broke_is_not_run_again(clinic: Clinic) -> None:
    node = N0
    job = clinic.submit_open_ended("-w", node)
    (first,) = clinic.wait_for_start(job, 0)
    clinic.set_driver(node, "ecc.1", "1")
    clinic.end_start(job, 0)
    clinic.wait_for_event(node, EventKind.VM_RETURNED)
    assert clinic.kinds(node) == [*ILL_AFTER, *REBOOTED]
    assert clinic.job_state(job) == "COMPLETED"
    assert clinic.vm_id(node) == first.vm_id


def test_uncontained_memory_error_in_the_kernel_log_of_a_job_condemns_the_node(
    clinic: Clinic,
) -> None:
    node = N0
    job = clinic.submit_open_ended("-w", node)
    clinic.wait_for_start(job, 0)
    clinic.break_gpu(node, "xid", gpu=2, number=95)
    clinic.end_start(job, 0, FAILED)
    clinic.end_start(job, 1)
    clinic.wait_for_job(job, "COMPLETED")
    clinic.wait_for_event(node, EventKind.VM_RETURNED)
    assert clinic.kinds(node) == [*ILL_AFTER, *REBOOTED]
    error = clinic.events(node)[0]
    assert (error.check, error.verdict, error.job_id) == ("xid", Verdict.RESET, job)
    assert "95 at 0000:" in error.message


def test_contained_memory_error_lets_the_job_run_again_and_the_node_serve_on(
    clinic: Clinic,
) -> None:
    node = N0
    job = clinic.submit_open_ended("-w", node)
    first = clinic.wait_for_start(job, 0)
    clinic.break_gpu(node, "xid", gpu=2, number=94)
    clinic.end_start(job, 0, FAILED)
    clinic.end_start(job, 1)
    clinic.wait_for_job(job, "COMPLETED")
    assert clinic.places(job, 1) == first
    assert clinic.kinds(node) == []


def test_driver_that_hangs_is_left_behind_before_slurmd_loses_patience(clinic: Clinic) -> None:
    node = N0
    clinic.set_health_policy(node, "deadlines: {prolog: 2, epilog: 2}")
    clinic.break_gpu(node, "hang")
    job = clinic.submit_open_ended("-w", node)
    clinic.end_start(job, 1)
    clinic.wait_for_job(job, "COMPLETED")
    clinic.wait_for_event(node, EventKind.VM_RETURNED)
    assert clinic.places(job, 0) == []
    assert clinic.kinds(node) == [*ILL_BEFORE, *REBOOTED]
    assert clinic.events(node)[0].check == "probe_hang"
    log = clinic.box.layout.log(node).read_text(encoding="utf-8")
    assert "timeout after" not in log


def test_gpus_that_still_join_their_fabric_fail_a_job_and_not_the_node(clinic: Clinic) -> None:
    node = N0
    vm = clinic.vm_id(node)
    clinic.set_driver(node, "fabric", "2,0,0,1")
    job = clinic.submit_open_ended("-w", node)
    clinic.end_start(job, 1)
    returned = clinic.wait_for_event(node, EventKind.VM_RETURNED)
    clinic.set_driver(node, "fabric", None)
    clinic.wait_for_job(job, "COMPLETED")
    assert (returned.check, returned.verdict) == ("fabric", Verdict.REQUEUE)
    assert EventKind.VM_REBOOT not in clinic.kinds(node)
    assert clinic.vm_id(node) == vm


def test_a_job_that_had_some_of_the_gpus_leaves_the_node_drained_only(clinic: Clinic) -> None:
    node, vm = N2, clinic.vm_id(N2)
    clinic.break_gpu(node, "lost", gpu=1)
    job = clinic.submit_open_ended(f"-w{node}", gpus=4)
    skipped = clinic.wait_for_event(node, EventKind.REPAIR_SKIPPED)
    assert skipped.message == "its job had 4 of its 8 GPUs: only drained"
    clinic.wait_for_passes()
    assert clinic.kinds(node) == [*ILL_BEFORE, EventKind.REPAIR_SKIPPED]
    assert clinic.health_reason(node) is not None
    assert clinic.vm_id(node) == vm
    assert clinic.places(job, 0) == []
    clinic.slurm("scancel", str(job))


def test_a_job_past_its_restart_limit_leaves_the_node_drained_only(clinic: Clinic) -> None:
    node, vm = N3, clinic.vm_id(N3)
    job = clinic.submit_open_ended("-w", node)
    for start in range(POLICY["most_job_restarts"]):
        clinic.wait_for_start(job, start)
        clinic.slurm("scontrol", "requeue", str(job))
    clinic.wait_for_start(job, POLICY["most_job_restarts"])
    clinic.break_gpu(node, "row-remap-failure")
    clinic.end_start(job, POLICY["most_job_restarts"], FAILED)
    skipped = clinic.wait_for_event(node, EventKind.REPAIR_SKIPPED)
    assert skipped.message.startswith(f"job {job} was queued again 2 times")
    clinic.wait_for_passes()
    assert clinic.kinds(node) == [*ILL_AFTER, EventKind.REPAIR_SKIPPED]
    assert clinic.health_reason(node) is not None
    assert clinic.vm_id(node) == vm
    clinic.slurm("scancel", str(job))
