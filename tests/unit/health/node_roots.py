"""Whole nodes in a directory: what health checks read, with the real binding on a pretended driver.

`NodeRoot(directory, library)` is a node without GPUs; `with_gpus(8)` gives it healthy ones. What a
test changes afterwards (`change_gpu`, `change_driver`, files below `path`) the next call sees.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from slurm_hooks.health.driver.nvml import NvmlDriver
from slurm_hooks.health.host import Host
from slurm_hooks.sandbox.gpu.build import LIBRARY_NAME
from slurm_hooks.sandbox.gpu.state import (
    STATE_NAME,
    DriverState,
    GpuState,
    healthy_gpu,
    write_state,
)

BOOT_ID = "1f6c3a52-9b1d-4f0e-8a77-0c2d5e6f7a81"
UPTIME_SECONDS = 36_000
NVIDIA_VENDOR = "0x10de"
THREE_D_CONTROLLER = "0x030200"


class NodeRoot:
    """One pretended node. `library` is a built driver library; each root gets its own copy."""

    def __init__(self, directory: Path, library: Path, name: str = "g-0") -> None:
        self.directory = directory
        self.name = name
        self._library = library
        self._state = DriverState()
        self.write("proc/sys/kernel/random/boot_id", f"{BOOT_ID}\n")
        self.write("proc/uptime", f"{UPTIME_SECONDS:.2f} 0.00\n")
        self.kernel_log("6,0,0,-;Linux version 6.1.0")
        for kept in ("dev", "etc", "sys/bus/pci/devices", "var/lib", "var/log"):
            self.path(kept).mkdir(parents=True, exist_ok=True)

    def path(self, *parts: str) -> Path:
        """A path of the node."""
        return self.directory.joinpath(*parts)

    def write(self, path: str, text: str) -> Path:
        """Write a file of the node, and the directories above it."""
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def kernel_log(self, *records: str) -> None:
        """Add records to /dev/kmsg: `priority,sequence,microseconds,flags;text`."""
        file = self.path("dev", "kmsg")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as log:
            log.writelines(f"{record}\n" for record in records)

    def with_gpus(self, count: int) -> NodeRoot:
        """Give the node that many healthy GPUs, on the bus, in /dev and in the driver."""
        return self.with_driver(DriverState(gpus=tuple(healthy_gpu(n) for n in range(count))))

    def with_driver(self, state: DriverState) -> NodeRoot:
        """Give the node a driver, and for each of its GPUs a PCI device and a device file."""
        target = self.path("usr", "lib", LIBRARY_NAME)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copyfile(self._library, target)
        self._set(state)
        for gpu in state.gpus:
            self.write(f"dev/nvidia{gpu.minor}", "")
            self.add_pci_device(gpu.pci_address, NVIDIA_VENDOR, THREE_D_CONTROLLER)
        return self

    def add_pci_device(self, address: str, vendor: str, device_class: str) -> None:
        """Put a device on the bus; `address` is `0000:9b:00`."""
        self.write(f"sys/bus/pci/devices/{address}.0/vendor", f"{vendor}\n")
        self.write(f"sys/bus/pci/devices/{address}.0/class", f"{device_class}\n")

    def remove_pci_device(self, address: str) -> None:
        """Take a device off the bus."""
        shutil.rmtree(self.path("sys/bus/pci/devices", f"{address}.0"))

    def remove_driver_library(self) -> None:
        """Leave the node without a driver library."""
        self.path("usr", "lib", LIBRARY_NAME).unlink()

    def gpu(self, index: int) -> GpuState:
        """What the pretended driver says about a GPU."""
        return self._state.gpus[index]

    def change_gpu(self, index: int, **changes: Any) -> None:
        """Change fields of one GpuState."""
        gpus = list(self._state.gpus)
        gpus[index] = replace(gpus[index], **changes)
        self._set(replace(self._state, gpus=tuple(gpus)))

    def change_driver(self, **changes: Any) -> None:
        """Change fields of the DriverState."""
        self._set(replace(self._state, **changes))

    def host(self) -> Host:
        """The node as checks see it."""
        return Host(root=str(self.directory), name=self.name)

    def driver(self) -> NvmlDriver:
        """The real driver class on this node's library; not opened. One at a time is open."""
        return NvmlDriver(self.host().driver_library)

    def _set(self, state: DriverState) -> None:
        self._state = state
        write_state(self.path("usr", "lib", STATE_NAME), state)
