"""The sandbox's nodes as real health runs see them: healthy after a boot, and broken as asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_hooks.health.driver.nvml import NvmlDriver
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import boot_of, read_identity
from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.policy import Deadlines, HealthPolicy
from slurm_hooks.health.policy_file import load_policy
from slurm_hooks.health.report import Report
from slurm_hooks.health.run import run_health
from slurm_hooks.sandbox.gpu.build import LIBRARY_NAME, build_driver_library
from slurm_hooks.sandbox.gpu.state import healthy_gpu
from slurm_hooks.sandbox.node.faults import (
    GpuFault,
    GpuFaultKind,
    apply_fault,
    apply_lasting_faults,
    parse_fault,
    set_driver_values,
)
from slurm_hooks.sandbox.node.hardware import NodeHardware
from slurm_hooks.sandbox.node.root import NodeRoot, NodeRootError, boot_node

A3U = NodeHardware(gpus=8, nvlinks=18, rdma_ports=8)
MACHINE_TYPE = "a3-ultragpu-8g"
NOWHERE = "127.0.0.1:9"
PATIENT = HealthPolicy(deadlines=Deadlines(prolog=30), disks=())
HASTY = HealthPolicy(deadlines=Deadlines(prolog=2), disks=())

Boot = Callable[..., NodeRoot]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_driver_library(tmp_path_factory.mktemp("driver") / LIBRARY_NAME)


@pytest.fixture
def boot(tmp_path: Path, library: Path) -> Boot:
    """Boot a VM; the same one each time unless another id is given."""
    root = NodeRoot(tmp_path / "c-p-0")

    def boot_once(vm_id: str = "11", hardware: NodeHardware = A3U) -> NodeRoot:
        boot_node(root, hardware, library, vm_id, NOWHERE)
        apply_lasting_faults(root)
        return root

    return boot_once


def host_of(root: NodeRoot) -> Host:
    """The node as programs see it, with its metadata read already."""
    host = Host(root=str(root.directory), name="c-p-0", metadata_url=f"http://{NOWHERE}")
    identity = Path(host.state_directory) / "identity"
    identity.parent.mkdir(parents=True, exist_ok=True)
    identity.write_text(f"{boot_of(host)}\n{root.boot().vm_id}\n{MACHINE_TYPE}\n")
    return host


def look(root: NodeRoot, policy: HealthPolicy = PATIENT) -> Report:
    return run_health(Context.PROLOG, host_of(root), policy)


def verdicts(report: Report) -> set[tuple[str, Verdict]]:
    return {(finding.check, finding.verdict) for finding in report.findings}


@pytest.mark.parametrize("context", list(Context))
def test_node_that_has_booted_is_healthy(boot: Boot, context: Context) -> None:
    assert run_health(context, host_of(boot()), PATIENT).findings == ()


def test_node_without_gpus_is_healthy_too(boot: Boot) -> None:
    root = boot(hardware=NodeHardware())
    host = host_of(root)
    identity = Path(host.state_directory) / "identity"
    identity.write_text(identity.read_text().replace(MACHINE_TYPE, "n2-standard-8"))
    assert run_health(Context.PROLOG, host, PATIENT).findings == ()


@pytest.mark.parametrize(
    ("kind", "number", "check", "verdict"),
    [
        ("lost", 0, "gpu_lost", Verdict.REBOOT),
        ("missing", 0, "inventory", Verdict.REBOOT),
        ("no-device-file", 0, "inventory", Verdict.REBOOT),
        ("row-remap-failure", 0, "row_remap", Verdict.REPLACE),
        ("ecc", 0, "xid", Verdict.RESET),
        ("nvlink", 0, "nvlink", Verdict.RESET),
        ("recovery-action", 2, "recovery_action", Verdict.REBOOT),
        ("xid", 119, "xid", Verdict.RESET),
        ("no-driver", 0, "driver", Verdict.REBOOT),
    ],
)
@pytest.mark.parametrize("gpu", [0, 3, 7])
def test_each_fault_is_found_on_whichever_gpu(
    boot: Boot, kind: str, number: int, check: str, verdict: Verdict, gpu: int
) -> None:
    root = boot()
    apply_fault(root, GpuFault(GpuFaultKind(kind), gpu=gpu, number=number))
    report = look(root)
    assert (check, verdict) in verdicts(report)
    assert report.verdict.fails_job


def test_gpu_that_hangs_is_found(boot: Boot) -> None:
    root = boot()
    apply_fault(root, GpuFault(GpuFaultKind.HANG, gpu=3))
    assert ("probe_hang", Verdict.REBOOT) in verdicts(look(root, HASTY))


def test_every_kind_of_fault_is_looked_for_here() -> None:
    looked_for = {"hang"}
    for mark in test_each_fault_is_found_on_whichever_gpu.pytestmark:  # type: ignore[attr-defined]
        if mark.args[0] != "gpu":
            looked_for |= {values[0] for values in mark.args[1]}
    assert looked_for == set(GpuFaultKind)


def test_xid_of_an_application_breaks_nothing(boot: Boot) -> None:
    root = boot()
    apply_fault(root, GpuFault(GpuFaultKind.XID, number=31))
    assert not look(root).verdict.fails_job


def test_two_faults_are_both_there(boot: Boot) -> None:
    root = boot()
    apply_fault(root, GpuFault(GpuFaultKind.MISSING, gpu=2))
    apply_fault(root, GpuFault(GpuFaultKind.NVLINK, gpu=5))
    report = look(root)
    assert {("inventory", Verdict.REBOOT), ("nvlink", Verdict.RESET)} <= verdicts(report)
    assert {finding.gpu for finding in report.findings if finding.check == "nvlink"} == {5}


def test_gpus_behind_a_missing_one_move_up_as_nvml_counts(boot: Boot) -> None:
    root = boot()
    apply_fault(root, GpuFault(GpuFaultKind.MISSING, gpu=2))
    driver = NvmlDriver(host_of(root).driver_library)
    driver.open()
    found = [(gpu.minor, gpu.pci_address) for gpu in map(driver.gpu, range(driver.count()))]
    driver.close()
    assert found == [(minor, healthy_gpu(minor).pci_address) for minor in (0, 1, 3, 4, 5, 6, 7)]


def test_reboot_has_a_new_boot_id_and_cures_what_does_not_last(boot: Boot) -> None:
    root = boot()
    before = boot_of(host_of(root))
    apply_fault(root, GpuFault(GpuFaultKind.LOST))
    root.path("var/lib/kept").touch()
    root.path("etc/slurm-hooks/health.yaml").write_text("observe: true\n")
    boot()
    assert boot_of(host_of(root)) not in ("", before)
    assert look(root).findings == ()
    assert root.path("var/lib/kept").exists()
    assert load_policy(host_of(root)).observe


def test_fault_that_lasts_outlives_reboots_and_not_the_vm(boot: Boot) -> None:
    root = boot()
    apply_fault(root, GpuFault(GpuFaultKind.LOST, gpu=1, lasting=True))
    apply_fault(root, GpuFault(GpuFaultKind.NVLINK, gpu=4, lasting=True))
    for _ in range(2):
        boot()
        assert {("gpu_lost", Verdict.REBOOT), ("nvlink", Verdict.RESET)} <= verdicts(look(root))
    boot("12")
    assert look(root).findings == ()


def test_next_vm_of_the_name_has_an_empty_disk(boot: Boot) -> None:
    root = boot()
    root.path("var/lib/kept").touch()
    boot("12")
    assert not root.path("var/lib/kept").exists()
    assert read_identity(host_of(root)).instance_id == "12"


def test_file_systems_of_this_machine_are_not_the_nodes(boot: Boot) -> None:
    assert load_policy(host_of(boot())).disks == ()


def test_records_of_the_kernel_log_count_on(boot: Boot) -> None:
    root = boot()
    root.log_to_kernel("one")
    root.log_to_kernel("two")
    lines = root.kernel_log.read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == ["0", "1", "2"]
    assert [line.rpartition(";")[2] for line in lines[1:]] == ["one", "two"]


def test_driver_says_what_a_test_wants(boot: Boot) -> None:
    root = boot()
    set_driver_values(root, {"gpu.2.field.230": "uint:2", "gpu.0.serial": None})
    assert ("recovery_action", Verdict.REBOOT) in verdicts(look(root))
    assert "gpu.0.serial=" not in root.driver_state.read_text()


@pytest.mark.parametrize("key", ["lost", "gpu.x.lost", "gpu.0.lost\ngpu.1.lost", "driver."])
def test_key_that_is_none_is_refused(boot: Boot, key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        set_driver_values(boot(), {key: "1"})


def test_value_of_more_than_one_line_is_refused(boot: Boot) -> None:
    with pytest.raises(ValueError, match="more than one line"):
        set_driver_values(boot(), {"gpu.0.lost": "0\ngpu.1.lost=1"})


def test_node_that_has_not_booted_or_lacks_the_gpu_cannot_be_broken(
    boot: Boot, tmp_path: Path
) -> None:
    with pytest.raises(NodeRootError, match="has not booted"):
        apply_fault(NodeRoot(tmp_path / "c-p-9"), GpuFault(GpuFaultKind.LOST))
    with pytest.raises(NodeRootError, match="has no GPU 8"):
        apply_fault(boot(), GpuFault(GpuFaultKind.LOST, gpu=8))
    with pytest.raises(NodeRootError, match="has no GPUs"):
        apply_fault(boot(hardware=NodeHardware()), GpuFault(GpuFaultKind.LOST))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"kind": "melted"}, "kind must be one of lost, "),
        ({}, "kind must be one of"),
        ({"kind": "lost", "gpu": -1}, "at least 0"),
        ({"kind": "lost", "gpu": "3"}, "gpu must be a whole number"),
        ({"kind": "lost", "index": 3}, "unknown members: index"),
        ({"kind": "xid"}, "an Xid is a number"),
        ({"kind": "xid", "number": 10_000}, "an Xid is a number"),
        ({"kind": "recovery-action", "number": 8}, "a recovery action is a number"),
    ],
)
def test_fault_that_is_none_is_refused(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_fault(values)
