"""The `slurm-hooks` command: registers the subcommands and nothing else.

Each subcommand is a module of its own that imports at its top only what its options need (typer);
what its work needs (pydantic, google, starlette) is imported inside its functions, so that
`slurm-hooks --help` answers at once.
"""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from slurm_hooks.cli import (
    apply,
    check,
    delete,
    emulator,
    events,
    render,
    repairs,
    report_faulty,
    sandbox,
    status,
    sync,
    validate,
)

app = typer.Typer(
    name="slurm-hooks",
    help="Slurm on Flex-start VMs of Compute Engine: check, render and try out a cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(validate.validate)
app.command()(render.render)
app.command()(check.check)
app.command()(apply.apply)
app.command()(delete.delete)
app.command()(status.status)
app.command()(sync.sync)
app.command()(events.events)
app.command("report-faulty")(report_faulty.report_faulty)
app.add_typer(repairs.app, name="repairs")
app.command()(emulator.emulator)
app.add_typer(sandbox.app, name="sandbox")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"slurm-hooks {metadata.version('slurm-hooks')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """Slurm on Flex-start VMs of Compute Engine: check, render and try out a cluster."""


def main() -> None:
    """Run the command line; the process ends with the subcommand's exit status."""
    app()


if __name__ == "__main__":
    main()
