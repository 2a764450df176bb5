"""What the NVIDIA driver says about GPUs, as plain values, and the one door to it.

Facts: NVML's calls and error numbers. A call that a GPU does not support gives None; every other
failure raises DriverError, since a failing device must never pass for another kind of device.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol


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


class Driver(Protocol):
    """Everything that health checks ask of the driver. Every call can raise DriverError, hang,
    or return None where the GPU does not support what is asked."""

    def open(self) -> None:
        """Start the library: first without attaching to GPUs, then in full."""

    def close(self) -> None:
        """End the library. Never raises."""

    def version(self) -> str:
        """The driver's version."""

    def count(self) -> int:
        """How many GPUs NVML counts."""

    def gpu(self, index: int) -> Gpu:
        """The GPU with an NVML index, attached to."""

    def recovery_action(self, gpu: Gpu) -> int | None:
        """Field 230: what the driver asks for to make the GPU usable; 0 is nothing."""

    def remapped_rows(self, gpu: Gpu) -> RemappedRows | None:
        """Row remapping (Ampere and later)."""

    def ecc_counts(self, gpu: Gpu) -> EccCounts | None:
        """Volatile ECC error counts."""

    def sram_errors(self, gpu: Gpu) -> SramErrors | None:
        """SRAM errors (Hopper and later)."""

    def retired_pages(self, gpu: Gpu) -> RetiredPages | None:
        """Retired pages (before Ampere)."""

    def nvlinks(self, gpu: Gpu) -> NvLinks | None:
        """The state of every NVLink that the GPU has; None for a GPU without any."""

    def nvlink_errors(self, gpu: Gpu) -> NvLinkErrors | None:
        """NVLink error counters."""

    def fabric(self, gpu: Gpu) -> Fabric | None:
        """Fabric registration; None where the GPU takes part in none."""

    def pcie_link(self, gpu: Gpu) -> PcieLink | None:
        """The PCIe link."""

    def pcie_errors(self, gpu: Gpu) -> PcieErrors | None:
        """PCIe error counters."""

    def throttle_times(self, gpu: Gpu) -> ThrottleTimes | None:
        """For how long clocks were held down."""

    def process_ids(self, gpu: Gpu) -> tuple[int, ...] | None:
        """Processes with compute, MPS or graphics work on the GPU; a listed one may be dead."""

    def memory(self, gpu: Gpu) -> GpuMemory | None:
        """The GPU's memory."""

    def is_persistence_on(self, gpu: Gpu) -> bool | None:
        """Whether the driver stays loaded without clients."""

    def set_persistence_on(self, gpu: Gpu) -> None:
        """Switch persistence mode on."""

    def validate_inforom(self, gpu: Gpu) -> None:
        """Check the GPU's own configuration memory. Slow. Raises CORRUPTED_INFOROM."""

    def is_in_multi_instance_mode(self, gpu: Gpu) -> bool | None:
        """Whether the GPU is cut into instances (MIG), which hides some of its counters."""


def all_gpus(driver: Driver) -> Sequence[Gpu]:
    """Every GPU by index. Raises DriverError of the first that cannot be attached to."""
    return [driver.gpu(index) for index in range(driver.count())]
