"""A node that lacks GPUs, or whose driver does not open, never passes as one without GPUs."""

from __future__ import annotations

import pytest

from slurm_hooks.health.model import JobOnNode, Verdict
from slurm_hooks.health.policy import ExpectedHardware, HealthPolicy
from tests.unit.health.node_roots import NodeRoot
from tests.unit.health.runs import evidence_of, run_check


def test_a_gpu_that_left_the_bus_is_missed(node: NodeRoot) -> None:
    node.remove_pci_device(node.gpu(5).pci_address)

    (finding,) = run_check("inventory", evidence_of(node))

    assert finding.verdict is Verdict.REBOOT
    assert finding.detail == "7 of 8 GPUs (PCI 7, /dev 8, driver 8)"


def test_a_missing_device_file_is_missed(node: NodeRoot) -> None:
    node.path("dev", "nvidia5").unlink()

    (finding,) = run_check("inventory", evidence_of(node))

    assert finding.detail == "7 of 8 GPUs (PCI 8, /dev 7, driver 8)"


def test_a_gpu_that_the_driver_does_not_count_is_missed(node: NodeRoot) -> None:
    node.change_driver(counted=7)

    (finding,) = run_check("inventory", evidence_of(node))

    assert finding.detail == "7 of 8 GPUs (PCI 8, /dev 8, driver 7)"


def test_a_gpu_node_without_any_gpu_left_is_no_cpu_node(bare_node: NodeRoot) -> None:
    found = run_check("inventory", evidence_of(bare_node, job=None))

    assert [finding.verdict for finding in found] == [Verdict.REBOOT]
    assert "0 of 8 GPUs" in found[0].detail


def test_a_job_with_gpus_on_a_node_that_has_none_says_that_they_are_lost(
    bare_node: NodeRoot,
) -> None:
    evidence = evidence_of(bare_node, machine_type="", job=JobOnNode(7, gpus=(0, 1)))

    found = run_check("inventory", evidence)

    assert [finding.verdict for finding in found] == [Verdict.UNKNOWN, Verdict.REBOOT]


def test_a_node_of_unknown_machine_type_never_passes_in_silence(node: NodeRoot) -> None:
    (finding,) = run_check("inventory", evidence_of(node, machine_type="", job=None))

    assert finding.verdict is Verdict.UNKNOWN


def test_a_node_of_unknown_machine_type_without_gpus_is_not_judged(bare_node: NodeRoot) -> None:
    (finding,) = run_check("inventory", evidence_of(bare_node, machine_type="", job=None))

    assert finding.verdict is Verdict.UNKNOWN


def test_more_gpus_than_there_must_be_are_a_difference_too(node: NodeRoot) -> None:
    (finding,) = run_check("inventory", evidence_of(node, machine_type="a3-highgpu-4g"))

    assert finding.verdict is Verdict.REBOOT


def test_the_policy_says_what_a_machine_type_has(node: NodeRoot) -> None:
    policy = HealthPolicy(machine_types={"a3-highgpu-8g": ExpectedHardware(gpus=4)})

    assert len(run_check("inventory", evidence_of(node, policy=policy))) == 1


def test_other_devices_of_the_bus_and_of_dev_do_not_count(node: NodeRoot) -> None:
    node.add_pci_device("0000:f0:00", "0x10de", "0x068000")
    node.add_pci_device("0000:f1:00", "0x8086", "0x030200")
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-caps"):
        node.write(f"dev/{name}", "")

    assert run_check("inventory", evidence_of(node)) == []


def test_a_driver_that_is_not_loaded_is_a_fault_of_the_device(node: NodeRoot) -> None:
    node.change_driver(is_loaded=False)

    (finding,) = run_check("driver", evidence_of(node))

    assert finding.verdict is Verdict.REBOOT
    assert "DRIVER_NOT_LOADED" in finding.detail


def test_a_missing_driver_library_is_a_fault_of_the_device(node: NodeRoot) -> None:
    node.remove_driver_library()

    (finding,) = run_check("driver", evidence_of(node))

    assert finding.verdict is Verdict.REBOOT
    assert "LIBRARY_NOT_FOUND" in finding.detail


@pytest.mark.parametrize(
    ("number", "told"),
    [(18, "not loaded again"), (10, "TIMEOUT"), (999, "UNKNOWN"), (12345, "12345")],
)
def test_every_error_of_the_driver_at_its_start_is_a_fault_of_the_device(
    node: NodeRoot, number: int, told: str
) -> None:
    node.change_driver(errors={"nvmlInitWithFlags": number, "nvmlInit_v2": number})

    (finding,) = run_check("driver", evidence_of(node))

    assert finding.verdict is Verdict.REBOOT
    assert told in finding.detail


def test_a_check_that_runs_alone_says_that_the_driver_does_not_open(node: NodeRoot) -> None:
    node.change_driver(is_loaded=False)

    (finding,) = run_check("nvlink", evidence_of(node))

    assert "DRIVER_NOT_LOADED" in finding.detail


@pytest.mark.parametrize(("number", "verdict"), [(999, Verdict.REBOOT), (16, Verdict.RESET)])
def test_a_gpu_that_cannot_be_attached_to_is_found_by_its_index(
    node: NodeRoot, number: int, verdict: Verdict
) -> None:
    node.change_gpu(5, errors={"nvmlDeviceGetHandleByIndex_v2": number})

    (finding,) = run_check("gpu_lost", evidence_of(node))

    assert finding.verdict is verdict
    assert "index 5" in finding.detail


def test_the_other_checks_still_look_at_the_gpus_that_are_left(node: NodeRoot) -> None:
    node.change_gpu(5, is_lost=True)
    node.change_gpu(6, recovery_action=1)

    (finding,) = run_check("recovery_action", evidence_of(node))

    assert finding.gpu == 6
