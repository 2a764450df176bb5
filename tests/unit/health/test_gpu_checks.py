"""Checks of GPUs: what is sick is found on whichever GPU it is, what is not supported is not."""

from __future__ import annotations

import pytest

from slurm_hooks.health.driver.model import (
    Fabric,
    PcieLink,
    RemappedRows,
    RetiredPages,
    SramErrors,
)
from slurm_hooks.health.job_files import keep_baseline
from slurm_hooks.health.model import Context, JobOnNode, Verdict
from slurm_hooks.health.policy import ExpectedHardware, HealthPolicy, Thresholds
from slurm_hooks.health.registry import all_checks
from tests.unit.health.node_roots import NodeRoot
from tests.unit.health.runs import BEGAN, evidence_of, run_check

_GPU_CHECKS = (
    "driver",
    "recovery_action",
    "row_remap",
    "sram",
    "gpu_lost",
    "inventory",
    "fabric",
    "nvlink",
    "ecc",
    "retired_pages",
    "pcie_link",
    "pcie_errors",
    "nvlink_errors",
    "throttling",
    "persistence",
    "inforom",
)
_NOT_SUPPORTED, _NO_PERMISSION, _GARBAGE = 3, 4, 999
_PER_GPU_CALLS = {
    "row_remap": "nvmlDeviceGetRemappedRows",
    "sram": "nvmlDeviceGetSramEccErrorStatus",
    "ecc": "nvmlDeviceGetTotalEccErrors",
    "pcie_link": "nvmlDeviceGetCurrPcieLinkWidth",
    "persistence": "nvmlDeviceGetPersistenceMode",
    "recovery_action": "nvmlDeviceGetFieldValues",
    "nvlink": "nvmlDeviceGetNvLinkState",
}


@pytest.mark.parametrize("context", list(Context))
@pytest.mark.parametrize("name", _GPU_CHECKS)
def test_a_healthy_node_of_eight_gpus_passes(node: NodeRoot, name: str, context: Context) -> None:
    assert run_check(name, evidence_of(node, context)) == []


@pytest.mark.parametrize("name", _GPU_CHECKS)
def test_a_node_that_has_no_gpus_by_design_passes(bare_node: NodeRoot, name: str) -> None:
    assert run_check(name, evidence_of(bare_node, machine_type="n2-standard-8", job=None)) == []


def test_every_check_of_gpus_is_registered() -> None:
    assert set(_GPU_CHECKS) <= {check.name for check in all_checks()}


