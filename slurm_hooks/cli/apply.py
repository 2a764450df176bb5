"""`slurm-hooks apply`: brings the cluster to what its file says; plan first, then step by step."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.mistakes import (
    EXIT_INTERRUPTED,
    EXIT_MISTAKE,
    EXIT_NOT_DONE,
    give_up,
    printable,
    refuse,
    refuse_file,
    require_somebody_to_ask,
)
from slurm_hooks.cli.options import AsJsonUnasked, SettingsFile
from slurm_hooks.cli.validate import ClusterFile, ClusterId

if TYPE_CHECKING:
    from slurm_hooks.apply.place import Place
    from slurm_hooks.apply.plan import Plan
    from slurm_hooks.apply.run import Application
    from slurm_hooks.apply.steps import ApplyOptions, Ending, Step
    from slurm_hooks.apply.systems import Systems
    from slurm_hooks.apply.wanted import Wanted

EXIT_NEEDS_HANDS = 3
AGAIN = "run the same command again when it is mended: it goes on from here"


def apply(
    file: ClusterFile,
    cluster_id: ClusterId = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Carry it out without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and end.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for jobs that hold nodes which leave.")
    ] = False,
    restart_slurmctld: Annotated[
        bool,
        typer.Option(
            "--restart-slurmctld",
            help="Restart it where this Slurm needs that, by RestartSlurmctld of the settings.",
        ),
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="End when slurmctld has it, before nodes are up.")
    ] = False,
    timeout: Annotated[
        int, typer.Option(min=0, metavar="SECONDS", help="How long to wait in all.")
    ] = 1800,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files of slurm.conf.d that were edited.")
    ] = False,
    skip_check: Annotated[
        bool, typer.Option("--skip-check", help="Do not ask the project for what is needed.")
    ] = False,
    as_json: AsJsonUnasked = False,
    settings_file: SettingsFile = "",
) -> None:
    """Bring the cluster to what FILE says: show a plan, ask, do it, wait until it runs.

    Pools, nodes and slurm.conf.d/ follow the file. Nodes that leave finish their jobs first. It
    may be interrupted at any time: run it again, and it goes on from there. Run it as root or as
    the Slurm user on the controller.

    Exit status: 0 the cluster runs (or, with --no-wait, is on its way), 1 not done or held up, 2 a
    mistake, nothing was changed, 3 slurmctld must be restarted or slurm.conf completed.

    Example:

        slurm-hooks apply cluster_config.json --dry-run
    """
    from slurm_hooks.apply.steps import ApplyOptions

    if not (dry_run or yes):
        require_somebody_to_ask(as_json, "add --dry-run to look, or --yes to carry it out")
    options = ApplyOptions(restart_slurmctld, force, not no_wait, float(timeout))
    with _mistakes_told(as_json, file):
        place, wanted, application = _prepared(file, cluster_id, settings_file, options, as_json)
        plan = application.plan()
        if dry_run:
            _show_plan(plan, as_json)
            raise typer.Exit(0)
        with _alone(place):
            _require_possible(plan, wait)
            if not skip_check and not plan.changes.is_empty:
                _require_prerequisites(place, wanted)
            if not as_json:
                _show_plan(plan, as_json)
            if not plan.is_empty and not yes and not typer.confirm("Carry this out?"):
                raise typer.Exit(EXIT_NOT_DONE)
            raise typer.Exit(_carry_out(application, plan, as_json))


def _prepared(
    file: Path, cluster_id: str, settings_file: str, options: ApplyOptions, as_json: bool
) -> tuple[Place, Wanted, Application]:
    """All that the plan needs, read; mistakes and refused changes end the command."""
    from slurm_hooks.apply.changes import compare
    from slurm_hooks.apply.place import find_place
    from slurm_hooks.apply.run import Application
    from slurm_hooks.apply.standing import standing_of
    from slurm_hooks.apply.systems import connect
    from slurm_hooks.apply.wanted import read_applied, read_wanted
    from slurm_hooks.slurm.versions import installed_version_text

    place = find_place(settings_file)
    version = installed_version_text()
    wanted = read_wanted(file, place, cluster_id, version)
    applied = read_applied(place)
    refusals = compare(applied, wanted.cluster).refusals
    if refusals:
        refuse_file(str(file), refusals, as_json)
    systems = connect(place, wanted.cluster.project, version)
    require_charge(systems)
    return (
        place,
        wanted,
        Application(
            place,
            wanted,
            applied,
            systems,
            options,
            Teller(),
            lambda: standing_of(place.settings_file),
        ),
    )


def require_charge(systems: Systems) -> None:
    """End the command on a controller that only stands by."""
    from slurm_hooks.apply.systems import is_elsewhere

    if is_elsewhere(systems):
        refuse(
            "the slurmctld of this host is not in charge",
            "run it where `scontrol ping` says that slurmctld is UP first",
        )


@contextlib.contextmanager
def _mistakes_told(as_json: bool, file: Path) -> Iterator[None]:
    from slurm_hooks.apply.rendered_files import ForeignFiles
    from slurm_hooks.apply.systems import RestartFailed
    from slurm_hooks.cluster.errors import ClusterFileError
    from slurm_hooks.settings import SettingsError
    from slurm_hooks.slurm.client import SlurmError
    from slurm_hooks.slurm.process import CommandFailure
    from slurm_hooks.slurm.render import RenderError

    try:
        yield
    except ClusterFileError as error:
        refuse_file(str(file), error.errors, as_json)
    except ForeignFiles as error:
        refuse(
            f"not written by slurm-hooks, or edited since: {', '.join(error.names)}",
            "put what you want to say into the cluster file, and pass --force",
        )
    except CommandFailure as error:
        refuse(f"no Slurm of this machine tells its version: {error}", "install slurmctld here")
    except (SettingsError, RenderError) as error:
        refuse(str(error), "see slurm-hooks apply --help")
    except (RestartFailed, SlurmError) as error:
        give_up(f"slurmctld: {error}", AGAIN)
    except OSError as error:
        give_up(f"{error.filename or 'the system'}: {error.strerror}", AGAIN)
    except KeyboardInterrupt:
        typer.echo("interrupted: run the same command again, it goes on from here", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None


@contextlib.contextmanager
def _alone(place: Place) -> Iterator[None]:
    from slurm_hooks.reconcile.locks import Locked, sole_change

    try:
        with sole_change(place.spool):
            yield
    except Locked:
        refuse("another apply or delete of this cluster runs", "wait for its end")


def _require_possible(plan: Plan, waits: bool) -> None:
    """End the command, with all the reasons, before anything is changed."""
    from slurm_hooks.apply.plan import obstacles_of

    obstacles = list(obstacles_of(plan, waits=waits))
    for obstacle in obstacles:
        typer.echo(f"error: {printable(obstacle.problem)}", err=True)
        typer.echo(f"  remedy: {printable(obstacle.remedy)}", err=True)
    if obstacles:
        raise typer.Exit(EXIT_MISTAKE)


def _require_prerequisites(place: Place, wanted: Wanted) -> None:
    """End the command where something that is needed is known to be missing in the project."""
    from slurm_hooks.apply.prerequisites import missing_prerequisites

    missing = missing_prerequisites(place, wanted.cluster)
    for obstacle in missing:
        typer.echo(f"error: {printable(obstacle.problem)}", err=True)
        typer.echo(f"  remedy: {printable(obstacle.remedy)}", err=True)
    if missing:
        typer.echo("Nothing was changed. See slurm-hooks check, or pass --skip-check.", err=True)
        raise typer.Exit(EXIT_NOT_DONE)


def _show_plan(plan: Plan, as_json: bool) -> None:
    from slurm_hooks.apply.plan_text import plan_as_json, plan_lines

    if as_json:
        typer.echo(json.dumps(plan_as_json(plan), indent=2))
        return
    for line in plan_lines(plan):
        typer.echo(printable(line))


def _carry_out(application: Application, plan: Plan, as_json: bool) -> int:
    from slurm_hooks.apply.plan_text import plan_as_json
    from slurm_hooks.apply.steps import Outcome

    ending = application.carry_out()
    if as_json:
        answer = {
            "plan": plan_as_json(plan),
            "outcome": str(ending.outcome),
            "step": str(ending.step),
            "lines": list(ending.lines),
        }
        typer.echo(json.dumps(answer, indent=2))
    else:
        _show_ending(ending)
    statuses = {Outcome.DONE: 0, Outcome.HELD_UP: EXIT_NOT_DONE}
    return statuses.get(ending.outcome, EXIT_NEEDS_HANDS)


def _show_ending(ending: Ending) -> None:
    typer.echo(f"{ending.step}: {ending.outcome}")
    for line in ending.lines:
        typer.echo(f"  {printable(line)}")


class Teller:
    """Tells of the steps on stderr, a line a change."""

    def begins(self, step: Step) -> None:
        """Nothing yet: most steps are over at once."""

    def says(self, step: Step, lines: tuple[str, ...]) -> None:
        """What a step waits for."""
        for line in lines:
            typer.echo(f"{step}: waiting: {printable(line)}", err=True)

    def ends(self, step: Step) -> None:
        """A step is done."""
        typer.echo(f"{step}: done", err=True)
