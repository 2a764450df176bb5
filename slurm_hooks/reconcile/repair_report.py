"""How condemned nodes and their pools stand, for people. Pure.

It says what the daemon will do from Slurm and the history alone, so it may name a repair that has
to wait: until the VM runs, or until the job that it cannot see is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.health.reason import health_reason_of, is_condemned
from slurm_hooks.health.slurm_reasons import is_reboot_issued
from slurm_hooks.history.event import Event
from slurm_hooks.reconcile.repair_limits import forbidden, repairs_of
from slurm_hooks.reconcile.repairs import (
    RepairLog,
    Standing,
    is_drained_by_slurm,
    standing_of,
)
from slurm_hooks.slurm.model import Node, NodeFlag

_STAYS_SLURMS = "stays drained until a health run says why, or a person resumes it"
_WAITS_FOR_RUN = "serves again when a health run has passed since its reboot, else it is replaced"
_WAITS = {
    Standing.REBOOTING: "is rebooted",
    Standing.BUSY: "is repaired when nothing runs there any more",
}


@dataclass(frozen=True, slots=True)
class PoolStanding:
    """A pool: whether its nodes are repaired, and if not, since when and why."""

    pool: str
    stopped: Event | None


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """A node that is condemned, that Slurm itself has drained, or that was repaired of late.

    `verdict` and `check` are what the health run found, empty where there was none. `detail` is its
    own, or Slurm's reason. `since_utc` is when Slurm got the reason. `next_step` is a text for
    people, empty where the node serves.
    """

    node: str
    pool: str
    verdict: str
    check: str
    detail: str
    since_utc: datetime | None
    repairs: int
    next_step: str


def pool_standings(cluster: Cluster, log: RepairLog) -> list[PoolStanding]:
    """All pools, in the order of the cluster file."""
    return [
        PoolStanding(pool_id, log.stopped.get(pool_id))
        for pool_id, pool in cluster.pools.items()
        if not pool.is_login
    ]


def node_standings(
    cluster: Cluster, nodes: Iterable[Node], log: RepairLog, now: datetime
) -> Iterator[NodeStanding]:
    """The nodes that are condemned or drained by Slurm itself, and those that were repaired within
    the days that count."""
    for node in nodes:
        pool = cluster.pool_of(node.name)
        if pool is None:
            continue
        repairs = len(repairs_of(node.name, log, cluster.policy, now))
        reason = health_reason_of(node.reason) if is_condemned(node.reason) else None
        if reason is not None and _takes_no_jobs(node):
            yield NodeStanding(
                node.name,
                pool.pool_id,
                reason.verdict.value,
                reason.check,
                reason.detail,
                node.reason_time_utc,
                repairs,
                _next_step(node, pool.pool_id, log, cluster.policy, now),
            )
        elif is_drained_by_slurm(node):
            yield NodeStanding(
                *(node.name, pool.pool_id, "", "", node.reason),
                *(node.reason_time_utc, repairs, _STAYS_SLURMS),
            )
        elif repairs:
            yield NodeStanding(node.name, pool.pool_id, "", "", "", None, repairs, "")


def _takes_no_jobs(node: Node) -> bool:
    flags = (NodeFlag.DRAIN, NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED)
    return node.state.has(*flags)


def _next_step(node: Node, pool: str, log: RepairLog, policy: Policy, now: datetime) -> str:
    reason = health_reason_of(node.reason)
    if reason is None:
        return ""
    if pool in log.stopped:
        return "stays drained: the repairs of its pool are stopped"
    if reason.verdict.drains:
        why = forbidden(reason, node.name, log, policy, now)
        standing = standing_of(node)
        if why and standing is not Standing.REBOOTING:
            return f"stays drained: {why}"
        if standing is Standing.DRAINED and is_reboot_issued(node.reason):
            return _WAITS_FOR_RUN
        return _WAITS.get(standing, "is repaired at the next pass")
    return "serves again at the next pass"
