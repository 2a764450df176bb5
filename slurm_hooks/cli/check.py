"""`slurm-hooks check`: what a project lacks for a cluster, and the commands that mend it."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.mistakes import printable, refuse
from slurm_hooks.cli.options import AsJson, SettingsFile
from slurm_hooks.cli.validate import ClusterId, load_or_refuse

if TYPE_CHECKING:
    from rich.table import Table

    from slurm_hooks.prerequisites.model import Finding

EXIT_FAILURE = 1
WIDTH_OF_FILES = 160
"""Columns of the table where no terminal says how many there are."""
_STYLES = {"PASS": "green", "WARN": "yellow", "FAIL": "bold red", "UNKNOWN": "magenta"}

ClusterFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="The cluster file, JSON or YAML. Default: `ClusterConfig` of the settings.",
        show_default=False,
    ),
]


def check(
    file: ClusterFile = None,
    cluster_id: ClusterId = "",
    as_json: AsJson = False,
    settings_file: SettingsFile = "",
) -> None:
    """Look whether the Google Cloud project has all that the cluster needs, before it is applied.

    Looks at enabled APIs, the roles of the Google APIs Service Agent, your own permissions, the
    nodes' service account, network, machine, disk and accelerator types, images, quotas,
    reservations, Filestore and Lustre instances and the key secret. Changes nothing.

    Below the table stands what is wrong, each with the command that grants or mends it. UNKNOWN is
    what could not be confirmed, such as a role that may be inherited.

    Exit status: 0 when nothing has failed, 1 when something has, 2 for a mistake of yours.

    Examples:

        slurm-hooks check

        slurm-hooks check /etc/slurm-hooks/cluster_config.json --json
    """
    from slurm_hooks.prerequisites.google_project import project_client
    from slurm_hooks.prerequisites.model import is_good
    from slurm_hooks.prerequisites.run import check_prerequisites

    values = _settings(settings_file, may_lack=file is not None)
    path = file or Path(values["ClusterConfig"])
    cluster = load_or_refuse(path, cluster_id or values["ClusterId"], as_json)
    try:
        client = project_client(values, cluster)
    except ValueError as error:
        refuse(str(error), "mend ApiEndpoint or ApiCredentials in the settings")
    findings = check_prerequisites(cluster, client)
    if as_json:
        typer.echo(json.dumps(_as_object(client.project, findings), indent=2))
    else:
        _print(client.project, findings)
    if not is_good(findings):
        raise typer.Exit(EXIT_FAILURE)


def _settings(settings_file: str, may_lack: bool) -> dict[str, str]:
    """The settings; the defaults where there are none yet and the cluster file was named."""
    from slurm_hooks import settings

    try:
        path = settings_file or settings.find(os.environ.get("SLURM_CONF"))
    except settings.SettingsError as error:
        if may_lack:
            return dict(settings.DEFAULTS)
        refuse(str(error), "name the cluster file, or the settings file with --settings")
    try:
        return settings.read(path)
    except settings.SettingsError as error:
        refuse(str(error), "name the settings file with --settings")


def _print(project: str, findings: tuple[Finding, ...]) -> None:
    from rich.console import Console

    console = Console()
    Console(width=None if console.is_terminal else WIDTH_OF_FILES).print(_table(findings))
    for finding in findings:
        if finding.outcome != "PASS":
            about = f"{printable(finding.check)}: {printable(finding.subject)}"
            typer.echo(f"{finding.outcome} {about}\n  {printable(finding.detail)}")
            typer.echo(f"  {shlex.join(finding.fix)}\n" if finding.fix else "")
    typer.echo(f"project {project}: {_count(findings)}")


def _count(findings: tuple[Finding, ...]) -> str:
    words = {"PASS": "passed", "WARN": "warned", "FAIL": "failed", "UNKNOWN": "not confirmed"}
    counts = {word: sum(one.outcome == name for one in findings) for name, word in words.items()}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _table(findings: tuple[Finding, ...]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("", "check", "of", "detail"):
        table.add_column(heading, overflow="fold")
    for one in findings:
        table.add_row(
            Text(one.outcome, style=_STYLES[one.outcome]),
            Text(one.check),
            Text(printable(one.subject)),
            Text(printable(one.detail)),
        )
    return table


def _as_object(project: str, findings: tuple[Finding, ...]) -> dict[str, object]:
    from slurm_hooks.prerequisites.model import is_good

    return {
        "project": project,
        "good": is_good(findings),
        "findings": [
            {
                "check": one.check,
                "subject": one.subject,
                "outcome": str(one.outcome),
                "detail": one.detail,
                "fix": list(one.fix),
            }
            for one in findings
        ],
    }
