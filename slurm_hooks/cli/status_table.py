"""A status as people see it at a terminal: the cluster, what holds it up, its nodes by pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from slurm_hooks.cli.mistakes import printable
from slurm_hooks.slurm.hostlist import collapse
from slurm_hooks.status.model import ClusterState, ClusterStatus, NodeState, NodeStatus
from slurm_hooks.status.words import stamp

_CLUSTER_STYLES = {
    ClusterState.RUNNING: "bold green",
    ClusterState.ERROR: "bold red",
}
_NODE_STYLES = {
    NodeState.RUNNING: "green",
    NodeState.ERROR: "bold red",
    NodeState.OFF: "dim",
}
_ON_THE_WAY = "yellow"
_HEADINGS = ("pool", "nodes", "state", "in Slurm", "VM", "ends", "jobs", "why")
MOST_JOBS_SHOWN = 4


def status_view(
    status: ClusterStatus, nodes: Sequence[NodeStatus], *, fold: bool
) -> RenderableType:
    """The status, with these of its nodes; `fold` puts alike nodes of a pool into one line."""
    head = Text.assemble(
        "cluster ",
        (status.cluster_id, "bold"),
        " is ",
        (status.state.value, _CLUSTER_STYLES.get(status.state, f"bold {_ON_THE_WAY}")),
        f": {printable(status.detail)}" if status.detail else "",
        f"  (at {stamp(status.time_utc)})",
    )
    held_up = [Text(f"  {printable(line)}") for line in status.held_up_by]
    if held_up:
        held_up.insert(0, Text("held up by"))
    return Group(head, *held_up, _table(nodes, fold=fold))


def _table(nodes: Sequence[NodeStatus], *, fold: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold")
    last_pool = None
    for alike in _alike(nodes) if fold else ([node] for node in nodes):
        first = alike[0]
        table.add_row(
            "" if first.pool_id == last_pool else _pool_text(first),
            Text(_names(alike)),
            Text(first.state.value, _NODE_STYLES.get(first.state, _ON_THE_WAY)),
            Text(first.slurm_state.replace("+CLOUD", "") or "-"),
            Text(first.vm.status if first.vm is not None else "-"),
            Text(stamp(first.end_of_life_utc) if first.end_of_life_utc is not None else "-"),
            Text(_jobs_text(alike)),
            Text(printable(first.detail)),
        )
        last_pool = first.pool_id
    return table


def _alike(nodes: Sequence[NodeStatus]) -> Iterator[list[NodeStatus]]:
    """Nodes of a pool of which all is the same but names, jobs and VMs, in order."""
    groups: dict[tuple[object, ...], list[NodeStatus]] = {}
    for node in nodes:
        key = (
            node.pool_id,
            node.state,
            node.detail,
            node.slurm_state,
            node.vm.status if node.vm is not None else "",
            node.end_of_life_utc,
        )
        groups.setdefault(key, []).append(node)
    pools = list(dict.fromkeys(node.pool_id for node in nodes))
    yield from sorted(groups.values(), key=lambda alike: pools.index(alike[0].pool_id))


def _pool_text(node: NodeStatus) -> Text:
    return Text(f"{node.pool_id} (login)" if node.is_login else node.pool_id)


def _names(alike: Sequence[NodeStatus]) -> str:
    count = f" ({len(alike)})" if len(alike) > 1 else ""
    return f"{collapse(node.name for node in alike)}{count}"


def _jobs_text(alike: Iterable[NodeStatus]) -> str:
    jobs = list(dict.fromkeys(job for node in alike for job in node.jobs))
    more = f" and {len(jobs) - MOST_JOBS_SHOWN} more" if len(jobs) > MOST_JOBS_SHOWN else ""
    return ", ".join(map(str, jobs[:MOST_JOBS_SHOWN])) + more or "-"
