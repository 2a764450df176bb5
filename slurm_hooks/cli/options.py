"""Options that several commands take, and mean the same by."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
AsJsonUnasked = Annotated[
    bool, typer.Option("--json", help="Answer in JSON; with --dry-run or --yes.")
]
"""Of a command that else asks a person."""
SettingsFile = Annotated[
    str,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="Default: slurm-hooks.conf beside $SLURM_CONF, else in /etc/slurm-hooks.",
    ),
]
