"""Whose reason a node has: ours, Slurm's own, or a person's.

The one predicate for each. A person's reason is never overwritten, and what a person took out of
service stays so. Slurm's own words are those that the nodes know, too.
"""

from __future__ import annotations

from slurm_hooks.health.reason import OUT_OF_SERVICE
from slurm_hooks.health.slurm_reasons import NOT_RESPONDING, is_of_slurm, is_reboot_timed_out

PREFIX = "slurm-hooks:"

OFFERED_AGAIN = f"{PREFIX} offered again after a failed start"
"""The reason of a node that was shown to Slurm's backfill again, in versions that keep one."""


def is_ours(text: str) -> bool:
    """Whether a comment or reason was written by us."""
    return text.startswith(PREFIX)


def is_silent(reason: str) -> bool:
    """Whether slurmctld's last words are that slurmd does not answer, or did not come back of a
    reboot. From 23.02 they follow the reason that the node had, whoever gave it; 22.05 leaves that
    reason as it is."""
    if reason.endswith(f" : {NOT_RESPONDING}") or is_reboot_timed_out(reason):
        return True
    return reason.startswith(NOT_RESPONDING) and is_of_slurm(reason)


def is_of_person(reason: str) -> bool:
    """Whether a person gave the reason. One that we cannot tell, and none at all, counts."""
    return not is_ours(reason) and not is_of_slurm(reason)


def set_aside_reason(reason: str) -> str:
    """The reason of a node that is powered down and then taken out of service again."""
    return f"{OUT_OF_SERVICE}{reason or 'drained'}"


def reason_before(reason: str) -> str:
    """A person's reason in one made by `set_aside_reason`; empty for any other."""
    return reason.removeprefix(OUT_OF_SERVICE) if reason.startswith(OUT_OF_SERVICE) else ""
