"""The driver itself: does it answer, has it lost a GPU, what does it ask for."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.health.checks.gpus import each_gpu, finding_of, has_job_lost_gpu
from slurm_hooks.health.driver.model import DriverError, DriverFault, Gpu
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Context, Finding, Verdict


class DriverCheck:
    """Whether the driver is loaded and its library fits it."""

    name = "driver"
    contexts = frozenset(Context)
    summary = "the NVIDIA driver is loaded and answers"
    explanation = (
        "Opens NVML, first without attaching to GPUs, then in full. A driver that is not loaded, a"
        " missing library, a library of another version and every other error mean REBOOT: a node"
        " that must have GPUs never passes as one without. A version mismatch says that the driver"
        " was upgraded and not loaded again."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Open the driver."""
        evidence.driver_is_judged = True
        error = evidence.driver_error() if evidence.expects_gpus else None
        if error is None:
            return
        if error.fault is DriverFault.LIB_RM_VERSION_MISMATCH:
            detail = "the driver was changed and not loaded again"
            yield Finding(
                self.name, Verdict.REBOOT, f"{detail}: {error}", of_job=evidence.has_job_gpus
            )
        else:
            yield finding_of(self.name, error, of_job=evidence.has_job_gpus)


class GpuLostCheck:
    """Whether each GPU that the driver counts can be attached to."""

    name = "gpu_lost"
    contexts = frozenset(Context)
    summary = "every GPU that the driver counts can be attached to"
    explanation = (
        "Asks NVML for each GPU by its index. GPU_IS_LOST (fallen off the bus) means REBOOT,"
        " RESET_REQUIRED and IRQ_ISSUE mean RESET, every other error REBOOT. The controller"
        " replaces a VM whose GPU is lost again after its reboot."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Attach to each GPU."""
        if not evidence.gpus() and evidence.driver_error() is not None:
            return
        count = evidence.driver.count() if evidence.expects_gpus else 0
        for index in range(count):
            try:
                evidence.driver.gpu(index)
            except DriverError as error:
                found = finding_of(self.name, error)
                yield Finding(
                    self.name,
                    found.verdict,
                    f"index {index} {error}",
                    of_job=has_job_lost_gpu(evidence),
                )


_MEANINGS = {
    1: (Verdict.RESET, "GPU reset"),
    2: (Verdict.REBOOT, "node reboot"),
    3: (Verdict.RESET, "drain P2P"),
    4: (Verdict.RESET, "drain and reset"),
    5: (Verdict.MANUAL, "recover IMEX domain"),
    6: (Verdict.REBOOT, "bus reset"),
    7: (Verdict.REBOOT, "system reboot"),
}
"""What NVML means by each value, and what it comes to here."""


class RecoveryActionCheck:
    """What the driver itself asks for: stronger than any Xid."""

    name = "recovery_action"
    contexts = frozenset(Context)
    summary = "the driver asks for no reset, reboot or drain of a GPU"
    explanation = (
        "Reads NVML's field 230. 1 (GPU reset), 3 (drain P2P) and 4 (drain and reset) mean RESET,"
        " 2 (node reboot), 6 (bus reset) and 7 (system reboot) REBOOT, 5 (recover the IMEX domain)"
        " and values that are not known yet MANUAL. It decides over all Xids of the same GPU."
        " Drivers that do not have the field are judged by the other checks."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Read the field of every GPU."""

        def look(gpu: Gpu) -> Iterator[Finding]:
            action = evidence.driver.recovery_action(gpu)
            if not action:
                return
            unknown = (Verdict.MANUAL, "not known to this version")
            verdict, meaning = _MEANINGS.get(action, unknown)
            detail = f"driver asks for action {action} ({meaning})"
            yield Finding(self.name, verdict, detail, gpu=gpu.minor, of_job=evidence.is_of_job(gpu))

        yield from each_gpu(self.name, evidence, look)
