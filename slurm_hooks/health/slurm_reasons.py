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

REBOOT_ISSUED = "reboot issued"
"""Slurm's words, after the node's reason, once slurmd was told to reboot (22.05 measured, later
ones from source). They stay when a node that was drained before comes back drained."""

REBOOT_TIMED_OUT = "reboot timed out"
"""Slurm's words, after the reason that the reboot had, when a node did not come back of it."""

_BEGINNINGS = (
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
    "Low RealMemory",
    "Low TmpDisk",
    "Low CPUs",
    "Low socket*core*thread count",
    "gres/",
    "Could not unpack gres data",
    "CoreSpec differ",
    "RestrictedCoresPerGPU",
    "Reported active features",
    "Failed to parse dynamic_conf",
    "Failed to set topology",
)
_GPUS_MISSING = re.compile(r"gres/gpu(:\S+)? count (reported lower|too low)")


def is_of_slurm(reason: str) -> bool:
    """Whether slurmctld or slurmd gave the reason by itself."""
    return reason.startswith(_BEGINNINGS) or reason.endswith(REBOOT_TIMED_OUT)


def is_reboot_issued(reason: str) -> bool:
    """Whether slurmctld has written to the reason that slurmd was told to reboot."""
    return f" : {REBOOT_ISSUED}" in reason


def tells_missing_gpus(reason: str) -> bool:
    """Whether slurmd registered with fewer GPUs than slurm.conf says that the node has."""
    return _GPUS_MISSING.match(reason) is not None
