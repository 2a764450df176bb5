"""Whose host may be reported as faulty: Compute Engine takes a report for few VMs. Pure."""

from __future__ import annotations

from slurm_hooks.cluster.topology import NodePool

REPORTABLE = ("a3-ultragpu-", "a4-", "a4x-")
"""How the names of the machine types begin: A3 Ultra, A4 and A4X."""


def why_not_reportable(pool: NodePool) -> str:
    """Why the hosts of a pool's VMs cannot be reported; empty where they can."""
    if not pool.machine_type.startswith(REPORTABLE):
        return (
            f"Compute Engine takes reports of hosts for A3 Ultra, A4 and A4X alone,"
            f" and pool {pool.pool_id} is of {pool.machine_type}"
        )
    if pool.reservations is None or not pool.reservations.bound:
        return (
            "Compute Engine takes reports of hosts for VMs that are bound to a reservation alone,"
            f" and pool {pool.pool_id} is {pool.provisioning_model}"
        )
    return ""
