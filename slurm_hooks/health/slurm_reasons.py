"""The reasons that slurmctld and slurmd give a node by themselves.

The node replaces them by its own, which say more, and the controller takes nobody's decision for
one of a person's. Both know the same ones. Source: slurmctld of 22.05 to 26.05. Pure.
"""

from __future__ import annotations

import re

NOT_RESPONDING = "Not responding"
"""Slurm's reason for a node that is DOWN since its slurmd was silent for SlurmdTimeout."""

RESUME_TIMEOUT = "ResumeTimeout reached"
"""Slurm's words in the reason after ResumeTimeout: alone in 22.05, appended from 23.02."""

REBOOT_ISSUED, REBOOT_COMPLETE = "reboot issued", "reboot complete"
"""Slurm's words, after the node's reason, once slurmd was told to reboot (22.05 measured, later
ones from source). They stay when a node that was drained before comes back drained."""

REBOOT_TIMED_OUT = "reboot timed out"
"""Slurm's words, after the reason that the reboot had, when a node did not come back of it."""

_WHOLE = (
    NOT_RESPONDING,
    RESUME_TIMEOUT,
    "Node unexpectedly rebooted",
    "batch job complete failure",
    "Duplicate jobid",
    "Kill task failed",
    "Prolog error",
    "Epilog error",
    "Prolog/Epilog failure",
    "Job env setup error",
    "Low socket*core*thread count",
    "Could not unpack gres data",
    "CoreSpec differ",
)
_WITH_VALUES = (
    r"Low (RealMemory|TmpDisk|CPUs)( \([^()]*[0-9][^()]* < [^()]*[0-9][^()]*\))?",
    r"gres/\S+ count [a-z ]+ \([0-9]+ (<|!=) [0-9]+\)",
    r"gres/\S+ GRES .+",
    r"CoreSpec differ.*",
    r"RestrictedCoresPerGPU.*",
    r"Reported active features \(.+",
    r"Failed to parse dynamic_conf.*",
    r"Failed to set topology.*",
)
_ONE = "|".join((*map(re.escape, _WHOLE), *_WITH_VALUES))
_OF_SLURM = re.compile(f"({_ONE})((, | : )({_ONE}|{REBOOT_ISSUED}|{REBOOT_COMPLETE}))*")
"""Several at once follow each other, and what is found later is added at the end."""
_REBOOT_TIMED_OUT = re.compile(f"(.* : ?)?{REBOOT_TIMED_OUT}")
_GPUS_MISSING = re.compile(r"gres/gpu(:\S+)? count (reported lower|too low)")


def is_of_slurm(reason: str) -> bool:
    """Whether slurmctld or slurmd gave the reason by itself: it is Slurm's from end to end. People
    may begin with Slurm's words, and then say what they have to do with it."""
    return bool(_OF_SLURM.fullmatch(reason)) or is_reboot_timed_out(reason)


def is_reboot_timed_out(reason: str) -> bool:
    """Whether slurmctld says last that the node did not come back of a reboot."""
    return _REBOOT_TIMED_OUT.fullmatch(reason) is not None


def is_reboot_issued(reason: str) -> bool:
    """Whether slurmctld has written to the reason that slurmd was told to reboot."""
    return f" : {REBOOT_ISSUED}" in reason


def tells_missing_gpus(reason: str) -> bool:
    """Whether slurmd registered with fewer GPUs than slurm.conf says that the node has."""
    return _GPUS_MISSING.match(reason) is not None