@pytest.mark.parametrize(
    ("name", "changes", "verdict", "told"),
    [
        ("row_remap", {"remapped_rows": RemappedRows(0, 9, False, True)}, Verdict.REPLACE, "fail"),
        ("sram", {"sram": SramErrors(1, 2, 3, True)}, Verdict.REPLACE, "1 parity, 2 ECC"),
        ("recovery_action", {"recovery_action": 1}, Verdict.RESET, "GPU reset"),
        ("recovery_action", {"recovery_action": 2}, Verdict.REBOOT, "node reboot"),
        ("recovery_action", {"recovery_action": 3}, Verdict.RESET, "drain P2P"),
        ("recovery_action", {"recovery_action": 4}, Verdict.RESET, "drain and reset"),
        ("recovery_action", {"recovery_action": 5}, Verdict.MANUAL, "IMEX"),
        ("recovery_action", {"recovery_action": 6}, Verdict.REBOOT, "bus reset"),
        ("recovery_action", {"recovery_action": 7}, Verdict.REBOOT, "system reboot"),
        ("recovery_action", {"recovery_action": 99}, Verdict.MANUAL, "not known"),
        ("gpu_lost", {"is_lost": True}, Verdict.REBOOT, "GPU_IS_LOST"),
        ("retired_pages", {"retired_pages": RetiredPages(11, False)}, Verdict.RESET, "11 memory"),
        ("retired_pages", {"retired_pages": RetiredPages(1, True)}, Verdict.WARN, "wait"),
        ("nvlink", {"nvlinks": (True,) * 17 + (False,)}, Verdict.RESET, "17 of 18"),
        ("nvlink", {"nvlinks": (True,) * 12}, Verdict.RESET, "12 of 18"),
        ("fabric", {"fabric": Fabric(1, 0, 0, 1)}, Verdict.REBOOT, "not completed (state 1)"),
        ("fabric", {"fabric": Fabric(2, 0, 0, 1)}, Verdict.REBOOT, "not completed (state 2)"),
        ("fabric", {"fabric": Fabric(3, 7, 0, 1)}, Verdict.REBOOT, "status 7"),
        ("fabric", {"fabric": Fabric(3, 0, 1, 1)}, Verdict.REBOOT, "degraded bandwidth"),
        ("fabric", {"fabric": Fabric(3, 0, 1 << 2, 1)}, Verdict.REBOOT, "route recovery"),
        ("fabric", {"fabric": Fabric(3, 0, 1 << 4, 1)}, Verdict.REBOOT, "route unhealthy"),
        ("fabric", {"fabric": Fabric(3, 0, 1 << 6, 1)}, Verdict.REBOOT, "access timeout"),
        ("fabric", {"fabric": Fabric(3, 0, 2 << 12, 1)}, Verdict.REBOOT, "no partition"),
        ("fabric", {"fabric": Fabric(3, 0, 2 << 14, 1)}, Verdict.REBOOT, "fabric manager"),
        ("fabric", {"fabric": Fabric(3, 0, 5 << 8, 1)}, Verdict.REBOOT, "incorrect config"),
        ("fabric", {"fabric": Fabric(3, 0, 0, 2)}, Verdict.REBOOT, "unhealthy"),
        ("fabric", {"fabric": Fabric(3, 0, 0, 3)}, Verdict.WARN, "limited"),
        ("pcie_link", {"pcie": PcieLink(8, 16, 5, 5)}, Verdict.REBOOT, "width 8 of 16"),
        ("persistence", {"is_persistence_on": False}, Verdict.WARN, "switched on"),
        ("inforom", {"is_inforom_good": False}, Verdict.MANUAL, "corrupted"),
    ],
)
def test_one_sick_gpu_among_eight_is_found(
    node: NodeRoot, name: str, changes: dict[str, object], verdict: Verdict, told: str
) -> None:
    node.change_gpu(5, **changes)

    (finding,) = run_check(name, evidence_of(node))

    assert finding.verdict is verdict
    assert told in finding.detail
    assert finding.gpu in (5, None)


@pytest.mark.parametrize(
    "fabric", [Fabric(0, 0, 0, 0), Fabric(3, 0, 0, 0), Fabric(3, 0, 1 << 8, 1)]
)
def test_what_the_fabric_does_not_tell_is_no_fault(node: NodeRoot, fabric: Fabric) -> None:
    node.change_gpu(5, fabric=fabric)

    assert run_check("fabric", evidence_of(node)) == []


def test_a_gpu_that_still_registers_after_boot_costs_the_job_only_its_start(
    node: NodeRoot,
) -> None:
    node.write("proc/uptime", "60.00 10.00\n")
    node.change_gpu(5, fabric=Fabric(2, 0, 0, 0))

    (finding,) = run_check("fabric", evidence_of(node))

    assert finding.verdict is Verdict.REQUEUE


def test_every_sick_gpu_is_told_not_the_first_alone(node: NodeRoot) -> None:
    for index in (2, 6):
        node.change_gpu(index, remapped_rows=RemappedRows(0, 1, False, True))

    assert [finding.gpu for finding in run_check("row_remap", evidence_of(node))] == [2, 6]


def test_a_sick_gpu_of_the_jobs_own_is_told_from_others(node: NodeRoot) -> None:
    for index in (2, 6):
        node.change_gpu(index, remapped_rows=RemappedRows(0, 1, False, True))
    job = JobOnNode(7, gpus=(2, 3))

    found = run_check("row_remap", evidence_of(node, Context.EPILOG, job=job))

    assert [(finding.gpu, finding.of_job) for finding in found] == [(2, True), (6, False)]


@pytest.mark.parametrize(("name", "call"), _PER_GPU_CALLS.items())
def test_a_call_that_a_gpu_does_not_support_is_no_fault(
    node: NodeRoot, name: str, call: str
) -> None:
    node.change_gpu(5, errors={call: _NOT_SUPPORTED})

    assert run_check(name, evidence_of(node)) == []


@pytest.mark.parametrize(("name", "call"), _PER_GPU_CALLS.items())
def test_a_call_that_fails_condemns_the_node_and_hides_no_other_gpu(
    node: NodeRoot, name: str, call: str
) -> None:
    node.change_gpu(2, errors={call: _GARBAGE})
    node.change_gpu(6, errors={call: _GARBAGE})

    found = run_check(name, evidence_of(node))

    assert [(finding.gpu, finding.verdict) for finding in found] == [
        (2, Verdict.REBOOT),
        (6, Verdict.REBOOT),
    ]


