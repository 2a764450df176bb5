"""What every check is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Context, Finding


class Check(Protocol):
    """One thing that is looked at.

    `name` is stable: it stands in reasons, in the policy and on the command line. `summary` is one
    line, `explanation` what it reads, when it fails and what to do, for a person on the node.
    """

    name: str
    contexts: frozenset[Context]
    summary: str
    explanation: str

    def run(self, evidence: Evidence) -> Iterable[Finding]:
        """Look, and yield what is wrong. May raise DriverError: the run makes a finding of it."""
