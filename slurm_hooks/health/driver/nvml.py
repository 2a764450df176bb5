"""The driver through NVIDIA's own library and its binding, nvidia-ml-py.

The binding is loaded when the driver is opened: a node without GPUs never pays for it. One process
talks to one driver library. Its calls have no deadline of their own, so they belong in a child.
"""

from __future__ import annotations

from slurm_hooks.health.driver import fields
from slurm_hooks.health.driver.call_signs import CallSigns
from slurm_hooks.health.driver.calls import NvmlCalls
from slurm_hooks.health.driver.model import (
    DriverError,
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

_NO_ATTACH = 2
_FULL_ATTACH = 0
_CORRECTED, _UNCORRECTED, _VOLATILE = 0, 1, 0
_PAGE_CAUSES = (0, 1)
_POWER_POLICY, _THERMAL_POLICY = 0, 1
_MOST_NVLINKS = 36
_MEMORY_V2 = 0x02000028
_SWITCHED_ON = 1

_SRAM_FORMS = (("nvmlDeviceGetSramEccErrorStatus", "c_nvmlEccSramErrorStatus_v1_t"),)
_FABRIC_FORMS = (
    ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v3_t"),
    ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
    ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
)
_PROCESS_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
)


class NvmlDriver:
    """The NVIDIA driver of this node, or the one whose library lies at `library_path`.

    After `open` it answers as the protocol `Driver` says. `signs` tell a parent which call this is.
    """

    def __init__(self, library_path: str = "", signs: CallSigns | None = None) -> None:
        self._calls = NvmlCalls(library_path, signs or CallSigns())
        self._is_started = False

    def open(self) -> None:
        """Start the library: first without attaching to GPUs, then in full.

        Raises DriverError, and ImportError without the binding.
        """
        self._calls.load()
        self._calls.call("nvmlInitWithFlags", _NO_ATTACH)
        self._calls.call("nvmlShutdown")
        self._calls.call("nvmlInitWithFlags", _FULL_ATTACH)
        self._is_started = True

    def close(self) -> None:
        """End the library. Never raises."""
        if not self._is_started:
            return
        self._is_started = False
        self._calls.forget_handles()
        try:
            self._calls.call("nvmlShutdown")
        except DriverError:
            return

    def version(self) -> str:
        """The driver's version, such as 570.133.20."""
        return str(self._calls.call("nvmlSystemGetDriverVersion"))

    def count(self) -> int:
        """How many GPUs NVML counts."""
        return int(self._calls.call("nvmlDeviceGetCount"))

    def gpu(self, index: int) -> Gpu:
        """The GPU with an NVML index, attached to."""
        handle = self._calls.handle(index)
        place = self._calls.call("nvmlDeviceGetPciInfo", handle)
        return Gpu(
            index=index,
            minor=int(self._calls.call("nvmlDeviceGetMinorNumber", handle)),
            pci_address=f"{place.domain:04x}:{place.bus:02x}:{place.device:02x}",
            uuid=self._calls.call_if_supported("nvmlDeviceGetUUID", handle) or "",
            serial=self._calls.call_if_supported("nvmlDeviceGetSerial", handle) or "",
        )

    def recovery_action(self, gpu: Gpu) -> int | None:
        """Field 230; where the driver has none, what the two older fields amount to."""
        action, reset, drain = self._calls.fields(gpu, fields.RECOVERY_ACTIONS)
        if action is not None:
            return int(action)
        if reset is None and drain is None:
            return None
        if reset:
            return fields.RECOVERY_RESET
        return fields.RECOVERY_DRAIN_AND_RESET if drain else fields.RECOVERY_NONE

    def remapped_rows(self, gpu: Gpu) -> RemappedRows | None:
        """Row remapping (Ampere and later)."""
        rows = self._calls.ask(gpu, "nvmlDeviceGetRemappedRows")
        if rows is None:
            return None
        corrected, uncorrected, is_pending, has_failed = rows
        return RemappedRows(corrected, uncorrected, bool(is_pending), bool(has_failed))

    def ecc_counts(self, gpu: Gpu) -> EccCounts | None:
        """Volatile ECC error counts; None with ECC switched off."""
        corrected = self._calls.ask(gpu, "nvmlDeviceGetTotalEccErrors", _CORRECTED, _VOLATILE)
        uncorrected = self._calls.ask(gpu, "nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _VOLATILE)
        if corrected is None or uncorrected is None:
            return None
        return EccCounts(int(corrected), int(uncorrected))

    def sram_errors(self, gpu: Gpu) -> SramErrors | None:
        """SRAM errors (Hopper and later)."""
        status = self._calls.ask_newest(gpu, _SRAM_FORMS)
        if status is None:
            return None
        return SramErrors(
            parity=int(status.volatileUncParity),
            sec_ded=int(status.volatileUncSecDed),
            corrected=int(status.volatileCor),
            is_over_threshold=bool(status.bThresholdExceeded),
        )

    def retired_pages(self, gpu: Gpu) -> RetiredPages | None:
        """Retired pages (before Ampere), for either kind of error."""
        counts = [self._retired_pages(gpu, cause) for cause in _PAGE_CAUSES]
        pending = self._calls.ask(gpu, "nvmlDeviceGetRetiredPagesPendingStatus")
        known = [count for count in counts if count is not None]
        if not known:
            return None
        return RetiredPages(count=sum(known), is_pending=bool(pending))

    def nvlinks(self, gpu: Gpu) -> NvLinks | None:
        """The state of every NVLink that the GPU has; None for a GPU without any."""
        states = []
        for link in range(self._nvlink_count(gpu)):
            state = self._calls.ask_if_known(gpu, "nvmlDeviceGetNvLinkState", link)
            if state is not None:
                states.append(bool(state))
        return NvLinks(tuple(states)) if states else None

    def nvlink_errors(self, gpu: Gpu) -> NvLinkErrors | None:
        """NVLink error counters: failed recoveries of all links, and the worst link's rate.

        None where no link keeps any (before NVLink 5).
        """
        links = range(self._nvlink_count(gpu))
        asked = [(field, link) for link in links for field in fields.NVLINK_ERRORS]
        answers = self._calls.fields(gpu, asked) if asked else []
        failures = [int(answer) for answer in answers[0::2] if answer is not None]
        rates = [fields.bit_error_rate(rate) for rate in answers[1::2] if rate is not None]
        if not failures and not rates:
            return None
        return NvLinkErrors(
            recoveries_failed=sum(failures) if failures else None,
            effective_bit_error_rate=max(rates) if rates else None,
        )

    def fabric(self, gpu: Gpu) -> Fabric | None:
        """Fabric registration; None where the GPU takes part in none."""
        found = self._calls.ask_newest(gpu, _FABRIC_FORMS)
        if found is None or found.state == fields.FABRIC_NOT_SUPPORTED:
            return None
        return Fabric(
            state=int(found.state),
            status=int(found.status),
            health_mask=int(getattr(found, "healthMask", 0)),
            health_summary=int(getattr(found, "healthSummary", 0)),
        )

    def pcie_link(self, gpu: Gpu) -> PcieLink | None:
        """The PCIe link."""
        width = self._calls.ask(gpu, "nvmlDeviceGetCurrPcieLinkWidth")
        max_width = self._calls.ask(gpu, "nvmlDeviceGetMaxPcieLinkWidth")
        generation = self._calls.ask(gpu, "nvmlDeviceGetCurrPcieLinkGeneration")
        max_generation = self._calls.ask(gpu, "nvmlDeviceGetMaxPcieLinkGeneration")
        if width is None or max_width is None or generation is None or max_generation is None:
            return None
        return PcieLink(width, max_width, generation, max_generation)

    def pcie_errors(self, gpu: Gpu) -> PcieErrors | None:
        """PCIe error counters."""
        replays, correctable, non_fatal, fatal = self._calls.fields(gpu, fields.PCIE_ERRORS)
        if replays is None:
            replays = self._calls.ask(gpu, "nvmlDeviceGetPcieReplayCounter")
        counts = [_whole(value) for value in (replays, correctable, non_fatal, fatal)]
        return PcieErrors(*counts) if any(count is not None for count in counts) else None

    def throttle_times(self, gpu: Gpu) -> ThrottleTimes | None:
        """For how long clocks were held down."""
        power, thermal, *hardware = self._calls.fields(gpu, fields.THROTTLE_TIMES)
        if power is None:
            power = self._violation_time(gpu, _POWER_POLICY)
        if thermal is None:
            thermal = self._violation_time(gpu, _THERMAL_POLICY)
        times = [_whole(value) for value in (power, thermal, *hardware)]
        return ThrottleTimes(*times) if any(time is not None for time in times) else None

    def process_ids(self, gpu: Gpu) -> tuple[int, ...] | None:
        """Processes with compute, MPS or graphics work on the GPU; a listed one may be dead."""
        lists = [self._calls.ask_list(gpu, name) for name in _PROCESS_LISTS]
        known = [processes for processes in lists if processes is not None]
        if not known:
            return None
        return tuple(sorted({int(process.pid) for processes in known for process in processes}))

    def memory(self, gpu: Gpu) -> GpuMemory | None:
        """The GPU's memory; None with drivers before 510, which count as used what they reserve."""
        memory = self._calls.ask(gpu, "nvmlDeviceGetMemoryInfo", _MEMORY_V2)
        if memory is None:
            return None
        return GpuMemory(int(memory.total), int(memory.used), int(memory.reserved))

    def is_persistence_on(self, gpu: Gpu) -> bool | None:
        """Whether the driver stays loaded without clients."""
        mode = self._calls.ask(gpu, "nvmlDeviceGetPersistenceMode")
        return None if mode is None else bool(mode)

    def set_persistence_on(self, gpu: Gpu) -> None:
        """Switch persistence mode on, where the driver can."""
        self._calls.ask(gpu, "nvmlDeviceSetPersistenceMode", _SWITCHED_ON)

    def validate_inforom(self, gpu: Gpu) -> None:
        """Check the GPU's own configuration memory. Slow. Raises CORRUPTED_INFOROM."""
        self._calls.ask(gpu, "nvmlDeviceValidateInforom")

    def is_in_multi_instance_mode(self, gpu: Gpu) -> bool | None:
        """Whether the GPU is cut into instances (MIG), which hides some of its counters."""
        modes = self._calls.ask(gpu, "nvmlDeviceGetMigMode")
        return None if modes is None else bool(modes[0])

    def _nvlink_count(self, gpu: Gpu) -> int:
        """How many links to ask about: those that exist, or as many as there can be."""
        (count,) = self._calls.fields(gpu, fields.NVLINK_COUNT)
        return _MOST_NVLINKS if count is None else min(int(count), _MOST_NVLINKS)

    def _retired_pages(self, gpu: Gpu, cause: int) -> int | None:
        pages = self._calls.ask(gpu, "nvmlDeviceGetRetiredPages_v2", cause)
        if pages is None:
            pages = self._calls.ask(gpu, "nvmlDeviceGetRetiredPages", cause)
        return None if pages is None else len(pages)

    def _violation_time(self, gpu: Gpu, policy: int) -> int | None:
        """Nanoseconds, from the call that drivers had before the fields."""
        found = self._calls.ask(gpu, "nvmlDeviceGetViolationStatus", policy)
        return None if found is None else int(found.violationTime)


def _whole(value: int | float | None) -> int | None:
    return None if value is None else int(value)
