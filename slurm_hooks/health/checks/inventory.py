"""Inventory: as many GPUs as the machine type has, seen alike by the bus, the files, the driver."""

from __future__ import annotations

import os
from collections.abc import Iterator

from slurm_hooks.health.checks.gpus import has_job_lost_gpu
from slurm_hooks.health.driver.model import DriverError
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.machine_types import pci_gpus
from slurm_hooks.health.model import Context, Finding, Verdict

_DEVICE_FILE = "nvidia"
"""And its number. Other files of the driver begin so, too."""


class InventoryCheck:
    """Counts the GPUs in three ways and compares with what must be there."""

    name = "inventory"
    contexts = frozenset(Context)
    summary = "the node has the GPUs of its machine type, on the bus, in /dev and in the driver"
    explanation = (
        "Compares what the machine type has (or the policy says, under machine_types) with the"
        " NVIDIA devices of /sys/bus/pci/devices, the files /dev/nvidiaN and the driver's count."
        " Any difference means REBOOT; the controller replaces the VM if it comes again. A machine"
        " type that nobody could tell is UNKNOWN: then the three are only compared with each other."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Count and compare."""
        on_bus = len(pci_gpus(evidence.host))
        wanted = evidence.expected.gpus
        if wanted is None:
            detail = "the machine type is not known, so nobody can say which GPUs must be here"
            yield Finding(self.name, Verdict.UNKNOWN, detail)
            if on_bus == 0 and not evidence.expects_gpus:
                return
            wanted = on_bus
        if wanted == 0 and not evidence.expects_gpus:
            return
        counts = {"PCI": on_bus, "/dev": _device_files(evidence.host)}
        in_driver = _in_driver(evidence)
        if in_driver is not None:
            counts["driver"] = in_driver
        if wanted == 0 or any(count != wanted for count in counts.values()):
            seen = ", ".join(f"{place} {count}" for place, count in counts.items())
            detail = f"{min(counts.values())} of {wanted} GPUs ({seen})"
            is_of_job = has_job_lost_gpu(evidence)
            yield Finding(self.name, Verdict.REBOOT, detail, of_job=is_of_job)


def _device_files(host: Host) -> int:
    try:
        names = os.listdir(host.path("dev"))
    except OSError:
        return 0
    numbers = [name[len(_DEVICE_FILE) :] for name in names if name.startswith(_DEVICE_FILE)]
    return sum(number.isascii() and number.isdigit() for number in numbers)


def _in_driver(evidence: Evidence) -> int | None:
    """The driver's count; None where the check `driver` has to say why there is none."""
    if evidence.driver_error() is not None:
        return None
    try:
        return evidence.driver.count()
    except DriverError:
        return 0
