"""The state of the whole cluster, from those of its nodes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_hooks.reconcile.snapshot import Unavailable
from slurm_hooks.slurm.hostlist import collapse
from slurm_hooks.status.model import ClusterState, NodeState, NodeStatus, StatusInputs


def cluster_state(inputs: StatusInputs, nodes: Sequence[NodeStatus]) -> tuple[ClusterState, str]:
    """The first of the states that fits, in the order of `ClusterState`, and why."""
    if inputs.is_deleting:
        return ClusterState.STOPPING, "it is deleted: slurm-hooks apply brings it back"
    if isinstance(inputs.slurm, Unavailable):
        return ClusterState.ERROR, "slurmctld does not answer"
    always = [node for node in nodes if node.must_exist]
    failed = [node for node in always if node.state is NodeState.ERROR]
    if failed:
        return ClusterState.ERROR, f"{_names(failed)}: {failed[0].detail}"
    updating = [node for node in nodes if node.state is NodeState.UPDATING]
    if updating and _is_set_up(nodes):
        return ClusterState.UPDATING, _still_to("be updated", updating)
    unready = (NodeState.PREPARING, NodeState.UPDATING)
    missing = [node for node in always if node.state in unready]
    if missing or updating:
        return ClusterState.PROVISIONING, _still_to("come", missing or updating)
    return ClusterState.RUNNING, _running_text(always)


def _is_set_up(nodes: Sequence[NodeStatus]) -> bool:
    """Whether Slurm names any node: before that nothing is there that could be updated."""
    return any(node.slurm_state for node in nodes)


def _still_to(do: str, nodes: Sequence[NodeStatus]) -> str:
    count = f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"
    return f"{count} still to {do}: {_names(nodes)}"


def _running_text(always: Sequence[NodeStatus]) -> str:
    repaired = [node for node in always if node.state is NodeState.REPAIRING]
    return f"{_names(repaired)} under repair" if repaired else ""


def _names(nodes: Sequence[NodeStatus]) -> str:
    return collapse(node.name for node in nodes)
