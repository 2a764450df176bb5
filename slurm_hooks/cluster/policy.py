"""How the controller behaves where the managed service's file says nothing: our own limits.

Written under the key `slurm_hooks` of the cluster file. All durations are in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one cluster; each has a default that needs no file."""

    boot_timeout_seconds: int = 1800
    """How long a VM may run before slurmd registers; then it is replaced."""
    end_of_life_notice_seconds: int = 600
    """How long before the end of its node a job is signalled."""
    end_of_life_signal: str = "URG"
    """The signal that it gets; empty for none. URG does nothing to a program that does not ask for
    it; one like USR1 ends it, and then its job fails instead of being queued again."""
    hold_after_failures: int = 3
    """Failed requests or boots of a pool in a row after which the pool is held."""
    hold_seconds: int = 300
    """The first hold of a pool; each following one is twice as long."""
    longest_hold_seconds: int = 21600
    reap_grace_seconds: int = 300
    """How old a thing of ours must be before it is removed for being of no use."""
    most_kills_a_pass: int = 10
    """Nodes that a pass may take down because their VMs are missing, at least this many..."""
    most_kills_percent: int = 10
    """...and at least this share of the nodes that are up."""
    job_duration_margin_seconds: int = 600
    """What a VM lives longer than the job it was made for, where its life follows the job."""
    most_job_restarts: int = 3
    """A node is not repaired for a job that was started so often already: it may be at fault."""
    most_repairs_a_node: int = 2
    """Reboots and replacements of a node name within `repair_days`; then a person must look."""
    repair_days: int = 7
    stop_repairs_percent: int = 10
    """More than this share of a pool's nodes that are up, and..."""
    stop_repairs_least: int = 3
    """...at least so many, condemned within `stop_repairs_seconds`, stop the pool's repairs."""
    stop_repairs_seconds: int = 300
