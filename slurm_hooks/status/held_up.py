"""What holds the cluster up, as lines for people: the gravest first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from slurm_hooks.reconcile.actions import NoticeKind
from slurm_hooks.reconcile.pool_record import read_record
from slurm_hooks.reconcile.snapshot import Unavailable
from slurm_hooks.slurm.hostlist import collapse
from slurm_hooks.slurm.model import SlurmSnapshot
from slurm_hooks.status.model import NodeState, NodeStatus, StatusInputs
from slurm_hooks.status.words import stamp

_GRAVEST_FIRST = (
    NodeState.ERROR,
    NodeState.REPAIRING,
    NodeState.UPDATING,
    NodeState.PREPARING,
)
_TOLD_BY_DAEMON = frozenset(
    {
        NoticeKind.FAILURE,
        NoticeKind.KILLS_HELD,
        NoticeKind.UNREADABLE,
        NoticeKind.UNKNOWN_FLAG,
        NoticeKind.UNKNOWN_STATE,
        NoticeKind.DUPLICATE_VM,
        NoticeKind.LOGIN_NODES_LACK,
    }
)
"""Conditions that nothing else here tells of."""

MOST_LINES_A_STATE = 10
"""Nodes that say the same share a line; more different ones than this are counted."""


def held_up_by(inputs: StatusInputs, nodes: Sequence[NodeStatus]) -> tuple[str, ...]:
    """One line for each thing that keeps nodes from serving."""
    return (
        *_unreadable(inputs),
        *_held_pools(inputs),
        *_stopped_repairs(inputs),
        *_conditions(inputs),
        *_nodes(nodes),
    )


def _unreadable(inputs: StatusInputs) -> Iterator[str]:
    for part in (inputs.slurm, inputs.compute, inputs.repairs):
        if isinstance(part, Unavailable):
            yield f"{part.system} could not be read: {part.why}"
    if inputs.daemon_runs is False:
        yield "slurm-hooksd does not run: start it, nothing is kept in step without it"


def _held_pools(inputs: StatusInputs) -> Iterator[str]:
    """Pools that failed in a row: their free nodes are not offered for a while."""
    if not isinstance(inputs.slurm, SlurmSnapshot):
        return
    for node in inputs.slurm.nodes.values():
        record = read_record(node.comment) if node.comment else None
        pool = inputs.cluster.pool_of(node.name) if record is not None else None
        if record is None or pool is None or record.until_utc is None:
            continue
        if record.is_held(inputs.now):
            yield (
                f"pool {pool.pool_id} is held until {stamp(record.until_utc)}"
                f" after {record.failures} failures in a row: {record.cause}"
            )


def _stopped_repairs(inputs: StatusInputs) -> Iterator[str]:
    if isinstance(inputs.repairs, Unavailable):
        return
    for pool_id, event in inputs.repairs.stopped.items():
        yield f"the repairs of pool {pool_id} are stopped since {stamp(event.time_utc)}"


def _conditions(inputs: StatusInputs) -> Iterator[str]:
    """What the daemon alone knows, such as calls that Compute Engine refuses. What one that does
    not run has told last may be over."""
    if inputs.daemon_runs is False:
        return
    for condition in inputs.conditions:
        if condition.kind in _TOLD_BY_DAEMON:
            yield f"{condition.subject}: {condition.text}: {condition.detail}".rstrip(": ")


def _nodes(nodes: Sequence[NodeStatus]) -> Iterator[str]:
    for state in _GRAVEST_FIRST:
        by_detail: dict[str, list[str]] = {}
        for node in nodes:
            if node.state is state:
                by_detail.setdefault(node.detail, []).append(node.name)
        lines = [f"{collapse(names)}: {detail}" for detail, names in by_detail.items()]
        yield from lines[:MOST_LINES_A_STATE]
        if len(lines) > MOST_LINES_A_STATE:
            yield f"{len(lines) - MOST_LINES_A_STATE} more lines of nodes in state {state}"
