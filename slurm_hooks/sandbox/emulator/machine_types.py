"""The machine types that the emulator knows: their sizes, their GPUs and the quotas they use.

Source: Compute Engine's machine family pages, 2026-11. GPU shapes are a table; the general
families follow from their names, e.g. `n2-standard-8`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MIB_PER_GIB = 1024


@dataclass(frozen=True, slots=True)
class MachineType:
    """A machine type. `accelerator_type` is empty for one without built-in GPUs."""

    name: str
    guest_cpus: int
    memory_mb: int
    accelerator_type: str = ""
    accelerator_count: int = 0

    @property
    def architecture(self) -> str:
        """X86_64 or ARM64, by the family."""
        return "ARM64" if self.name.startswith(_ARM_FAMILIES) else "X86_64"


_ARM_FAMILIES = ("a4x-", "c4a-", "t2a-")
_GPU_SHAPES = (
    ("a2-highgpu-1g", 12, 85, "nvidia-tesla-a100", 1),
    ("a2-highgpu-2g", 24, 170, "nvidia-tesla-a100", 2),
    ("a2-highgpu-4g", 48, 340, "nvidia-tesla-a100", 4),
    ("a2-highgpu-8g", 96, 680, "nvidia-tesla-a100", 8),
    ("a2-megagpu-16g", 96, 1360, "nvidia-tesla-a100", 16),
    ("a2-ultragpu-1g", 12, 170, "nvidia-a100-80gb", 1),
    ("a2-ultragpu-2g", 24, 340, "nvidia-a100-80gb", 2),
    ("a2-ultragpu-4g", 48, 680, "nvidia-a100-80gb", 4),
    ("a2-ultragpu-8g", 96, 1360, "nvidia-a100-80gb", 8),
    ("a3-highgpu-1g", 26, 234, "nvidia-h100-80gb", 1),
    ("a3-highgpu-2g", 52, 468, "nvidia-h100-80gb", 2),
    ("a3-highgpu-4g", 104, 936, "nvidia-h100-80gb", 4),
    ("a3-highgpu-8g", 208, 1872, "nvidia-h100-80gb", 8),
    ("a3-edgegpu-8g", 208, 1872, "nvidia-h100-80gb", 8),
    ("a3-megagpu-8g", 208, 1872, "nvidia-h100-mega-80gb", 8),
    ("a3-ultragpu-8g", 224, 2952, "nvidia-h200-141gb", 8),
    ("a4-highgpu-8g", 224, 3968, "nvidia-b200", 8),
    ("a4x-highgpu-4g", 140, 884, "nvidia-gb200", 4),
    ("g2-standard-4", 4, 16, "nvidia-l4", 1),
    ("g2-standard-8", 8, 32, "nvidia-l4", 1),
    ("g2-standard-12", 12, 48, "nvidia-l4", 1),
    ("g2-standard-16", 16, 64, "nvidia-l4", 1),
    ("g2-standard-24", 24, 96, "nvidia-l4", 2),
    ("g2-standard-32", 32, 128, "nvidia-l4", 1),
    ("g2-standard-48", 48, 192, "nvidia-l4", 4),
    ("g2-standard-96", 96, 384, "nvidia-l4", 8),
)
_FIXED_SHAPES = (
    ("f1-micro", 1, 0.6),
    ("g1-small", 1, 1.7),
    ("e2-micro", 2, 1),
    ("e2-small", 2, 2),
    ("e2-medium", 2, 4),
    ("h3-standard-88", 88, 352),
    ("h4d-standard-192", 192, 720),
    ("h4d-highmem-192-lssd", 192, 1488),
)
_FAMILY = re.compile(
    r"(?P<family>e2|n1|n2|n2d|n4|c2|c2d|c3|c3d|c4|t2d)-(?P<kind>standard|highmem|highcpu)-"
    r"(?P<cpus>1|2|4|8|16|22|30|32|44|48|60|64|80|88|96|112|128|176|192|224)"
)
_GIB_PER_CPU = {"standard": 4.0, "highmem": 8.0, "highcpu": 1.0}

_KNOWN = {
    name: MachineType(name, cpus, gib * _MIB_PER_GIB, accelerator, count)
    for name, cpus, gib, accelerator, count in _GPU_SHAPES
} | {name: MachineType(name, cpus, int(gib * _MIB_PER_GIB)) for name, cpus, gib in _FIXED_SHAPES}

GPU_METRICS = {
    "nvidia-tesla-a100": "NVIDIA_A100_GPUS",
    "nvidia-a100-80gb": "NVIDIA_A100_80GB_GPUS",
    "nvidia-h100-80gb": "NVIDIA_H100_GPUS",
    "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA_GPUS",
    "nvidia-h200-141gb": "NVIDIA_H200_GPUS",
    "nvidia-b200": "NVIDIA_B200_GPUS",
    "nvidia-gb200": "NVIDIA_GB200_GPUS",
    "nvidia-l4": "NVIDIA_L4_GPUS",
    "nvidia-tesla-t4": "NVIDIA_T4_GPUS",
    "nvidia-tesla-v100": "NVIDIA_V100_GPUS",
    "nvidia-tesla-p100": "NVIDIA_P100_GPUS",
    "nvidia-tesla-p4": "NVIDIA_P4_GPUS",
}
"""The quota metric of each GPU type."""


def find(name: str) -> MachineType | None:
    """The machine type of that bare name; None when there is none."""
    known = _KNOWN.get(name)
    if known is not None:
        return known
    match = _FAMILY.fullmatch(name)
    if match is None:
        return None
    cpus = int(match["cpus"])
    return MachineType(name, cpus, int(cpus * _GIB_PER_CPU[match["kind"]] * _MIB_PER_GIB))


def listed() -> list[MachineType]:
    """The machine types that a list shows, by name: all GPU shapes and common general ones."""
    general = (
        find(f"{family}-{kind}-{cpus}")
        for family in ("e2", "n2", "c2d", "n1")
        for kind in ("standard", "highmem", "highcpu")
        for cpus in (2, 4, 8, 16, 32)
    )
    found = [*_KNOWN.values(), *(machine for machine in general if machine is not None)]
    return sorted(found, key=lambda machine: machine.name)
