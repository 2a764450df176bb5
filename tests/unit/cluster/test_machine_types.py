"""The catalogue of machine types as data."""

from __future__ import annotations

import pytest

from slurm_hooks.cluster.machine_types import MachineType, standard_catalogue
from slurm_hooks.cluster.topology import ProvisioningModel

CATALOGUE = standard_catalogue()


@pytest.mark.parametrize("name", sorted(CATALOGUE.machine_types))
def test_every_entry_holds_together(name: str) -> None:
    machine = CATALOGUE.machine_types[name]
    assert machine.name == name
    assert machine.cpus % (machine.sockets * machine.threads_per_core) == 0
    assert machine.memory_gb >= machine.cpus, "no machine type here has less than 1 GB per CPU"
    assert bool(machine.accelerator_type) == bool(machine.accelerator_count)
    assert machine.provisioning_models
    assert machine.boot_disk_types
    assert machine.architecture in ("X86_64", "ARM64")


@pytest.mark.parametrize(
    ("name", "cpus", "memory_gb", "accelerator_type", "accelerator_count"),
    [
        ("a3-highgpu-8g", 208, 1872, "NVIDIA_H100_80GB", 8),
        ("a3-megagpu-8g", 208, 1872, "NVIDIA_H100_MEGA_80GB", 8),
        ("a3-ultragpu-8g", 224, 2952, "NVIDIA_H200_141GB", 8),
        ("a4-highgpu-8g", 224, 3968, "NVIDIA_B200", 8),
        ("a4x-highgpu-4g", 140, 884, "NVIDIA_GB200", 4),
        ("n2-standard-8", 8, 32, "", 0),
        ("n1-standard-4", 4, 15, "", 0),
        ("c2-standard-60", 60, 240, "", 0),
    ],
)
def test_sizes(
    name: str, cpus: int, memory_gb: float, accelerator_type: str, accelerator_count: int
) -> None:
    machine = CATALOGUE.machine_types[name]
    assert (machine.cpus, machine.memory_gb) == (cpus, memory_gb)
    assert (machine.accelerator_type, machine.accelerator_count) == (
        accelerator_type,
        accelerator_count,
    )


def test_flex_start_is_for_gpu_machines_but_not_for_a4x() -> None:
    flex_start = {
        machine.name
        for machine in CATALOGUE.machine_types.values()
        if ProvisioningModel.FLEX_START in machine.provisioning_models
    }
    gpu_machines = {name for name in CATALOGUE.machine_types if _gpus(CATALOGUE.get(name))}
    assert flex_start == gpu_machines - {"a4x-highgpu-4g"}


def test_unknown_machine_type_is_nothing_and_has_a_nearest() -> None:
    assert CATALOGUE.get("a3-ultragpu") is None
    assert CATALOGUE.nearest("a3-ultragpu") == "a3-ultragpu-8g"
    assert CATALOGUE.nearest("") == ""


def _gpus(machine: MachineType | None) -> int:
    return machine.accelerator_count if machine else 0