def test_rows_that_wait_are_told_after_a_job_and_reset_when_the_node_is_idle(
    node: NodeRoot,
) -> None:
    node.change_gpu(5, remapped_rows=RemappedRows(0, 1, True, False))

    assert run_check("row_remap", evidence_of(node)) == []
    (after,) = run_check("row_remap", evidence_of(node, Context.EPILOG))
    (idle,) = run_check("row_remap", evidence_of(node, Context.BACKGROUND))
    keep_baseline(node.host(), 7, BEGAN, {})
    (busy,) = run_check("row_remap", evidence_of(node, Context.BACKGROUND))

    assert [after.verdict, idle.verdict, busy.verdict] == [
        Verdict.WARN,
        Verdict.RESET,
        Verdict.WARN,
    ]


def test_persistence_mode_is_switched_on_for_good(node: NodeRoot) -> None:
    node.change_gpu(5, is_persistence_on=False)

    assert len(run_check("persistence", evidence_of(node))) == 1
    assert run_check("persistence", evidence_of(node)) == []


@pytest.mark.parametrize("name", ["gpu_lost", "inventory"])
@pytest.mark.parametrize(
    ("gpus", "is_hit"), [((), False), ((0, 1), False), ((4, 5), True), (tuple(range(8)), True)]
)
def test_a_lost_gpu_is_the_fault_of_no_job_that_did_not_have_it(
    node: NodeRoot, name: str, gpus: tuple[int, ...], is_hit: bool
) -> None:
    node.change_gpu(5, is_lost=True)
    node.remove_pci_device(node.gpu(5).pci_address)
    job = JobOnNode(7, user_id=1000, gpus=gpus, exit_code=1)

    (finding,) = run_check(name, evidence_of(node, Context.EPILOG, job=job))

    assert finding.of_job is is_hit


def test_a_missing_device_file_is_the_fault_of_the_job_that_needs_it(node: NodeRoot) -> None:
    node.path("dev", "nvidia5").unlink()

    for gpus, is_hit in (((0, 1), False), ((4, 5), True)):
        job = JobOnNode(7, user_id=1000, gpus=gpus, exit_code=1)
        (finding,) = run_check("inventory", evidence_of(node, Context.EPILOG, job=job))
        assert finding.of_job is is_hit


def test_a_driver_that_cannot_switch_persistence_mode_is_no_fault(node: NodeRoot) -> None:
    errors = {"nvmlDeviceSetPersistenceMode": _NOT_SUPPORTED}
    node.change_gpu(5, is_persistence_on=False, errors=errors)

    (finding,) = run_check("persistence", evidence_of(node))

    assert (finding.verdict, finding.detail) == (Verdict.WARN, "is off")


def test_a_gpu_that_is_cut_into_instances_needs_no_links(node: NodeRoot) -> None:
    node.change_gpu(5, nvlinks=(False,) * 18, is_in_multi_instance_mode=True)
    node.change_gpu(6, nvlinks=(False,) * 18, is_in_multi_instance_mode=False)

    assert [finding.gpu for finding in run_check("nvlink", evidence_of(node))] == [6]


def test_a_gpu_that_is_cut_into_instances_needs_no_fabric(node: NodeRoot) -> None:
    node.change_gpu(5, fabric=Fabric(2, 0, 0, 0), is_in_multi_instance_mode=True)
    node.change_gpu(6, fabric=Fabric(2, 0, 0, 0))
    node.change_gpu(7, fabric=Fabric(3, 0, 0, 3), is_in_multi_instance_mode=True)

    found = run_check("fabric", evidence_of(node))

    assert [(f.gpu, f.verdict) for f in found] == [(6, Verdict.REBOOT), (7, Verdict.WARN)]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("fabric", "nvmlDeviceGetGpuFabricInfoV"),
        ("pcie_link", "nvmlDeviceGetCurrPcieLinkWidth"),
        ("pcie_errors", "nvmlDeviceGetFieldValues"),
        ("nvlink_errors", "nvmlDeviceGetFieldValues"),
        ("throttling", "nvmlDeviceGetFieldValues"),
    ],
)
def test_what_only_a_whole_gpu_may_be_asked_is_no_fault_of_one_in_instances(
    node: NodeRoot, name: str, call: str
) -> None:
    for index, is_cut in ((5, True), (6, False)):
        node.change_gpu(index, is_in_multi_instance_mode=is_cut, errors={call: _NO_PERMISSION})

    assert {finding.gpu for finding in run_check(name, evidence_of(node))} == {6}


