"""`slurm-hooks sync`: one pass by hand, plan first; beside a daemon it only shows or rings."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.mistakes import EXIT_NOT_DONE, printable, refuse, require_somebody_to_ask
from slurm_hooks.cli.options import AsJsonUnasked, SettingsFile

if TYPE_CHECKING:
    from slurm_hooks.reconcile.actions import Plan
    from slurm_hooks.reconcile.assembly import Controller
    from slurm_hooks.reconcile.by_hand import Proposal, Result

SETTINGS_REMEDY = "see slurm-hooks sync --help; the command runs as the Slurm user"


def sync(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan of a pass and end.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Carry it out without asking.")] = False,
    force_kills: Annotated[
        bool,
        typer.Option(
            "--force-kills",
            help="Confirm the kills that are held because they are many at once.",
        ),
    ] = False,
    as_json: AsJsonUnasked = False,
    settings_file: SettingsFile = "",
) -> None:
    """Compare Slurm with Compute Engine once, show what to do, ask, and do it.

    It does what a pass of slurm-hooksd does: request, delete, reap, take down. Where the daemon
    runs, it does all that itself: then this shows what it will do, or wakes it. Exit status: 0
    when all is done or nothing is to do, 1 when something was refused, held, not readable or
    not confirmed, 2 for a mistake.

    Example:

        slurm-hooks sync --dry-run
    """
    from slurm_hooks.reconcile.locks import Locked, sole_runner

    if not (dry_run or yes):
        require_somebody_to_ask(as_json, "add --dry-run to look, or --yes to carry it out")
    with _mistakes_told():
        controller = _assembled(settings_file, quiet=dry_run)
        if dry_run:
            raise typer.Exit(_show(_proposal(controller, force_kills).plan, as_json))
        try:
            with sole_runner(controller.spool_directory):
                status = _by_hand(controller, force_kills, yes, as_json)
        except Locked:
            status = _beside_a_daemon(controller, force_kills, yes, as_json)
        raise typer.Exit(status)


@contextlib.contextmanager
def _mistakes_told() -> Iterator[None]:
    from slurm_hooks.reconcile import assembly

    try:
        yield
    except assembly.ERRORS as error:
        refuse(str(error), SETTINGS_REMEDY)


def _assembled(settings_file: str, *, quiet: bool) -> Controller:
    """The controller of the settings; its events go to the daemon's log, or nowhere if quiet."""
    from slurm_hooks import settings
    from slurm_hooks.history.log import configure
    from slurm_hooks.reconcile import assembly

    path = settings_file or assembly.find_settings()
    values = settings.read(path)
    if quiet:
        configure("CRITICAL", None)
    else:
        configure(values["LogLevel"], Path(values["LogFile"]))
    return assembly.assemble(path)


def _proposal(controller: Controller, force_kills: bool) -> Proposal:
    from slurm_hooks.reconcile.by_hand import propose

    return propose(
        controller.passes, force_kills=force_kills, tell=lambda line: typer.echo(line, err=True)
    )


def _by_hand(controller: Controller, force_kills: bool, yes: bool, as_json: bool) -> int:
    from slurm_hooks.reconcile.by_hand import carry_out

    if not controller.passes.is_in_charge():
        refuse(
            "the slurmctld of this host is not in charge, none answers, or the cluster is deleted",
            "run it where `scontrol ping` says that slurmctld is UP first; slurm-hooks apply brings"
            " a deleted cluster back",
        )
    proposal = _proposal(controller, force_kills)
    plan = proposal.plan
    if not as_json or not plan.actions:
        shown = _show(plan, as_json)
        if not plan.actions:
            return shown
    if not yes and not typer.confirm("Carry this out?"):
        return EXIT_NOT_DONE
    results = carry_out(controller.passes, proposal)
    _show_results(results, as_json)
    return EXIT_NOT_DONE if _is_trouble(plan) or _is_refused(results) else 0


def _beside_a_daemon(controller: Controller, force_kills: bool, yes: bool, as_json: bool) -> int:
    """Another process runs passes: leave them to it, and wake it."""
    from slurm_hooks.reconcile.bell import ring

    confirmed = 0
    if force_kills:
        plan = _proposal(controller, force_kills=False).plan
        confirmed = plan.kills_in_question
        if not as_json:
            _show(plan, as_json)
        if confirmed and not yes and not typer.confirm(f"Let slurm-hooksd kill {confirmed}?"):
            return EXIT_NOT_DONE
    woken = ring(controller.spool_directory, confirmed)
    if as_json:
        answer = {"passes_run_by": "another process", "woken": woken, "confirmed_kills": confirmed}
        typer.echo(json.dumps(answer, indent=2))
    elif woken:
        typer.echo("slurm-hooksd runs and does this at every pass; it was woken for one now.")
        typer.echo("See slurm-hooks sync --dry-run for what is left to do, and its log.")
    else:
        typer.echo("A pass that a hook program started is on its way: try again when it is over.")
    return 0 if woken else EXIT_NOT_DONE


def _show(plan: Plan, as_json: bool) -> int:
    from slurm_hooks.reconcile.report import plan_as_json, plan_as_text

    typer.echo(plan_as_json(plan) if as_json else plan_as_text(plan))
    return EXIT_NOT_DONE if _is_trouble(plan) else 0


def _show_results(results: list[Result], as_json: bool) -> None:
    if as_json:
        found = [
            {"subject": one.action.subject, "fate": one.fate.name, "why": one.why}
            for one in results
        ]
        typer.echo(json.dumps({"results": found}, indent=2))
        return
    for one in results:
        why = f": {printable(one.why)}" if one.why else ""
        typer.echo(f"{one.fate}: {one.action.subject}{why}")


def _is_trouble(plan: Plan) -> bool:
    from slurm_hooks.reconcile.actions import NoticeKind

    return bool(plan.held) or any(n.kind is NoticeKind.UNAVAILABLE for n in plan.notices)


def _is_refused(results: list[Result]) -> bool:
    from slurm_hooks.reconcile.by_hand import Fate

    return any(one.fate is Fate.REFUSED for one in results)
