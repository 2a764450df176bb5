"""A GPU's memory: rows and pages that are worn out, and errors during a job."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.health.checks.gpus import each_gpu
from slurm_hooks.health.driver.model import DriverError, DriverFault, Gpu
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.job_files import jobs_on_node
from slurm_hooks.health.model import Context, Finding, Verdict


class RowRemapCheck:
    """Whether memory rows could not be replaced by spare ones, or wait for it."""

    name = "row_remap"
    contexts = frozenset(Context)
    summary = "no row of GPU memory has run out of spare rows"
    explanation = (
        "Reads NVML's remapped rows (Ampere and later). A failed remapping means REPLACE: this"
        " memory does not heal. A pending one harms neither running nor new work: WARN after a job,"
        " and RESET in the background while no job is on the node, since a reset carries it out."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Read the rows of every GPU."""
        is_idle = evidence.context is Context.BACKGROUND and not jobs_on_node(evidence.host)

        def look(gpu: Gpu) -> Iterator[Finding]:
            rows = evidence.driver.remapped_rows(gpu)
            if rows is None:
                return
            if rows.has_failed:
                yield Finding(
                    self.name,
                    Verdict.REPLACE,
                    "row remapping failed",
                    gpu=gpu.minor,
                    of_job=evidence.is_of_job(gpu),
                )
            elif rows.is_pending and evidence.context is not Context.PROLOG:
                verdict = Verdict.RESET if is_idle else Verdict.WARN
                yield Finding(self.name, verdict, "row remapping waits for a reset", gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


class SramCheck:
    """Whether the SRAM has had too many uncorrected errors."""

    name = "sram"
    contexts = frozenset(Context)
    summary = "uncorrected SRAM errors are below the driver's own threshold"
    explanation = (
        "Reads NVML's SRAM ECC status (Hopper and later). Its threshold flag means REPLACE. GPUs"
        " without that status are judged by ecc and by Xids."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Read the flag of every GPU."""

        def look(gpu: Gpu) -> Iterator[Finding]:
            errors = evidence.driver.sram_errors(gpu)
            if errors is not None and errors.is_over_threshold:
                detail = (
                    f"SRAM errors over threshold ({errors.parity} parity, {errors.sec_ded} ECC)"
                )
                yield Finding(
                    self.name,
                    Verdict.REPLACE,
                    detail,
                    gpu=gpu.minor,
                    of_job=evidence.is_of_job(gpu),
                )

        yield from each_gpu(self.name, evidence, look)


class EccCheck:
    """Whether memory errors came during the job."""

    name = "ecc"
    contexts = frozenset({Context.PROLOG, Context.EPILOG})
    summary = "no uncorrected memory error came while the job ran"
    explanation = (
        "Keeps the volatile ECC counters before a job and compares them after it. An uncorrected"
        " error more means RESET, and the job is queued again if it failed and the GPU was its own."
        " Corrected errors beyond ecc_corrected_per_second_warn are a WARN. Counters that began"
        " anew (the driver was loaded again) are not compared."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Note the counters of every GPU, and say how they have grown."""

        def look(gpu: Gpu) -> Iterator[Finding]:
            counts = evidence.driver.ecc_counts(gpu)
            if counts is None:
                return
            uncorrected = evidence.note(f"ecc_uncorrected {gpu.uuid}", counts.uncorrected)
            corrected = evidence.note(f"ecc_corrected {gpu.uuid}", counts.corrected)
            if evidence.context is not Context.EPILOG:
                return
            if uncorrected:
                detail = f"{uncorrected:.0f} uncorrected memory errors during the job"
                yield Finding(
                    self.name,
                    Verdict.RESET,
                    detail,
                    gpu=gpu.minor,
                    of_job=evidence.is_of_job(gpu),
                )
            rate = _per_second(corrected, evidence)
            if rate is not None and rate > evidence.policy.thresholds.ecc_corrected_per_second_warn:
                detail = f"{rate:.0f} corrected memory errors a second during the job"
                yield Finding(self.name, Verdict.WARN, detail, gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


class RetiredPagesCheck:
    """Whether too many memory pages are taken out of use (before Ampere)."""

    name = "retired_pages"
    contexts = frozenset(Context)
    summary = "few pages of GPU memory are retired (before Ampere)"
    explanation = (
        "Reads NVML's retired pages, which GPUs before Ampere keep. More than retired_pages_bad"
        " mean RESET, pages that wait to be retired a WARN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Read the pages of every GPU."""

        def look(gpu: Gpu) -> Iterator[Finding]:
            pages = evidence.driver.retired_pages(gpu)
            if pages is None:
                return
            if pages.count > evidence.policy.thresholds.retired_pages_bad:
                detail = f"{pages.count} memory pages retired"
                yield Finding(self.name, Verdict.RESET, detail, gpu=gpu.minor)
            elif pages.is_pending:
                detail = "memory pages wait to be retired"
                yield Finding(self.name, Verdict.WARN, detail, gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


class InforomCheck:
    """Whether a GPU's own configuration memory is intact."""

    name = "inforom"
    contexts = frozenset({Context.BACKGROUND})
    summary = "the GPUs' configuration memory (inforom) is intact"
    explanation = (
        "Has NVML validate the inforom, which is slow, so in the background alone. A corrupted one"
        " means MANUAL: nothing that a controller can do mends it; ask the provider."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Validate the inforom of every GPU."""

        def look(gpu: Gpu) -> Iterator[Finding]:
            try:
                evidence.driver.validate_inforom(gpu)
            except DriverError as error:
                if error.fault is not DriverFault.CORRUPTED_INFOROM:
                    raise
                yield Finding(self.name, Verdict.MANUAL, "inforom is corrupted", gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


def _per_second(growth: float | None, evidence: Evidence) -> float | None:
    if growth is None or evidence.baseline_time is None:
        return None
    seconds = (evidence.now - evidence.baseline_time).total_seconds()
    return growth / max(seconds, 1.0)
