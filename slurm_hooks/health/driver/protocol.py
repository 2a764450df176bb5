"""The one door to the driver: what health checks may ask of it. For the type checker: to make the
class costs a Prolog more than a call of the driver.
"""

from __future__ import annotations

from typing import Protocol

from slurm_hooks.health.driver.model import (
    EccCounts,
    Fabric,
    Gpu,
    GpuMemory,
    NvLinkErrors,
    NvLinks,
    PcieErrors,
    PcieLink,
    RemappedRows,
    RetiredPages,
    SramErrors,
    ThrottleTimes,
)


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