def test_a_gpu_in_instances_still_needs_all_its_lanes(node: NodeRoot) -> None:
    node.change_gpu(5, pcie=PcieLink(8, 16, 5, 5), is_in_multi_instance_mode=True)

    (finding,) = run_check("pcie_link", evidence_of(node))

    assert (finding.gpu, finding.verdict) == (5, Verdict.REBOOT)


def _with_lanes(lanes: int) -> HealthPolicy:
    return HealthPolicy(machine_types={"a3-highgpu-8g": ExpectedHardware(pcie_lanes=lanes)})


def _all_of_width(node: NodeRoot, width: int) -> NodeRoot:
    for index in range(8):
        node.change_gpu(index, pcie=PcieLink(width, 16, 5, 5))
    return node


def test_lanes_that_all_gpus_lack_alike_are_told_once_and_condemn_no_node(node: NodeRoot) -> None:
    (finding,) = run_check("pcie_link", evidence_of(_all_of_width(node, 8)))

    assert (finding.gpu, finding.verdict) == (None, Verdict.WARN)
    assert "pcie_lanes" in finding.detail


def test_gpus_that_lack_lanes_unlike_each_other_are_broken(node: NodeRoot) -> None:
    _all_of_width(node, 8).change_gpu(5, pcie=PcieLink(4, 16, 5, 5))

    found = run_check("pcie_link", evidence_of(node))

    assert len(found) == 8
    assert {finding.verdict for finding in found} == {Verdict.REBOOT}


def test_policy_says_how_many_lanes_are_right(node: NodeRoot) -> None:
    _all_of_width(node, 8)

    assert run_check("pcie_link", evidence_of(node, policy=_with_lanes(8))) == []
    found = run_check("pcie_link", evidence_of(node, policy=_with_lanes(16)))
    assert {(f.verdict, f.detail) for f in found} == {(Verdict.REBOOT, "PCIe width 8 of 16")}
    assert len(found) == 8


def test_what_the_policy_does_not_say_of_a_machine_type_stays_expected(node: NodeRoot) -> None:
    node.remove_pci_device(node.gpu(5).pci_address)
    policy = HealthPolicy(machine_types={"a3-highgpu-8g": ExpectedHardware(network_interfaces=2)})

    (finding,) = run_check("inventory", evidence_of(node, policy=policy))

    assert finding.verdict is Verdict.REBOOT
    assert finding.detail.startswith("7 of 8 GPUs")


def test_gpus_are_looked_at_where_the_policy_only_counts_interfaces(node: NodeRoot) -> None:
    node.change_gpu(5, recovery_action=1)
    policy = HealthPolicy(machine_types={"n1-standard-8": ExpectedHardware(network_interfaces=1)})
    evidence = evidence_of(node, machine_type="n1-standard-8", policy=policy, job=None)

    assert [finding.gpu for finding in run_check("recovery_action", evidence)] == [5]


def test_links_that_a_machine_type_does_not_have_are_not_missed(node: NodeRoot) -> None:
    for index in range(8):
        node.change_gpu(index, nvlinks=(False,) * 18)
    by_design = HealthPolicy(machine_types={"x": ExpectedHardware(gpus=8, nvlinks=0)})
    undescribed = HealthPolicy(machine_types={"x": ExpectedHardware(gpus=8)})

    for policy in (by_design, undescribed):
        evidence = evidence_of(node, machine_type="x", policy=policy)
        assert run_check("nvlink", evidence) == []


def test_an_inactive_link_beside_active_ones_is_missed_on_any_machine_type(
    node: NodeRoot,
) -> None:
    node.change_gpu(5, nvlinks=(True, True, False))
    policy = HealthPolicy(machine_types={"x": ExpectedHardware(gpus=8)})

    (finding,) = run_check("nvlink", evidence_of(node, machine_type="x", policy=policy))

    assert (finding.gpu, finding.detail) == (5, "2 of 3 NVLinks active")


def test_a_threshold_of_the_policy_is_obeyed(node: NodeRoot) -> None:
    node.change_gpu(5, retired_pages=RetiredPages(11, False))
    policy = HealthPolicy(thresholds=Thresholds(retired_pages_bad=20))

    assert run_check("retired_pages", evidence_of(node, policy=policy)) == []
