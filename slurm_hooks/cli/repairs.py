"""`slurm-hooks repairs`: which nodes are condemned and what becomes of them; a pool let go on."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.events import history_of
from slurm_hooks.cli.mistakes import printable, refuse
from slurm_hooks.cli.options import AsJson, SettingsFile

if TYPE_CHECKING:
    from slurm_hooks.cluster.topology import Cluster
    from slurm_hooks.history.events import EventHistory
    from slurm_hooks.reconcile.repair_report import NodeStanding, PoolStanding
    from slurm_hooks.reconcile.repairs import RepairLog
    from slurm_hooks.slurm.model import Node

app = typer.Typer()


@app.callback(invoke_without_command=True)
def repairs(
    context: typer.Context,
    as_json: AsJson = False,
    settings_file: SettingsFile = "",
) -> None:
    """Show the pools, whether their nodes are repaired, and the nodes that need it.

    A health run that finds a node ill drains it. slurm-hooksd then reboots or replaces the node
    when nothing runs there; a rebooted one serves again when a health run has passed. Limits are
    in the cluster file (`slurm_hooks`): no repair when the job was queued again too often
    (`most_job_restarts`), had only some of the node's GPUs, or the node was repaired too often
    already (`most_repairs_a_node` within `repair_days`). When many nodes of a pool are condemned
    at once (`stop_repairs_least`, `stop_repairs_percent`, within `stop_repairs_seconds`), the
    pool's repairs stop until `slurm-hooks repairs resume POOL`.

    To take a node out of all this, drain it with a reason of your own:

        scontrol update nodename=demo-a3u-3 state=drain reason="looked at by me"

    Examples:

        slurm-hooks repairs

        slurm-hooks repairs resume a3u
    """
    if context.invoked_subcommand is not None:
        return
    from slurm_hooks.reconcile.repair_report import node_standings, pool_standings

    cluster = _cluster(settings_file)
    log, now = _log(history_of(settings_file), cluster), datetime.now(UTC)
    pools = pool_standings(cluster, log)
    nodes = list(node_standings(cluster, _nodes(settings_file), log, now))
    if as_json:
        typer.echo(json.dumps(_as_object(pools, nodes), indent=2))
    else:
        _print(pools, nodes, cluster.policy.repair_days)


@app.command()
def resume(
    pool: Annotated[str, typer.Argument(metavar="POOL", help="The pool's id.")],
    settings_file: SettingsFile = "",
) -> None:
    """Let the nodes of a stopped pool be repaired again.

    First find the cause that its nodes share: `slurm-hooks events --pool POOL`. Nodes that are
    still condemned are repaired at once; only later condemnations can stop the pool again.
    Exit status: 0 also when the pool was not stopped, 2 for a mistake.
    """
    from slurm_hooks.history.event import Event, EventKind
    from slurm_hooks.history.events import HistoryUnavailable
    from slurm_hooks.reconcile.bell import ring

    cluster = _cluster(settings_file)
    if pool not in cluster.pools:
        refuse(f"no pool {pool} in the cluster file", f"write one of {', '.join(cluster.pools)}")
    history = history_of(settings_file)
    if pool not in _log(history, cluster).stopped:
        typer.echo(f"the repairs of pool {pool} are not stopped")
        return
    now = datetime.now(UTC)
    key = f"{EventKind.REPAIRS_RESUMED} {pool} {now.isoformat()}"
    event = Event(now, EventKind.REPAIRS_RESUMED, pool, key, message="by a person")
    try:
        history.record([event], now)
    except HistoryUnavailable as error:
        refuse(str(error), "run it as the Slurm user or as root")
    woken = ring(history.path.parent)
    typer.echo(f"the nodes of pool {pool} are repaired again{'' if woken else ' (no daemon runs)'}")


def _settings(settings_file: str) -> tuple[str, dict[str, str]]:
    import os

    from slurm_hooks import settings

    try:
        path = settings_file or settings.find(os.environ.get("SLURM_CONF"))
        return path, settings.read(path)
    except settings.SettingsError as error:
        refuse(str(error), "name the settings file with --settings")


def _cluster(settings_file: str) -> Cluster:
    from slurm_hooks.cli.validate import load_or_refuse

    _, values = _settings(settings_file)
    return load_or_refuse(Path(values["ClusterConfig"]), values["ClusterId"], as_json=False)


def _log(history: EventHistory, cluster: Cluster) -> RepairLog:
    from slurm_hooks.history.events import HistoryUnavailable
    from slurm_hooks.reconcile.repairs import log_of

    try:
        days = timedelta(days=cluster.policy.repair_days)
        return log_of(history.recent(datetime.now(UTC) - days))
    except HistoryUnavailable as error:
        refuse(str(error), "run it as the Slurm user or as root, on the controller")


def _nodes(settings_file: str) -> list[Node]:
    from slurm_hooks.reconcile.assembly import slurm_conf_of
    from slurm_hooks.slurm.client import SlurmError
    from slurm_hooks.slurm.scontrol import ScontrolClient

    path, values = _settings(settings_file)
    try:
        client = ScontrolClient(slurm_conf_of(path), values["SlurmBinDir"])
        return list(client.read().nodes.values())
    except SlurmError as error:
        refuse(str(error), "see `scontrol ping`")


def _print(pools: list[PoolStanding], nodes: list[NodeStanding], days: int) -> None:
    for pool in pools:
        stopped = pool.stopped
        if stopped is None:
            typer.echo(f"pool {pool.pool}: nodes are repaired")
        else:
            since = stopped.time_utc.strftime("%Y-%m-%dT%H:%M:%SZ")
            typer.echo(printable(f"pool {pool.pool}: STOPPED since {since}: {stopped.message}"))
    for node in nodes:
        found = " ".join(filter(None, [node.verdict, node.check, node.detail]))
        state = f"{found}: {node.next_step}" if node.next_step else "serves"
        typer.echo(printable(f"{node.node}: {state}{_count(node.repairs, days)}"))


def _count(repairs: int, days: int) -> str:
    if not repairs:
        return ""
    times = "once" if repairs == 1 else f"{repairs} times"
    return f"; repaired {times} in {days} {'day' if days == 1 else 'days'}"


def _as_object(pools: list[PoolStanding], nodes: list[NodeStanding]) -> dict[str, object]:
    return {
        "pools": [
            {
                "id": pool.pool,
                "repairs_stopped": pool.stopped is not None,
                "since": pool.stopped.time_utc.isoformat() if pool.stopped else None,
                "why": pool.stopped.message if pool.stopped else "",
            }
            for pool in pools
        ],
        "nodes": [
            {**asdict(node), "since_utc": node.since_utc.isoformat() if node.since_utc else None}
            for node in nodes
        ],
    }
