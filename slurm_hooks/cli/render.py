"""`slurm-hooks render`: writes what Slurm and the hook programs read for a cluster file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from slurm_hooks.apply.rendered_files import FileState, ForeignFiles, write_files
from slurm_hooks.cli.mistakes import printable, refuse
from slurm_hooks.cli.options import AsJson
from slurm_hooks.cli.validate import ClusterFile, ClusterId, load_or_refuse
from slurm_hooks.settings import DEFAULTS


def render(
    file: ClusterFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="slurm.conf's directory.", show_default=False
        ),
    ],
    cluster_id: ClusterId = "",
    slurm_version: Annotated[
        str,
        typer.Option(metavar="VERSION", help="Such as 24.11. Default: what is installed here."),
    ] = "",
    programs_directory: Annotated[
        str, typer.Option(metavar="DIR", help="Where slurm-hooks-resume and the others are.")
    ] = "/usr/bin",
    node_programs_directory: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Where compute nodes have slurm-hooks-prolog and the others.",
            show_default="as here",
        ),
    ] = "",
    cluster_config: Annotated[
        str, typer.Option(metavar="PATH", help="Where the daemon finds the cluster file.")
    ] = DEFAULTS["ClusterConfig"],
    suspend_time: Annotated[
        int, typer.Option(metavar="SECONDS", help="How long a dynamic node may idle.")
    ] = 300,
    suspend_timeout: Annotated[
        int, typer.Option(metavar="SECONDS", help="How long a VM may take to be deleted.")
    ] = 180,
    contain: Annotated[
        bool,
        typer.Option(
            "--contain/--no-contain", help="PrologFlags=Contain, which needs proctrack/cgroup."
        ),
    ] = True,
    configless: Annotated[
        bool, typer.Option("--configless", help="For nodes that get their files from slurmctld.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that render did not write, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write slurm.conf.d/, gres.conf and slurm-hooks.conf for a cluster file.

    Your slurm.conf stays as it is: add the Include lines that are printed. If a file is in the
    way that render did not write, or that was edited since, nothing is written at all without
    --force.

    Example:

        slurm-hooks render /etc/slurm-hooks/cluster_config.json --output /etc/slurm
    """
    from slurm_hooks.cluster.machine_types import catalogue_beside
    from slurm_hooks.slurm.render import (
        RenderError,
        RenderOptions,
        include_lines,
        parse_slurm_version,
    )
    from slurm_hooks.slurm.render import render as render_cluster

    cluster = load_or_refuse(file, cluster_id, as_json)
    try:
        options = RenderOptions(
            slurm_version=parse_slurm_version(slurm_version or _installed_version()),
            programs_directory=programs_directory,
            node_programs_directory=node_programs_directory,
            cluster_config=cluster_config,
            suspend_time_seconds=suspend_time,
            suspend_timeout_seconds=suspend_timeout,
            configless=configless,
            contain_jobs=contain,
            catalogue=catalogue_beside(file),
        )
        texts = render_cluster(cluster, options)
    except RenderError as error:
        refuse(str(error), "see slurm-hooks render --help")
    states = _write_or_refuse(output, texts, force)
    _report(output, states, include_lines(configless), as_json)


def _installed_version() -> str:
    from slurm_hooks.slurm.process import CommandFailure
    from slurm_hooks.slurm.versions import installed_version_text

    try:
        return installed_version_text()
    except CommandFailure:
        refuse("no Slurm of this machine tells its version", "pass --slurm-version, such as 24.11")


def _write_or_refuse(output: Path, texts: dict[str, str], force: bool) -> dict[str, FileState]:
    try:
        return write_files(output, texts, force)
    except ForeignFiles as error:
        listed = ", ".join(str(output / name) for name in error.names)
        refuse(f"not written by render, or edited since: {listed}", "move them, or pass --force")
    except OSError as error:
        refuse(f"{error.filename or output}: {error.strerror}", "check the directory")


def _report(
    output: Path, states: dict[str, FileState], includes: tuple[str, ...], as_json: bool
) -> None:
    if as_json:
        answer = {"directory": str(output), "files": states, "includes": includes}
        typer.echo(json.dumps(answer, indent=2))
        return
    for name, state in states.items():
        typer.echo(f"{state:9}  {printable(str(output / name))}")
    typer.echo("\nAdd to slurm.conf, if they are not there:")
    for line in includes:
        typer.echo(f"  {line}")
