"""`slurm-hooks delete`: removes everything of the cluster from Compute Engine, and only that."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.apply import require_charge
from slurm_hooks.cli.mistakes import (
    EXIT_INTERRUPTED,
    EXIT_NOT_DONE,
    give_up,
    printable,
    refuse,
    require_somebody_to_ask,
)
from slurm_hooks.cli.options import AsJsonUnasked, SettingsFile

if TYPE_CHECKING:
    from slurm_hooks.apply.delete_run import DeleteOptions
    from slurm_hooks.apply.inventory import Inventory
    from slurm_hooks.apply.place import Place
    from slurm_hooks.apply.systems import Systems

AGAIN = "run the same command again, it goes on from here"


def delete(
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do it without asking for the cluster's id.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what there is and end.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Take nodes from jobs that run: they are requeued.")
    ] = False,
    timeout: Annotated[
        int, typer.Option(min=0, metavar="SECONDS", help="How long to wait in all.")
    ] = 1800,
    as_json: AsJsonUnasked = False,
    settings_file: SettingsFile = "",
) -> None:
    """Delete the cluster: its requests, groups, VMs, templates, policies and reservations.

    Only what carries this cluster's mark goes. Nodes are powered down and drained, slurm.conf.d/
    stays, and an apply of the same file brings everything back. It may be interrupted at any time:
    run it again.

    Exit status: 0 nothing is left, 1 not done or held up, 2 a mistake, or jobs run; nothing was
    changed then.

    Example:

        slurm-hooks delete --dry-run
    """
    from slurm_hooks.apply.delete_run import DeleteOptions
    from slurm_hooks.apply.inventory import read_inventory

    if not (dry_run or yes):
        require_somebody_to_ask(as_json, "add --dry-run to look, or --yes to delete")
    with _mistakes_told():
        place, systems, cluster_id = _prepared(settings_file)
        found = read_inventory(systems, cluster_id)
        if not as_json:
            _show(found)
        if dry_run:
            if as_json:
                typer.echo(json.dumps(_as_json(found, "looked", ()), indent=2))
            raise typer.Exit(0)
        _require_free(found, force)
        if not yes and typer.prompt(f"Type {cluster_id} to delete it") != cluster_id:
            raise typer.Exit(EXIT_NOT_DONE)
        left = _remove(place, systems, cluster_id, DeleteOptions(force, float(timeout)))
        _show_end(found, left, as_json)
        raise typer.Exit(EXIT_NOT_DONE if left else 0)


def _prepared(settings_file: str) -> tuple[Place, Systems, str]:
    """Where the cluster is. A file that is gone or wrong needs ClusterId and Project instead."""
    from slurm_hooks.apply.place import find_place
    from slurm_hooks.apply.systems import connect
    from slurm_hooks.apply.wanted import read_applied
    from slurm_hooks.settings import SettingsError
    from slurm_hooks.slurm.versions import installed_version_text

    place = find_place(settings_file)
    cluster_id, project = place.values["ClusterId"], place.values["Project"]
    if not (cluster_id and project):
        applied = read_applied(place)
        if applied is None:
            raise SettingsError(
                f"neither {place.cluster_file} nor ClusterId and Project in {place.settings_file}"
                " says which cluster"
            )
        cluster_id, project = applied.cluster_id, applied.project
    systems = connect(place, project, installed_version_text())
    require_charge(systems)
    return place, systems, cluster_id


def _remove(
    place: Place, systems: Systems, cluster_id: str, options: DeleteOptions
) -> tuple[str, ...]:
    from slurm_hooks.apply.delete_run import Removal
    from slurm_hooks.reconcile.locks import sole_change

    with sole_change(place.spool):
        return Removal(place.spool, systems, cluster_id, options, _tell).carry_out()


@contextlib.contextmanager
def _mistakes_told() -> Iterator[None]:
    from slurm_hooks.compute.errors import ComputeError
    from slurm_hooks.reconcile.locks import Locked
    from slurm_hooks.settings import SettingsError
    from slurm_hooks.slurm.client import SlurmError
    from slurm_hooks.slurm.process import CommandFailure

    try:
        yield
    except SettingsError as error:
        refuse(str(error), "see slurm-hooks delete --help")
    except CommandFailure as error:
        refuse(f"no Slurm of this machine tells its version: {error}", "run it on the controller")
    except Locked:
        refuse("another apply, delete or pass of this cluster does not end", "wait for its end")
    except (ComputeError, SlurmError) as error:
        give_up(str(error), f"when it is mended, {AGAIN}")
    except OSError as error:
        give_up(
            f"{error.filename or 'the system'}: {error.strerror}", f"when it is mended, {AGAIN}"
        )
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {AGAIN}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _require_free(found: Inventory, force: bool) -> None:
    if force:
        return
    if found.slurm is None:
        refuse("slurmctld does not answer, so nobody knows which jobs run", "or pass --force")
    if found.jobs:
        listed = ", ".join(f"job {use.job} of {use.user}" for use in found.jobs)
        refuse(f"nodes of the cluster are in use: {listed}", "cancel the jobs, or pass --force")


def _show(found: Inventory) -> None:
    from slurm_hooks.apply.inventory import inventory_lines

    typer.echo(f"cluster {found.cluster_id}")
    lines = list(inventory_lines(found))
    for line in lines or ["nothing of it is in Compute Engine"]:
        typer.echo(f"  {printable(line)}")


def _tell(lines: tuple[str, ...]) -> None:
    typer.echo("still there:", err=True)
    for line in lines:
        typer.echo(f"  {printable(line)}", err=True)


def _show_end(found: Inventory, left: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        outcome = "held up" if left else "deleted"
        typer.echo(json.dumps(_as_json(found, outcome, left), indent=2))
    elif left:
        typer.echo(f"Held up. When it is mended, {AGAIN}.")
    else:
        typer.echo("Nothing is left in Compute Engine. The nodes are drained, slurm.conf.d/ stays:")
        typer.echo("slurm-hooks apply brings the cluster back.")


def _as_json(found: Inventory, outcome: str, left: tuple[str, ...]) -> dict[str, object]:
    return {
        "cluster_id": found.cluster_id,
        "outcome": outcome,
        "groups": sorted(group.name for group in found.compute.groups),
        "vms": sorted(found.compute.instances),
        "instance_templates": sorted(template.name for template in found.templates),
        "workload_policies": sorted(policy.name for policy in found.policies),
        "reservations": sorted(found.reservations),
        "jobs": [use.job for use in found.jobs],
        "left": list(left),
    }
