"""What a check finds: one line for each thing that must be right before a cluster can run."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Outcome(enum.StrEnum):
    """How one thing stands."""

    PASS = "PASS"
    WARN = "WARN"
    """It works, though not as far as the cluster file goes."""
    FAIL = "FAIL"
    """What the cluster file asks for cannot work as it is."""
    UNKNOWN = "UNKNOWN"
    """It could not be confirmed: what would tell is not to be read, or lies outside the project."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result. `check` says what was looked at, `subject` of what, e.g. `disk type` of
    `hyperdisk-balanced in us-central1-a`. `fix` is the command that grants or mends it, as its
    arguments; empty where there is none."""

    check: str
    subject: str
    outcome: Outcome
    detail: str = ""
    fix: tuple[str, ...] = ()


def is_good(findings: tuple[Finding, ...]) -> bool:
    """Whether nothing has failed. What could not be confirmed may still be right."""
    return all(finding.outcome is not Outcome.FAIL for finding in findings)
