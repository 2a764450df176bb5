"""`slurm-hooks validate`: everything that is wrong with a cluster file, or a short summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.mistakes import refuse_file
from slurm_hooks.cli.options import AsJson

if TYPE_CHECKING:
    from rich.table import Table

    from slurm_hooks.cluster.topology import Cluster, NodePool

ClusterFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The cluster file, JSON or YAML.", show_default=False)
]
ClusterId = Annotated[
    str,
    typer.Option(
        "--cluster-id",
        metavar="ID",
        help="First part of node names. Default: the end of `name`, else `display_name`.",
        show_default=False,
    ),
]


def validate(file: ClusterFile, cluster_id: ClusterId = "", as_json: AsJson = False) -> None:
    """Check a cluster file and name every mistake at once.

    Each mistake comes with the field's path, the problem and a remedy. Exit status: 0 when the
    file is good, 2 when it is not.

    Example:

        slurm-hooks validate /etc/slurm-hooks/cluster_config.json
    """
    cluster = load_or_refuse(file, cluster_id, as_json)
    if as_json:
        typer.echo(json.dumps(_summary(file, cluster), indent=2))
    else:
        _print_summary(file, cluster)


def load_or_refuse(file: Path, cluster_id: str, as_json: bool) -> Cluster:
    """Load a cluster file; a file with mistakes ends the command."""
    from slurm_hooks.cluster.errors import ClusterFileError
    from slurm_hooks.cluster.load import load_cluster

    try:
        return load_cluster(file, cluster_id)
    except ClusterFileError as error:
        refuse_file(str(file), error.errors, as_json)


def _print_summary(file: Path, cluster: Cluster) -> None:
    from rich.console import Console

    typer.echo(f"{file}: good")
    typer.echo(f"cluster {cluster.cluster_id}, project {cluster.project}, {cluster.region}")
    Console().print(_table(cluster))


def _table(cluster: Cluster) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("pool", "machine type", "model", "life", "nodes", "zone", "partitions"):
        table.add_column(heading, overflow="fold")
    for pool in cluster.pools.values():
        table.add_row(
            pool.pool_id,
            pool.machine_type,
            str(pool.provisioning_model),
            "" if pool.run_duration_seconds is None else f"{pool.run_duration_seconds}s",
            f"{pool.min_node_count} to {pool.max_node_count}",
            ", ".join(pool.zones),
            "login" if pool.is_login else ", ".join(_partitions_of(cluster, pool)) or "none",
        )
    return table


def _partitions_of(cluster: Cluster, pool: NodePool) -> list[str]:
    return [name for name, pool_ids in cluster.partitions.items() if pool.pool_id in pool_ids]


def _summary(file: Path, cluster: Cluster) -> dict[str, object]:
    return {
        "file": str(file),
        "valid": True,
        "cluster_id": cluster.cluster_id,
        "project": cluster.project,
        "region": cluster.region,
        "default_partition": cluster.default_partition,
        "pools": [
            {
                "id": pool.pool_id,
                "machine_type": pool.machine_type,
                "provisioning_model": str(pool.provisioning_model),
                "run_duration_seconds": pool.run_duration_seconds,
                "min_node_count": pool.min_node_count,
                "max_node_count": pool.max_node_count,
                "zones": list(pool.zones),
                "login": pool.is_login,
                "partitions": _partitions_of(cluster, pool),
            }
            for pool in cluster.pools.values()
        ],
    }
