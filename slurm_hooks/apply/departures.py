"""Nodes that leave: when they are off for good, so that Slurm can be without them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.apply.impact import leaving_nodes, uses_of
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import ComputeSnapshot
from slurm_hooks.slurm.hostlist import collapse
from slurm_hooks.slurm.model import NodeFlag, SlurmSnapshot


def held_up(wanted: Cluster, slurm: SlurmSnapshot, compute: ComputeSnapshot) -> tuple[str, ...]:
    """Why nodes that leave are still needed, a line each; empty when none is or all are off."""
    return tuple(_reasons(wanted, slurm, compute))


def _reasons(wanted: Cluster, slurm: SlurmSnapshot, compute: ComputeSnapshot) -> Iterator[str]:
    leaving = leaving_nodes(wanted, slurm)
    uses = uses_of(leaving, slurm)
    for use in (*uses.holding, *uses.naming):
        yield f"job {use.job} of {use.user} needs {collapse(use.nodes)}"
    busy = {node for use in uses.holding for node in use.nodes}
    on = [name for name in leaving if name not in busy and not _is_off(slurm, name)]
    if on:
        yield f"not off yet in Slurm: {collapse(on)}"
    awaited = {
        name
        for request in compute.requests.values()
        if request.state.is_active
        for name in request.instances
    }
    with_vms = compute.instances.keys() | compute.members.keys() | awaited
    left = [name for name in leaving if name not in busy and name in with_vms]
    if left:
        yield f"VMs still to go: {collapse(left)}"
    if leaving and slurm.unreadable:
        yield f"Slurm's answer is not readable in full: {slurm.unreadable[0]}"


def _is_off(slurm: SlurmSnapshot, name: str) -> bool:
    state = slurm.nodes[name].state
    return (
        state.has(NodeFlag.POWERED_DOWN)
        and not state.has(
            NodeFlag.POWERING_DOWN,
            NodeFlag.POWERING_UP,
            NodeFlag.POWER_UP,
            NodeFlag.POWER_DOWN,
            NodeFlag.COMPLETING,
        )
        and not state.unknown
    )
