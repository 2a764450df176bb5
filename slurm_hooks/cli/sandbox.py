"""`slurm-hooks sandbox`: a Slurm cluster with an emulated Compute Engine, on this machine alone.

Exit status: 0 done, 1 the box failed or is not there, 130 interrupted; `run` ends with the status
of its command, `demo` with 1 when a step did not happen.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.mistakes import require_sandbox

if TYPE_CHECKING:
    from slurm_hooks.sandbox.box.status import BoxStatus

app = typer.Typer(
    help="Try everything out on this machine: a cluster in a box, without a cloud.",
    no_args_is_help=True,
)

Directory = Annotated[
    Path | None,
    typer.Option("--dir", help="The box's directory.", show_default="below XDG_RUNTIME_DIR"),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", help="The cluster file.", show_default="the example cluster"),
]


@contextmanager
def _one_line_errors() -> Iterator[None]:
    from slurm_hooks.sandbox.box.layout import BoxError

    try:
        yield
    except BoxError as error:
        typer.echo(f"slurm-hooks sandbox: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("slurm-hooks sandbox: interrupted", err=True)
        raise typer.Exit(130) from None


@app.command()
def up(
    directory: Directory = None,
    config: Config = None,
    daemon: Annotated[
        bool, typer.Option(help="Run slurm-hooksd; without it hook programs do its work.")
    ] = True,
    capacity: Annotated[
        int | None,
        typer.Option(min=0, help="VMs that each zone can hold.", show_default="no limit"),
    ] = None,
    suspend_time: Annotated[
        int, typer.Option(min=1, help="Seconds after which an idle node is powered down.")
    ] = 60,
) -> None:
    """Start a cluster in a box; it runs until `down`."""
    require_sandbox()
    from slurm_hooks.sandbox.box.box import Box

    with _one_line_errors():
        box = Box.start(
            directory,
            config,
            daemon=daemon,
            capacity=capacity,
            suspend_time_seconds=suspend_time,
            release=True,
            progress=_progress,
        )
    suffix = f" --dir {directory}" if directory else ""
    typer.echo(f"The box is up in {box.layout.directory}. Next:")
    typer.echo(f"  slurm-hooks sandbox shell{suffix}    a shell in which sbatch and sinfo use it")
    typer.echo(f"  slurm-hooks sandbox down{suffix}     take it down")


@app.command()
def status(
    directory: Directory = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the box's daemons, nodes and VMs. Exit status 1 when one of the daemons is down."""
    from slurm_hooks.sandbox.box.box import Box
    from slurm_hooks.sandbox.box.status import read_status

    with _one_line_errors():
        box = Box.open(directory)
        found = read_status(box)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        _print_status(found)
    if not found.healthy:
        raise typer.Exit(1)


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...")],
    directory: Directory = None,
) -> None:
    """Run a command with the box's Slurm, e.g. `run -- sbatch -N2 job.sh`."""
    _exec(command, directory)


@app.command()
def shell(directory: Directory = None) -> None:
    """Open a shell whose Slurm commands use the box."""
    from slurm_hooks.sandbox.box.box import Box
    from slurm_hooks.sandbox.box.shell import write_startup_file

    with _one_line_errors():
        startup_file = write_startup_file(Box.open(directory))
    _exec(["bash", "--rcfile", str(startup_file), "-i"], directory)


@app.command()
def gpu(
    node: Annotated[str, typer.Argument(help="A node that is up, such as flexvm-a3u-0.")],
    fault: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="lost, missing, no-device-file, row-remap-failure, ecc, nvlink, recovery-action,"
            " xid, no-driver or hang.",
        ),
    ],
    number: Annotated[int, typer.Option(help="The Xid or the recovery action, for these two.")] = 0,
    gpu_minor: Annotated[
        int, typer.Option("--gpu", min=0, help="Which GPU, by its minor number.")
    ] = 0,
    lasting: Annotated[
        bool, typer.Option("--lasting", help="Let it outlive reboots of the VM.")
    ] = False,
    directory: Directory = None,
) -> None:
    """Break a GPU of a node, e.g. `gpu flexvm-a3u-0 --fault lost --gpu 3`, and watch `sinfo -R`."""
    from slurm_hooks.sandbox.box.box import Box
    from slurm_hooks.sandbox.box.layout import BoxError
    from slurm_hooks.sandbox.emulator.control import EmulatorControlError

    with _one_line_errors():
        box = Box.open(directory)
        try:
            box.control.gpu_fault(node, fault, gpu=gpu_minor, number=number, lasting=lasting)
        except EmulatorControlError as error:
            raise BoxError(error.reason) from None
    typer.echo(f"{node}: GPU {gpu_minor} is broken. Its next health check or job finds it.")


@app.command("restart-slurmctld")
def restart_slurmctld(directory: Directory = None) -> None:
    """Stop the box's slurmctld, start it, and wait until it answers: what `apply` may need."""
    from slurm_hooks.sandbox.box.box import Box

    with _one_line_errors():
        box = Box.open(directory)
        if box.slurmctld.is_running:
            box.slurmctld.kill(signal.SIGTERM)
        box.slurmctld.start()
    typer.echo("slurmctld answers.")


@app.command()
def down(
    directory: Directory = None,
    keep_logs: Annotated[bool, typer.Option(help="Leave the log files in place.")] = False,
) -> None:
    """Take the box down: its daemons, VMs and jobs, then its directory."""
    from slurm_hooks.sandbox.box.box import Box

    with _one_line_errors():
        box = Box.open(directory)
        box.stop(keep_logs=keep_logs)
    typer.echo(f"The logs are in {box.logs}." if keep_logs else "The box is gone.")


@app.command()
def demo(directory: Directory = None, config: Config = None) -> None:
    """Watch a job wait for capacity, get its nodes, run, and the nodes go. Under three minutes."""
    require_sandbox()
    from slurm_hooks.sandbox.demo.story import tell

    with _one_line_errors():
        happened = tell(directory, config)
    if not happened:
        raise typer.Exit(1)


def _exec(command: list[str], directory: Path | None) -> None:
    from slurm_hooks.sandbox.box.box import Box
    from slurm_hooks.sandbox.box.layout import BoxError

    with _one_line_errors():
        box = Box.open(directory)
        if not box.state.is_running:
            raise BoxError(f"the box in {box.layout.directory} does not run")
        try:
            os.execvpe(command[0], command, box.environment)
        except OSError as error:
            raise BoxError(f"{command[0]} cannot be run: {error.strerror}") from None


def _progress(step: str) -> None:
    typer.echo(step, err=not sys.stdout.isatty())


def _print_status(found: BoxStatus) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("what", "name", "state", title=f"box in {found.directory}")
    for daemon in found.daemons:
        table.add_row("daemon", daemon.name, daemon.summary)
    for node in found.nodes:
        table.add_row("node", node.name, node.state)
    for vm in found.instances:
        table.add_row("VM", vm.name, f"{vm.status} in {vm.zone}")
    console.print(table)
    typer.echo(f"SLURM_CONF={found.slurm_conf}")
    typer.echo(f"Compute Engine: {found.emulator_url}")
    for problem in found.problems:
        typer.echo(f"not readable: {problem}")
