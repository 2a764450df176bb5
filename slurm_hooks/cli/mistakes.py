"""How the commands tell a user of a mistake: complete, on stderr, exit status 2, no traceback."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from slurm_hooks.cluster.errors import FieldError

EXIT_NOT_DONE, EXIT_MISTAKE, EXIT_INTERRUPTED = 1, 2, 130


def refuse(problem: str, remedy: str) -> NoReturn:
    """End the command for one mistake that has no place in a file."""
    typer.echo(f"error: {printable(problem)}", err=True)
    typer.echo(f"  remedy: {printable(remedy)}", err=True)
    raise typer.Exit(EXIT_MISTAKE)


def give_up(problem: str, then: str) -> NoReturn:
    """End the command for what is no mistake of the user's; `then` says how to go on."""
    typer.echo(f"error: {printable(problem)}", err=True)
    typer.echo(f"  {then}", err=True)
    raise typer.Exit(EXIT_NOT_DONE)


def require_somebody_to_ask(as_json: bool, remedy: str) -> None:
    """End the command where it would have to ask, and nobody is there."""
    if as_json or not sys.stdin.isatty():
        refuse("nobody can be asked here", remedy)


def require_sandbox() -> None:
    """End the command where the package was installed without what the sandbox needs."""
    if all(find_spec(module) for module in ("starlette", "uvicorn")):
        return
    refuse(
        "the emulator's HTTP server is not installed",
        "install the package with its extra `sandbox`, in a clone: pip install '.[sandbox]'",
    )


def refuse_file(file: str, errors: Sequence[FieldError], as_json: bool) -> NoReturn:
    """End the command for all the mistakes of a file; as JSON they go to stdout."""
    if as_json:
        found = [
            {"path": error.path, "problem": error.problem, "remedy": error.remedy}
            for error in errors
        ]
        typer.echo(json.dumps({"file": file, "valid": False, "errors": found}, indent=2))
        raise typer.Exit(EXIT_MISTAKE)
    count = f"{len(errors)} mistake{'s' if len(errors) > 1 else ''}"
    typer.echo(f"{printable(file)}: {count}", err=True)
    for error in errors:
        typer.echo(f"\n  {printable(error.path)}", err=True)
        typer.echo(f"    problem: {printable(error.problem)}", err=True)
        typer.echo(f"    remedy:  {printable(error.remedy)}", err=True)
    raise typer.Exit(EXIT_MISTAKE)


def printable(text: str) -> str:
    """A text without what a terminal would act on or could not encode."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )
