"""What a health run ends with."""

from __future__ import annotations

from dataclasses import dataclass, field

from slurm_hooks.health.model import Context, Finding, Verdict, gravest
from slurm_hooks.health.policy import HealthPolicy


@dataclass(frozen=True, slots=True)
class Report:
    """All findings of a run, in the order of the checks, which is that of their authority.

    `acting` are the findings that count: those of checks that are only observed do not.
    `hung_check` is the check that did not answer in time, empty if all did. `counters` are what
    the run leaves as a baseline. `gpus_present` is how many GPUs the node should have.
    """

    context: Context
    findings: tuple[Finding, ...]
    acting: tuple[Finding, ...]
    seconds: float
    hung_check: str = ""
    counters: dict[str, float] = field(default_factory=dict)
    gpus_present: int | None = None

    @property
    def verdict(self) -> Verdict:
        """The one verdict of the run: the gravest of what counts."""
        return gravest(finding.verdict for finding in self.acting)

    @property
    def decisive(self) -> Finding | None:
        """The finding that the verdict is named after: the first of the gravest ones."""
        verdict = self.verdict
        return next((finding for finding in self.acting if finding.verdict is verdict), None)


def report_of(
    context: Context,
    findings: tuple[Finding, ...],
    policy: HealthPolicy,
    seconds: float,
    hung_check: str = "",
    counters: dict[str, float] | None = None,
    gpus_present: int | None = None,
) -> Report:
    """A report under a policy: in observe mode nothing counts."""
    acting = tuple(
        finding
        for finding in findings
        if not policy.observe and finding.check not in policy.observed_checks
    )
    return Report(context, findings, acting, seconds, hung_check, counters or {}, gpus_present)
