"""What a health run ends with."""

from __future__ import annotations

from typing import NamedTuple

from slurm_hooks.health.identity import Identity
from slurm_hooks.health.model import Context, Finding, Verdict, gravest
from slurm_hooks.health.policy import HealthPolicy

PROBE_HANG = "probe_hang"
"""The check that a run is itself: whether all others answer in time."""


class Report(NamedTuple):
    """All findings of a run, in the order of the checks, which is that of their authority.

    `acting` are the findings that count: those of checks that are only observed do not.
    `hung_check` is the check in which the run ended too early, `probe_hang` where that was before
    the first one, empty if all have answered. `counters` are what
    the run leaves as a baseline. `gpus_present` is how many GPUs the node should have, `identity`
    which VM and which boot of it was looked at.
    """

    context: Context
    findings: tuple[Finding, ...]
    acting: tuple[Finding, ...]
    seconds: float
    hung_check: str
    counters: dict[str, float]
    gpus_present: int | None
    identity: Identity

    @property
    def verdict(self) -> Verdict:
        """The one verdict of the run: the gravest of what counts."""
        return gravest(finding.verdict for finding in self.acting)

    @property
    def decisive(self) -> Finding | None:
        """The finding that the verdict is named after: the first of the gravest ones."""
        verdict = self.verdict
        return next((finding for finding in self.acting if finding.verdict is verdict), None)


def acting_of(
    findings: tuple[Finding, ...], policy: HealthPolicy, hung_check: str
) -> tuple[Finding, ...]:
    """The findings that count under a policy: in observe mode none, else those of checks that are
    not just observed. A hang counts if the check that hangs does."""
    if policy.observe:
        return ()
    return tuple(
        finding
        for finding in findings
        if (hung_check if finding.check == PROBE_HANG else finding.check)
        not in policy.observed_checks
    )
