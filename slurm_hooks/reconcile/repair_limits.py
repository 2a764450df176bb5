"""When a condemned node is not repaired, and when a pool's repairs stop altogether. Pure.

The first two limits of a node are the managed service's: past the job's restart limit, and where
its job did not use all GPUs, the node is only drained. The others are ours: a node that was
repaired again and again needs a person, and when many nodes are condemned at once, a bad policy or
driver is more likely than as many sick nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.health.model import Verdict
from slurm_hooks.health.reason import HealthReason
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.repairs import RepairLog

DONE_BY_USERS = frozenset({"disk_space"})
"""Checks that fail by what jobs do. They say nothing of a bad policy or driver, so any user could
stop the repairs of a pool with them. A node finds its disk full by a job only where that disk has
had room on the same VM, so a bad threshold replaces nothing."""

REPAIRS = (EventKind.VM_REBOOT, EventKind.VM_DELETION)
"""What counts as a repair of a node. One by SuspendTime, or by a person, does not."""


def forbidden(
    reason: HealthReason,
    node: str,
    log: RepairLog,
    policy: Policy,
    now: datetime,
    own_keys: Collection[str] = (),
) -> str:
    """Why a node must not be rebooted or replaced; empty where nothing forbids it.

    `own_keys` are those of the repair in question: where it is in the history already, it was cut
    short, and does not forbid itself.
    """
    if reason.verdict is Verdict.MANUAL:
        return "only a person can repair it"
    if (
        reason.gpus_used is not None
        and reason.gpus_present is not None
        and reason.gpus_used < reason.gpus_present
    ):
        return f"its job had {reason.gpus_used} of its {reason.gpus_present} GPUs: only drained"
    if reason.restart_count is not None and reason.restart_count >= policy.most_job_restarts:
        return (
            f"job {reason.job_id} was queued again {reason.restart_count} times:"
            " the job may be at fault"
        )
    repairs = repairs_of(node, log, policy, now)
    count = sum(event.key not in own_keys for event in repairs)
    if count >= policy.most_repairs_a_node:
        return f"repaired {count} times within {policy.repair_days} days: a person must look"
    return ""


def repairs_of(node: str, log: RepairLog, policy: Policy, now: datetime) -> list[Event]:
    """The repairs of a node name that count."""
    since = now - timedelta(days=policy.repair_days)
    return [event for event in log.of_node(node, *REPAIRS) if event.time_utc >= since]


def too_many(
    pool: str,
    seen: Iterable[Event],
    standing: Collection[str],
    nodes_up: int,
    log: RepairLog,
    policy: Policy,
) -> list[Event]:
    """The condemnations that stop a pool's repairs, the oldest first; none where all is well.

    `seen` are those of this pass, `standing` the nodes that are condemned now: what is over stops
    nothing, and neither does what a person knew when the repairs were resumed.
    """
    resumed = log.resumed_utc.get(pool)
    events = sorted(
        (
            event
            for event in (*log.condemned.get(pool, ()), *seen)
            if event.check not in DONE_BY_USERS and (resumed is None or event.time_utc > resumed)
        ),
        key=lambda event: event.time_utc,
    )
    window = timedelta(seconds=policy.stop_repairs_seconds)
    for start, first in enumerate(events):
        together = [event for event in events[start:] if event.time_utc - first.time_utc <= window]
        nodes = {event.node for event in together}
        if _are_too_many(len(nodes), nodes_up, policy) and not nodes.isdisjoint(standing):
            return together
    return []


def _are_too_many(condemned: int, nodes_up: int, policy: Policy) -> bool:
    return (
        condemned >= policy.stop_repairs_least
        and condemned * 100 > nodes_up * policy.stop_repairs_percent
    )
