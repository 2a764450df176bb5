"""Clocks that were held down during a job, and a driver that stays loaded between jobs."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.health.checks.gpus import each_gpu
from slurm_hooks.health.driver.model import Gpu
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Context, Finding, Verdict

_NANOSECONDS = 1e9


class ThrottlingCheck:
    """Whether hardware held a GPU's clocks down for long during the job."""

    name = "throttling"
    contexts = frozenset({Context.PROLOG, Context.EPILOG})
    summary = "no GPU was throttled by heat or power brake while the job ran"
    explanation = (
        "Keeps the throttle counters before a job and compares them after it: a snapshot of an"
        " idle GPU tells nothing. More than throttled_percent_warn of the job's time under hardware"
        " thermal slowdown or power brake is a WARN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Note the counters of every GPU, and say how they have grown."""

        def look(gpu: Gpu) -> Iterator[Finding]:
            times = evidence.driver.throttle_times(gpu)
            if times is None:
                return
            for word, nanoseconds in (
                ("heat", times.hardware_thermal),
                ("power brake", times.hardware_power_brake),
            ):
                if nanoseconds is None:
                    continue
                key = f"throttled_by_{word.replace(' ', '_')} {gpu.uuid}"
                share = _share(evidence.note(key, nanoseconds), evidence)
                limit = evidence.policy.thresholds.throttled_percent_warn
                if evidence.context is Context.EPILOG and share is not None and share > limit:
                    detail = f"throttled by {word} for {share:.0f}% of the job's time"
                    yield Finding(self.name, Verdict.WARN, detail, gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


class PersistenceCheck:
    """Whether the driver stays loaded when no program uses the GPUs."""

    name = "persistence"
    contexts = frozenset({Context.PROLOG, Context.BACKGROUND})
    summary = "persistence mode is on"
    explanation = (
        "Without persistence mode the driver unloads a GPU between programs, which costs seconds at"
        " each start and clears counters. It is switched on, and that is a WARN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Switch it on where it is off."""

        def look(gpu: Gpu) -> Iterator[Finding]:
            if evidence.driver.is_persistence_on(gpu) is False:
                if evidence.may_act:
                    evidence.driver.set_persistence_on(gpu)
                is_on = evidence.may_act and evidence.driver.is_persistence_on(gpu)
                detail = "was off, switched on" if is_on else "is off"
                yield Finding(self.name, Verdict.WARN, detail, gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


def _share(growth: float | None, evidence: Evidence) -> float | None:
    """Percent of the job's time."""
    if growth is None or evidence.baseline_time is None:
        return None
    seconds = (evidence.now - evidence.baseline_time).total_seconds()
    return 100 * growth / _NANOSECONDS / max(seconds, 1.0)
