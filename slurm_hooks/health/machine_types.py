"""What each machine type has, so that a node that lacks something cannot pass for another kind.

Facts: Compute Engine's accelerator-optimised machine types.
"""

from __future__ import annotations

import os

from slurm_hooks.health import files
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import Identity
from slurm_hooks.health.policy import ExpectedHardware, HealthPolicy

NVIDIA_VENDOR = "0x10de"
_DISPLAY_3D_CLASS = "0x0302"

BUILT_IN = {
    "a3-highgpu-1g": ExpectedHardware(gpus=1),
    "a3-highgpu-2g": ExpectedHardware(gpus=2),
    "a3-highgpu-4g": ExpectedHardware(gpus=4),
    "a3-highgpu-8g": ExpectedHardware(gpus=8, nvlinks=18),
    "a3-megagpu-8g": ExpectedHardware(gpus=8, nvlinks=18),
    "a3-ultragpu-8g": ExpectedHardware(gpus=8, nvlinks=18, rdma_ports=8),
    "a4-highgpu-8g": ExpectedHardware(gpus=8, nvlinks=18, rdma_ports=8),
    "a4x-highgpu-4g": ExpectedHardware(gpus=4, nvlinks=18, rdma_ports=4),
}


def expected_hardware(host: Host, identity: Identity, policy: HealthPolicy) -> ExpectedHardware:
    """What this node must have: as the policy says for its machine type, else as we know it.

    A machine type that neither knows has as many GPUs as its PCI bus shows.
    """
    known = policy.machine_types.get(identity.machine_type) or BUILT_IN.get(identity.machine_type)
    return known or ExpectedHardware(gpus=len(pci_gpus(host)))


def pci_gpus(host: Host) -> tuple[str, ...]:
    """The PCI addresses of all NVIDIA GPUs that the kernel sees, in order."""
    directory = host.path("sys", "bus", "pci", "devices")
    try:
        names = os.listdir(directory)
    except OSError:
        return ()
    return tuple(sorted(name for name in names if _is_gpu(os.path.join(directory, name))))


def _is_gpu(device: str) -> bool:
    vendor = files.read_text(os.path.join(device, "vendor")).strip()
    kind = files.read_text(os.path.join(device, "class"))
    return vendor == NVIDIA_VENDOR and kind.startswith(_DISPLAY_3D_CLASS)
