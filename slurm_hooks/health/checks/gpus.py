"""What all checks of GPUs share: one look at each, and a failing one hides no other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from slurm_hooks.health.driver.model import DriverError, DriverFault, Gpu
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Finding, Verdict

_VERDICTS = {
    DriverFault.RESET_REQUIRED: Verdict.RESET,
    DriverFault.IRQ_ISSUE: Verdict.RESET,
}


def each_gpu(
    check: str, evidence: Evidence, look: Callable[[Gpu], Iterable[Finding]]
) -> Iterator[Finding]:
    """Look at every GPU. A driver call that fails is a finding about that GPU."""
    for gpu in evidence.gpus():
        try:
            yield from look(gpu)
        except DriverError as error:
            yield finding_of(check, error, gpu.minor, of_job=evidence.is_of_job(gpu))


def has_job_lost_gpu(evidence: Evidence) -> bool:
    """Whether the job at hand has a GPU that cannot be attached to, or has no device file. Which
    GPUs these are is not known where the driver does not answer: then any may be the job's."""
    if evidence.job is None or not evidence.has_job_gpus:
        return False
    if evidence.driver_error() is not None:
        return True
    try:
        attached = {gpu.minor for gpu in evidence.gpus()}
    except DriverError:
        return True
    return any(
        minor not in attached or not os.path.exists(evidence.host.path("dev", f"nvidia{minor}"))
        for minor in evidence.job.gpus
    )


def finding_of(
    check: str, error: DriverError, gpu: int | None = None, *, of_job: bool = False
) -> Finding:
    """The finding that a failed driver call is: the device's failure, not a mere warning."""
    verdict = _VERDICTS.get(error.fault, Verdict.REBOOT)
    return Finding(check, verdict, str(error), gpu=gpu, of_job=of_job)
