"""What a pretended driver says, as values, and how they are written for its library.

The library (libnvidia-ml.c) reads `libnvidia-ml.state` beside itself anew at every call;
state_file.h describes the lines.
"""

from __future__ import annotations

import enum
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slurm_hooks.health.driver.model import (
    EccCounts,
    Fabric,
    GpuMemory,
    NvLinkErrors,
    PcieErrors,
    PcieLink,
    RemappedRows,
    RetiredPages,
    SramErrors,
    ThrottleTimes,
)

STATE_NAME = "libnvidia-ml.state"
ATTACH = "attach"
"""What an init does besides its call, unless it is told not to attach to GPUs."""

_HEALTHY_FABRIC = Fabric(state=3, status=0, health_mask=0x51AA, health_summary=1)
"""Registered; nothing degraded, no wrong configuration, a partition and a manager."""

_GIBIBYTE = 1024**3
_NO_REMAPPED_ROWS = RemappedRows(0, 0, False, False)
_NO_ECC_ERRORS = EccCounts(0, 0)
_NO_SRAM_ERRORS = SramErrors(0, 0, 0, False)
_NO_NVLINK_COUNTERS = NvLinkErrors(None, None)
_FULL_PCIE = PcieLink(16, 16, 5, 5)
_NO_PCIE_ERRORS = PcieErrors(0, 0, 0, 0)
_NEVER_THROTTLED = ThrottleTimes(0, 0, 0, 0)
_UNUSED_MEMORY = GpuMemory(80 * _GIBIBYTE, 0, _GIBIBYTE // 2)


class Hang(enum.StrEnum):
    """How a call never returns: killable by a signal, or by SIGKILL alone."""

    KILLABLE = "killable"
    STUBBORN = "stubborn"


@dataclass(frozen=True, slots=True)
class GpuState:
    """One GPU, by default a healthy H100. None for what it does not support.

    `pci_address` is `0000:9b:00`. `processes` are ids of compute processes. `errors` gives NVML's
    error number for a call by the call's name in C, such as nvmlDeviceGetUUID, `hangs` likewise,
    and `slow` the milliseconds that it takes.
    `raw` overrides single lines of the file by their keys, garbage included; None leaves out.
    """

    minor: int
    pci_address: str
    uuid: str | None
    serial: str | None = "1654022000000"
    is_lost: bool = False
    recovery_action: int | None = 0
    remapped_rows: RemappedRows | None = _NO_REMAPPED_ROWS
    ecc: EccCounts | None = _NO_ECC_ERRORS
    sram: SramErrors | None = _NO_SRAM_ERRORS
    retired_pages: RetiredPages | None = None
    nvlinks: tuple[bool, ...] = (True,) * 18
    nvlink_errors: NvLinkErrors = _NO_NVLINK_COUNTERS
    fabric: Fabric | None = _HEALTHY_FABRIC
    pcie: PcieLink | None = _FULL_PCIE
    pcie_errors: PcieErrors = _NO_PCIE_ERRORS
    throttle_times: ThrottleTimes = _NEVER_THROTTLED
    processes: tuple[int, ...] = ()
    memory: GpuMemory | None = _UNUSED_MEMORY
    is_persistence_on: bool | None = True
    is_inforom_good: bool | None = True
    is_in_multi_instance_mode: bool | None = False
    errors: Mapping[str, int] = field(default_factory=dict)
    hangs: Mapping[str, Hang] = field(default_factory=dict)
    slow: Mapping[str, int] = field(default_factory=dict)
    raw: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DriverState:
    """A whole node's driver. `counted` is what NVML counts, None for all GPUs. `errors`, `hangs`
    and `slow` are for calls about no GPU, ATTACH among them, and for calls about any GPU."""

    gpus: tuple[GpuState, ...] = ()
    version: str = "570.133.20"
    is_loaded: bool = True
    counted: int | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    hangs: Mapping[str, Hang] = field(default_factory=dict)
    slow: Mapping[str, int] = field(default_factory=dict)
    raw: Mapping[str, str | None] = field(default_factory=dict)


def healthy_gpu(minor: int) -> GpuState:
    """A healthy GPU with a place and a name of its own."""
    return GpuState(
        minor=minor,
        pci_address=f"0000:{0x04 + minor:02x}:00",
        uuid=f"GPU-00000000-0000-0000-0000-{minor:012d}",
        serial=f"{1654022000000 + minor}",
    )


def write_state(path: Path, state: DriverState) -> None:
    """Put the state in the place of the old one, at once and whole."""
    lines = [f"driver.{key}={value}\n" for key, value in _driver_lines(state).items()]
    for index, gpu in enumerate(state.gpus):
        lines += [f"gpu.{index}.{key}={value}\n" for key, value in _gpu_lines(gpu).items()]
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(lines)
    Path(temporary).chmod(0o644)
    Path(temporary).replace(path)


def _driver_lines(state: DriverState) -> dict[str, str]:
    lines: dict[str, str | None] = {
        "loaded": str(int(state.is_loaded)),
        "version": state.version,
        "count": str(len(state.gpus) if state.counted is None else state.counted),
        **dict(_faults(state)),
        **state.raw,
    }
    return {key: value for key, value in lines.items() if value is not None}


def _gpu_lines(gpu: GpuState) -> dict[str, str]:
    lines: dict[str, str | None] = {
        "lost": str(int(gpu.is_lost)),
        **dict(_identity(gpu)),
        **dict(_memory(gpu)),
        **dict(_links(gpu)),
        **dict(_clocks_and_use(gpu)),
        **dict(_faults(gpu)),
        **gpu.raw,
    }
    return {key: value for key, value in lines.items() if value is not None}


def _faults(subject: GpuState | DriverState) -> Iterator[tuple[str, str]]:
    for call, number in subject.errors.items():
        yield f"error.{call}", str(number)
    for call, hang in subject.hangs.items():
        yield f"hang.{call}", hang
    for call, milliseconds in subject.slow.items():
        yield f"slow.{call}", str(milliseconds)


def _identity(gpu: GpuState) -> Iterator[tuple[str, str | None]]:
    yield "minor", str(gpu.minor)
    yield "pci", _numbers(*(int(part, 16) for part in gpu.pci_address.split(":")))
    yield "uuid", gpu.uuid
    yield "serial", gpu.serial


def _memory(gpu: GpuState) -> Iterator[tuple[str, str | None]]:
    yield "field.230", _field("uint", gpu.recovery_action)
    if (rows := gpu.remapped_rows) is not None:
        yield (
            "remapped_rows",
            _numbers(rows.corrected, rows.uncorrected, rows.is_pending, rows.has_failed),
        )
    if (ecc := gpu.ecc) is not None:
        yield "ecc.0", str(ecc.corrected)
        yield "ecc.1", str(ecc.uncorrected)
    if (sram := gpu.sram) is not None:
        yield "sram", _numbers(sram.parity, sram.sec_ded, sram.corrected, sram.is_over_threshold)
    if (pages := gpu.retired_pages) is not None:
        yield "retired_pages.0", "0"
        yield "retired_pages.1", str(pages.count)
        yield "retired_pages.pending", str(int(pages.is_pending))
    if (memory := gpu.memory) is not None:
        yield "memory", _numbers(memory.total, memory.reserved, memory.used)


def _links(gpu: GpuState) -> Iterator[tuple[str, str | None]]:
    yield "field.91", _field("uint", len(gpu.nvlinks))
    for link, is_active in enumerate(gpu.nvlinks):
        yield f"nvlink.{link}", str(int(is_active))
        is_first = link == 0
        recoveries = gpu.nvlink_errors.recoveries_failed
        yield f"field.214.{link}", _field("ulonglong", recoveries if is_first else None)
        rate = gpu.nvlink_errors.effective_bit_error_rate
        yield f"field.220.{link}", _field("ulonglong", _encoded_rate(rate) if is_first else None)
    if (fabric := gpu.fabric) is not None:
        yield (
            "fabric",
            _numbers(fabric.state, fabric.status, fabric.health_mask, fabric.health_summary),
        )
    if (pcie := gpu.pcie) is not None:
        yield "pcie.width", str(pcie.width)
        yield "pcie.max_width", str(pcie.max_width)
        yield "pcie.generation", str(pcie.generation)
        yield "pcie.max_generation", str(pcie.max_generation)
    errors = gpu.pcie_errors
    yield "field.94", _field("uint", errors.replays)
    yield "field.173", _field("uint", errors.correctable)
    yield "field.179", _field("uint", errors.non_fatal)
    yield "field.180", _field("uint", errors.fatal)


def _clocks_and_use(gpu: GpuState) -> Iterator[tuple[str, str | None]]:
    times = gpu.throttle_times
    yield "field.74", _field("ulonglong", times.power)
    yield "field.75", _field("ulonglong", times.thermal)
    yield "field.270", _field("ulonglong", times.hardware_thermal)
    yield "field.271", _field("ulonglong", times.hardware_power_brake)
    yield "processes.compute", _numbers(*gpu.processes)
    yield "processes.mps", ""
    yield "processes.graphics", ""
    yield "persistence", _flag(gpu.is_persistence_on)
    yield "inforom", _flag(gpu.is_inforom_good)
    yield "multi_instance_mode", _flag(gpu.is_in_multi_instance_mode)


def _numbers(*numbers: int) -> str:
    return ",".join(str(int(number)) for number in numbers)


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(int(value))


def _field(kind: str, value: int | None) -> str | None:
    return None if value is None else f"{kind}:{value}"


def _encoded_rate(rate: float | None) -> int | None:
    """NVML's form of a bit error rate: mantissa in bits 8-11, negated power of ten in bits 0-7."""
    if rate is None:
        return None
    if rate <= 0:
        return 15 << 8 | 255
    power = math.ceil(-math.log10(rate))
    return round(rate * 10.0**power) << 8 | power
