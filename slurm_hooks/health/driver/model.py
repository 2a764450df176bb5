"""What the NVIDIA driver says about GPUs, as plain values.

Facts: NVML's calls and error numbers. A call that a GPU does not support gives None; every other
failure raises DriverError, since a failing device must never pass for another kind of device.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from slurm_hooks.health.driver.protocol import Driver


class DriverFault(enum.IntEnum):
    """NVML's error numbers that mean something to us. OTHER stands for all the rest."""

    OTHER = -1
    NOT_SUPPORTED = 3
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    IRQ_ISSUE = 11
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    CORRUPTED_INFOROM = 14
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    LIB_RM_VERSION_MISMATCH = 18
    GPU_NOT_FOUND = 28
    UNKNOWN = 999


class DriverError(Exception):
    """An NVML call failed. `fault` says how, `number` is NVML's own, `call` what was asked."""

    def __init__(self, fault: DriverFault, number: int, call: str) -> None:
        super().__init__(f"{call}: {fault.name} ({number})")
        self.fault = fault
        self.number = number
        self.call = call


class Gpu(NamedTuple):
    """One GPU. `index` is NVML's (PCI order), `minor` the N of /dev/nvidiaN and of Slurm's
    SLURM_JOB_GPUS; the two can differ. `pci_address` is `0000:9b:00`: domain, bus, device."""

    index: int  # type: ignore[assignment]  # hides a method that nobody needs of a GPU
    minor: int
    pci_address: str
    uuid: str = ""
    serial: str = ""


class RemappedRows(NamedTuple):
    """Rows of memory replaced by spare ones, and whether that is pending or has failed."""

    corrected: int
    uncorrected: int
    is_pending: bool
    has_failed: bool


class EccCounts(NamedTuple):
    """Memory errors since the driver was loaded (volatile)."""

    corrected: int
    uncorrected: int


class SramErrors(NamedTuple):
    """Uncorrected SRAM errors since the driver was loaded; `is_over_threshold` is decisive."""

    parity: int
    sec_ded: int
    corrected: int
    is_over_threshold: bool


class RetiredPages(NamedTuple):
    """Memory pages that are taken out of use (before Ampere)."""

    count: int  # type: ignore[assignment]  # hides a method that nobody needs here
    is_pending: bool


class NvLinks(NamedTuple):
    """The NVLinks of a GPU: for each link whether it is active."""

    active: tuple[bool, ...]


class NvLinkErrors(NamedTuple):
    """Counters of all links of a GPU together, and its bit error rate, None where unknown."""

    recoveries_failed: int | None
    effective_bit_error_rate: float | None


class Fabric(NamedTuple):
    """A GPU's place in the NVLink fabric: NVML's numbers as they are (state 3 is completed)."""

    state: int
    status: int
    health_mask: int
    health_summary: int


class PcieLink(NamedTuple):
    """Width (lanes) and generation of a GPU's PCIe link, now and at most."""

    width: int
    max_width: int
    generation: int
    max_generation: int


class PcieErrors(NamedTuple):
    """PCIe error counters since the driver was loaded; None for those that are not kept."""

    replays: int | None
    correctable: int | None
    non_fatal: int | None
    fatal: int | None


class ThrottleTimes(NamedTuple):
    """Nanoseconds for which clocks were held down; None for those that are not kept."""

    power: int | None
    thermal: int | None
    hardware_thermal: int | None
    hardware_power_brake: int | None


class GpuMemory(NamedTuple):
    """Bytes of a GPU's memory: `reserved` by the driver itself, `used` without those."""

    total: int
    used: int
    reserved: int


def all_gpus(driver: Driver) -> Sequence[Gpu]:
    """Every GPU by index. Raises DriverError of the first that cannot be attached to."""
    return [driver.gpu(index) for index in range(driver.count())]
