"""`slurm-hooks status`: how the cluster and its nodes stand, and why not if not."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.mistakes import refuse
from slurm_hooks.cli.options import SettingsFile

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from slurm_hooks.status.model import ClusterStatus, NodeStatus

EXIT_NOT_RUNNING = 1
WIDTH_WITHOUT_TERMINAL = 200


def status(
    pools: Annotated[
        list[str] | None, typer.Option("--pool", metavar="POOL", help="Only nodes of this pool.")
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="NODES", help="Only these nodes, e.g. `demo-a3u-[0-7]`."),
    ] = None,
    every_node: Annotated[
        bool, typer.Option("--all", "-a", help="A line for each node, alike or not.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="With --watch: how often.")
    ] = 5.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Answer in JSON; with --watch one object a line.")
    ] = False,
    settings_file: SettingsFile = "",
) -> None:
    """Show the cluster's state, what holds it up, and each node: its VM, request, end and jobs.

    A cluster is PROVISIONING until all nodes that always exist are there, then RUNNING; UPDATING
    while nodes join, move or leave; ERROR when a person must act; STOPPING while it is deleted.
    Nodes are PREPARING, RUNNING, UPDATING, REPAIRING, ERROR or OFF, and the last column says
    why one is not there. Alike nodes share a line. Times are in UTC.

    Works when Slurm or Compute Engine does not answer, and says so. It reads only. Exit status: 0
    when the cluster is RUNNING and all could be read, 1 when not, 2 for a mistake; with --watch 0.

    Examples:

        slurm-hooks status

        slurm-hooks status --watch --pool a3u

        slurm-hooks status --json | jq -r '.nodes[] | select(.state == "ERROR") | .node'
    """
    chosen = _choice(pools or [], nodes or [])
    if watch:
        _watch(lambda: _read(settings_file), chosen, interval, every_node, as_json)
        return
    found = _read(settings_file)
    if as_json:
        typer.echo(_json_of(found, chosen, indent=2))
    else:
        _console().print(_view_of(found, chosen, every_node))
    raise typer.Exit(0 if _is_well(found) else EXIT_NOT_RUNNING)


def _choice(pools: list[str], nodes: list[str]) -> Callable[[NodeStatus], bool]:
    """Which nodes to show; an unknown pool shows none, since nodes may leave with it."""
    from slurm_hooks.slurm.hostlist import HostlistError, expand

    try:
        names = {name for text in nodes for name in expand(text)}
    except HostlistError as error:
        refuse(f"--node: {error}", "write names, or ranges as Slurm does: demo-a3u-[0-3,7]")
    return lambda node: (not pools or node.pool_id in pools) and (not names or node.name in names)


def _read(settings_file: str) -> ClusterStatus:
    from slurm_hooks import settings
    from slurm_hooks.cluster.errors import ClusterFileError
    from slurm_hooks.status.read import read_status

    try:
        path = settings_file or settings.find(os.environ.get("SLURM_CONF"))
        return read_status(path)
    except settings.SettingsError as error:
        refuse(str(error), "name the settings file with --settings")
    except ClusterFileError as error:
        refuse(str(error), "see slurm-hooks validate")


def _watch(
    read: Callable[[], ClusterStatus],
    chosen: Callable[[NodeStatus], bool],
    interval: float,
    every_node: bool,
    as_json: bool,
) -> None:
    """Show what is read again and again; ends quietly with Ctrl-C."""
    try:
        if as_json:
            while True:
                typer.echo(_json_of(read(), chosen, indent=None))
                time.sleep(interval)
        _watch_on(_console(), read, chosen, interval, every_node)
    except KeyboardInterrupt:
        raise typer.Exit from None


def _watch_on(
    console: Console,
    read: Callable[[], ClusterStatus],
    chosen: Callable[[NodeStatus], bool],
    interval: float,
    every_node: bool,
) -> None:
    from rich.live import Live

    view = _view_of(read(), chosen, every_node)
    with Live(view, console=console, auto_refresh=False) as live:
        while True:
            live.refresh()
            time.sleep(interval)
            live.update(_view_of(read(), chosen, every_node))


def _view_of(
    found: ClusterStatus, chosen: Callable[[NodeStatus], bool], every_node: bool
) -> RenderableType:
    from slurm_hooks.cli.status_table import status_view

    return status_view(found, list(filter(chosen, found.nodes)), fold=not every_node)


def _json_of(found: ClusterStatus, chosen: Callable[[NodeStatus], bool], indent: int | None) -> str:
    from dataclasses import replace

    from slurm_hooks.status.as_json import status_as_json

    return status_as_json(replace(found, nodes=tuple(filter(chosen, found.nodes))), indent)


def _is_well(found: ClusterStatus) -> bool:
    from slurm_hooks.status.model import ClusterState

    return found.state is ClusterState.RUNNING and not found.unavailable


def _console() -> Console:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)
