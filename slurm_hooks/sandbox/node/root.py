"""The pretended node of a VM in a directory: bus, devices, driver library, kernel log, disk.

Health programs take such a directory by --root, as a chroot. A boot makes all of it anew but `etc`
and `var`, which are the VM's disk; the next VM of the name starts from nothing. Standard library
only: a guest makes it at every boot.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from slurm_hooks.sandbox.gpu.build import LIBRARY_NAME
from slurm_hooks.sandbox.gpu.state import (
    STATE_NAME,
    DriverState,
    healthy_gpu,
    write_state,
)
from slurm_hooks.sandbox.node.hardware import NodeHardware

_DISK = frozenset({"etc", "var"})
_NVIDIA_VENDOR = "0x10de"
_THREE_D_CONTROLLER = "0x030200"
_POLICY = """\
# The file systems below this root are those of the machine that the sandbox runs on.
disks: []
"""


class NodeRootError(Exception):
    """There is no such pretended node; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot of one VM. `time` in seconds since the epoch, `metadata_host` is HOST:PORT."""

    vm_id: str
    metadata_host: str
    time: float


@dataclass(frozen=True, slots=True)
class NodeRoot:
    """The root of one node, made or not."""

    directory: Path

    def path(self, *parts: str) -> Path:
        """A path of the node."""
        return self.directory.joinpath(*parts)

    @property
    def driver_state(self) -> Path:
        """What the pretended driver says, see sandbox/gpu/state_file.h."""
        return self.path("usr", "lib", STATE_NAME)

    @property
    def kernel_log(self) -> Path:
        """The records of /dev/kmsg."""
        return self.path("dev", "kmsg")

    @property
    def lasting_faults(self) -> Path:
        """What a reboot does not cure; on the VM's disk for that."""
        return self.path("var", "lib", "sandbox-faults")

    def boot(self) -> Boot:
        """The present boot. Raises NodeRootError where the node has not booted."""
        try:
            vm_id, metadata_host, seconds = self.path("boot").read_text().split("\n")[:3]
            return Boot(vm_id, metadata_host, float(seconds))
        except (OSError, ValueError):
            raise NodeRootError(
                f"{self.directory.name} has not booted: wait until its node is up"
            ) from None

    def write_uptime(self) -> None:
        """Bring /proc/uptime up to date, which the kernel of a real node does by itself."""
        seconds = max(0.0, time.time() - self.boot().time)
        _write(self.path("proc", "uptime"), f"{seconds:.2f} 0.00\n")

    def log_to_kernel(self, text: str) -> None:
        """Add a record to the kernel log, as of now. Raises NodeRootError before a boot."""
        microseconds = int(max(0.0, time.time() - self.boot().time) * 1e6)
        sequence = self.kernel_log.read_text().count("\n")
        with self.kernel_log.open("a") as log:
            log.write(f"6,{sequence},{microseconds},-;{text}\n")


def boot_node(
    root: NodeRoot, hardware: NodeHardware, library: Path, vm_id: str, metadata_host: str
) -> None:
    """Let a VM boot: a new boot id, healthy devices, and the disk of that very VM."""
    _clear(root, vm_id)
    for name in ("etc/slurm-hooks", "var/lib", "var/log", "dev", "proc", "sys/bus/pci/devices"):
        root.path(name).mkdir(parents=True, exist_ok=True)
    if not root.path("etc/slurm-hooks/health.yaml").exists():
        _write(root.path("etc/slurm-hooks/health.yaml"), _POLICY)
    _write(root.path("proc/sys/kernel/random/boot_id"), f"{uuid.uuid4()}\n")
    _write(root.kernel_log, "6,0,0,-;Linux version 6.1.0-pretended\n")
    _add_rdma_ports(root, hardware.rdma_ports)
    if hardware.gpus:
        _add_gpus(root, hardware, library)
    _write(root.path("boot"), f"{vm_id}\n{metadata_host}\n{time.time()}\n")
    root.write_uptime()


def _clear(root: NodeRoot, vm_id: str) -> None:
    """Remove all that does not outlive a reboot, and the whole of another VM."""
    try:
        is_same = root.boot().vm_id == vm_id
    except NodeRootError:
        is_same = False
    root.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in root.directory.iterdir():
        if is_same and path.name in _DISK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _add_gpus(root: NodeRoot, hardware: NodeHardware, library: Path) -> None:
    gpus = tuple(
        replace(healthy_gpu(minor), nvlinks=(True,) * hardware.nvlinks)
        for minor in range(hardware.gpus)
    )
    root.path("usr", "lib").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(library, root.path("usr", "lib", LIBRARY_NAME))
    write_state(root.driver_state, DriverState(gpus=gpus))
    for gpu in gpus:
        _write(root.path("dev", f"nvidia{gpu.minor}"), "")
        device = root.path("sys/bus/pci/devices", f"{gpu.pci_address}.0")
        _write(device / "vendor", f"{_NVIDIA_VENDOR}\n")
        _write(device / "class", f"{_THREE_D_CONTROLLER}\n")


def _add_rdma_ports(root: NodeRoot, count: int) -> None:
    for index in range(count):
        port = root.path("sys/class/infiniband", f"mlx5_{index}", "ports", "1")
        _write(port / "state", "4: ACTIVE\n")
        _write(port / "phys_state", "5: LinkUp\n")
        _write(port / "rate", "400 Gb/sec (4X NDR)\n")
        _write(port / "counters" / "link_downed", "0\n")


def _write(path: Path, text: str) -> None:
    """Replace a file at once; programs of the node may be reading it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(0o644)
    temporary.replace(path)
