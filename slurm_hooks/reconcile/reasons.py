"""Whose reason a node has: ours, Slurm's own, or a person's.

The one predicate for each. A person's reason is never overwritten, and what a person took out of
service stays so. Source of Slurm's words: slurmctld of 22.05 to 26.05.
"""

from __future__ import annotations

PREFIX = "slurm-hooks:"

NOT_RESPONDING = "Not responding"
"""Slurm's reason for a node that is DOWN since its slurmd was silent for SlurmdTimeout."""

RESUME_TIMEOUT = "ResumeTimeout reached"
"""Slurm's words in the reason after ResumeTimeout: alone in 22.05, appended from 23.02."""

_OF_SLURM = (
    NOT_RESPONDING,
    RESUME_TIMEOUT,
    "Node unexpectedly rebooted",
    "reboot timed out",
    "Kill task failed",
    "Prolog error",
    "Epilog error",
    "Low RealMemory",
    "Low socket*core*thread count",
    "gres/",
)
"""How the reasons begin that slurmctld and slurmd give by themselves."""


def is_ours(text: str) -> bool:
    """Whether a comment or reason was written by us."""
    return text.startswith(PREFIX)


def is_of_slurm(reason: str) -> bool:
    """Whether slurmctld or slurmd gave the reason by itself."""
    return reason.startswith(_OF_SLURM)


def is_of_person(reason: str) -> bool:
    """Whether a person gave the reason. One that we cannot tell, and none at all, counts."""
    return not is_ours(reason) and not is_of_slurm(reason)
