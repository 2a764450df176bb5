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

_A100_LINKS, _H100_LINKS, _B200_LINKS = 12, 18, 18

BUILT_IN = {
    "a2-highgpu-1g": ExpectedHardware(gpus=1),
    "a2-highgpu-2g": ExpectedHardware(gpus=2, nvlinks=_A100_LINKS),
    "a2-highgpu-4g": ExpectedHardware(gpus=4, nvlinks=_A100_LINKS),
    "a2-highgpu-8g": ExpectedHardware(gpus=8, nvlinks=_A100_LINKS),
    "a2-megagpu-16g": ExpectedHardware(gpus=16, nvlinks=_A100_LINKS),
    "a2-ultragpu-1g": ExpectedHardware(gpus=1),
    "a2-ultragpu-2g": ExpectedHardware(gpus=2, nvlinks=_A100_LINKS),
    "a2-ultragpu-4g": ExpectedHardware(gpus=4, nvlinks=_A100_LINKS),
    "a2-ultragpu-8g": ExpectedHardware(gpus=8, nvlinks=_A100_LINKS),
    "a3-highgpu-1g": ExpectedHardware(gpus=1),
    "a3-highgpu-2g": ExpectedHardware(gpus=2),
    "a3-highgpu-4g": ExpectedHardware(gpus=4),
    "a3-edgegpu-8g": ExpectedHardware(gpus=8, nvlinks=_H100_LINKS),
    "a3-highgpu-8g": ExpectedHardware(gpus=8, nvlinks=_H100_LINKS),
    "a3-megagpu-8g": ExpectedHardware(gpus=8, nvlinks=_H100_LINKS),
    "a3-ultragpu-8g": ExpectedHardware(gpus=8, nvlinks=_H100_LINKS, rdma_ports=8),
    "a4-highgpu-8g": ExpectedHardware(gpus=8, nvlinks=_B200_LINKS, rdma_ports=8),
    "a4x-highgpu-4g": ExpectedHardware(gpus=4, nvlinks=_B200_LINKS, rdma_ports=4),
    "g2-standard-4": ExpectedHardware(gpus=1, nvlinks=0),
    "g2-standard-8": ExpectedHardware(gpus=1, nvlinks=0),
    "g2-standard-12": ExpectedHardware(gpus=1, nvlinks=0),
    "g2-standard-16": ExpectedHardware(gpus=1, nvlinks=0),
    "g2-standard-24": ExpectedHardware(gpus=2, nvlinks=0),
    "g2-standard-32": ExpectedHardware(gpus=1, nvlinks=0),
    "g2-standard-48": ExpectedHardware(gpus=4, nvlinks=0),
    "g2-standard-96": ExpectedHardware(gpus=8, nvlinks=0),
}


def expected_hardware(host: Host, identity: Identity, policy: HealthPolicy) -> ExpectedHardware:
    """What this node must have: as the policy says for its machine type, the rest as we know it.

    A machine type that neither knows has as many GPUs as its PCI bus shows. Where nobody could
    tell the machine type, nobody can say how many GPUs there must be.
    """
    known = BUILT_IN.get(identity.machine_type, ExpectedHardware())
    said = policy.machine_types.get(identity.machine_type, ExpectedHardware())
    expected = ExpectedHardware(
        *(ours if theirs is None else theirs for theirs, ours in zip(said, known, strict=True))
    )
    if expected.gpus is None and identity.machine_type:
        return expected._replace(gpus=len(pci_gpus(host)))
    return expected


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
