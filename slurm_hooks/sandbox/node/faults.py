"""What can break on a pretended node with GPUs, and how it then looks to health programs.

A fault is cured by a reboot unless it lasts; then only the next VM of the name is free of it.
Standard library only.
"""

from __future__ import annotations

import enum
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from slurm_hooks.sandbox.gpu.state import Hang
from slurm_hooks.sandbox.node.driver_lines import DriverLines
from slurm_hooks.sandbox.node.root import NodeRoot, NodeRootError

_HIGHEST_XID = 9999
_MOST_ACTION = 7


class GpuFaultKind(enum.StrEnum):
    """The ways to break, most of them of one GPU."""

    LOST = "lost"
    MISSING = "missing"
    NO_DEVICE_FILE = "no-device-file"
    ROW_REMAP_FAILURE = "row-remap-failure"
    ECC = "ecc"
    NVLINK = "nvlink"
    RECOVERY_ACTION = "recovery-action"
    XID = "xid"
    NO_DRIVER = "no-driver"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class GpuFault:
    """One fault. `gpu` is a minor number. `number` is the Xid or the recovery action (NVML field
    230) where the kind has one. A lasting fault outlives reboots. Raises ValueError."""

    kind: GpuFaultKind
    gpu: int = 0
    number: int = 0
    lasting: bool = False

    def __post_init__(self) -> None:
        if self.gpu < 0:
            raise ValueError("gpu must be at least 0")
        if self.kind is GpuFaultKind.XID and not 0 < self.number <= _HIGHEST_XID:
            raise ValueError(f"an Xid is a number from 1 to {_HIGHEST_XID}")
        if self.kind is GpuFaultKind.RECOVERY_ACTION and not 0 <= self.number <= _MOST_ACTION:
            raise ValueError(f"a recovery action is a number from 0 to {_MOST_ACTION}")


def apply_fault(root: NodeRoot, fault: GpuFault) -> None:
    """Break a node that runs. Raises NodeRootError where it has not booted or lacks the GPU."""
    _break(root, fault)
    if fault.lasting:
        kept = [asdict(fault), *_kept(root)]
        root.lasting_faults.write_text(json.dumps(kept))


def apply_lasting_faults(root: NodeRoot) -> None:
    """Break a node that has just booted as it was broken before."""
    for values in reversed(_kept(root)):
        _break(root, parse_fault(values))


def parse_fault(values: Mapping[str, object]) -> GpuFault:
    """A fault from its JSON form. Raises ValueError saying what is wrong."""
    unknown = values.keys() - {"kind", "gpu", "number", "lasting"}
    if unknown:
        raise ValueError(f"unknown members: {', '.join(sorted(unknown))}")
    try:
        kind = GpuFaultKind(str(values.get("kind", "")))
    except ValueError:
        raise ValueError(f"kind must be one of {', '.join(GpuFaultKind)}") from None
    return GpuFault(
        kind,
        gpu=_whole_number(values, "gpu"),
        number=_whole_number(values, "number"),
        lasting=bool(values.get("lasting", False)),
    )


def set_driver_values(root: NodeRoot, values: Mapping[str, str | None]) -> None:
    """Change lines of the driver's state by their keys, see state_file.h; None removes one.

    Raises NodeRootError where the node has no driver, ValueError for what is no line.
    """
    lines = _driver_lines(root)
    for key, value in values.items():
        lines.set(key, value)
    lines.write(root.driver_state)


def _whole_number(values: Mapping[str, object], name: str) -> int:
    number = values.get(name, 0)
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"{name} must be a whole number")
    return number


def _kept(root: NodeRoot) -> list[dict[str, object]]:
    try:
        kept: list[dict[str, object]] = json.loads(root.lasting_faults.read_text())
    except FileNotFoundError:
        return []
    return kept


def _driver_lines(root: NodeRoot) -> DriverLines:
    try:
        return DriverLines.read(root.driver_state)
    except FileNotFoundError:
        root.boot()
        raise NodeRootError(f"{root.directory.name} has no GPUs") from None


def _break(root: NodeRoot, fault: GpuFault) -> None:
    lines = _driver_lines(root)
    index = lines.index_of(fault.gpu)
    if index is None:
        raise NodeRootError(f"{root.directory.name} has no GPU {fault.gpu}")
    _WAYS[fault.kind](root, lines, index, fault)
    lines.write(root.driver_state)


def _lose(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    lines.set(f"gpu.{index}.lost", "1")
    _log_xid(root, lines, index, 79, "GPU has fallen off the bus.")


def _take_away(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    shutil.rmtree(root.path("sys/bus/pci/devices", f"{lines.pci_address(index)}.0"))
    root.path("dev", f"nvidia{fault.gpu}").unlink(missing_ok=True)
    lines.remove_gpu(index)


def _remove_device_file(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    root.path("dev", f"nvidia{fault.gpu}").unlink(missing_ok=True)


def _fail_row_remap(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    lines.set(f"gpu.{index}.remapped_rows", "0,1,0,1")
    _log_xid(root, lines, index, 64, "Failed to persist row remap event to InfoROM")


def _count_ecc_error(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    key = f"gpu.{index}.ecc.1"
    lines.set(key, str(int(lines.get(key) or 0) + 1))
    _log_xid(root, lines, index, 95, "Uncontained ECC error")


def _cut_nvlink(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    if lines.get(f"gpu.{index}.nvlink.0") is None:
        raise NodeRootError(f"{root.directory.name} has no NVLinks")
    lines.set(f"gpu.{index}.nvlink.0", "0")


def _ask_for_recovery(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    lines.set(f"gpu.{index}.field.230", f"uint:{fault.number}")


def _log_any_xid(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    _log_xid(root, lines, index, fault.number, "pid='<unknown>', name=<unknown>")


def _unload_driver(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    lines.set("driver.loaded", "0")


def _hang(root: NodeRoot, lines: DriverLines, index: int, fault: GpuFault) -> None:
    lines.set(f"gpu.{index}.hang.nvmlDeviceGetFieldValues", Hang.STUBBORN)


def _log_xid(root: NodeRoot, lines: DriverLines, index: int, xid: int, text: str) -> None:
    root.log_to_kernel(f"NVRM: Xid (PCI:{lines.pci_address(index)}): {xid}, {text}")


_WAYS: Mapping[GpuFaultKind, Callable[[NodeRoot, DriverLines, int, GpuFault], None]] = {
    GpuFaultKind.LOST: _lose,
    GpuFaultKind.MISSING: _take_away,
    GpuFaultKind.NO_DEVICE_FILE: _remove_device_file,
    GpuFaultKind.ROW_REMAP_FAILURE: _fail_row_remap,
    GpuFaultKind.ECC: _count_ecc_error,
    GpuFaultKind.NVLINK: _cut_nvlink,
    GpuFaultKind.RECOVERY_ACTION: _ask_for_recovery,
    GpuFaultKind.XID: _log_any_xid,
    GpuFaultKind.NO_DRIVER: _unload_driver,
    GpuFaultKind.HANG: _hang,
}
