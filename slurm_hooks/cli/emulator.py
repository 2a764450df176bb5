"""`slurm-hooks emulator`: serve an emulated Compute Engine on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slurm_hooks.cli.mistakes import refuse, require_sandbox


def emulator(
    listen: Annotated[
        str, typer.Option(help="HOST:PORT on a loopback address; port 0 takes a free one.")
    ] = "127.0.0.1:0",
    project: Annotated[str, typer.Option(help="The id of the emulated project.")] = "demo",
    project_number: Annotated[
        int, typer.Option(min=1, help="The number of the emulated project.")
    ] = 123456789012,
    zone: Annotated[
        list[str] | None, typer.Option(help="A zone to serve; can be given several times.")
    ] = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option(
            help="N for every zone and machine type, or ZONE/MACHINE_TYPE=N; unlimited without."
        ),
    ] = None,
    boot_command: Annotated[
        str, typer.Option(help="What runs on each VM, without a shell; nothing without.")
    ] = "",
    stop_command: Annotated[
        str, typer.Option(help="What runs before a VM's guest is stopped.")
    ] = "",
    serial_directory: Annotated[
        Path | None, typer.Option(help="Where to keep what VMs write to their serial ports.")
    ] = None,
    node_roots: Annotated[
        Path | None,
        typer.Option(help="Where guests keep their pretended nodes, for faults of GPUs."),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Everything takes a fraction of a second.")
    ] = False,
    log_file: Annotated[
        Path | None, typer.Option(help="Where to log; the standard error without.")
    ] = None,
) -> None:
    """Serve an emulated Compute Engine until SIGTERM, SIGINT or a shutdown call.

    Prints `listening on URL` once it answers. State is in memory only.
    """
    require_sandbox()
    from slurm_hooks.sandbox.emulator import options, server

    _start_logging(log_file)
    try:
        host, port = options.parse_listen(listen)
        default, limits = options.parse_capacities(capacity or [])
        chosen = options.EmulatorOptions(
            project=options.checked_project(project),
            project_number=project_number,
            host=host,
            port=port,
            zones=options.checked_zones(zone),
            fast=fast,
            default_capacity=default,
            capacities=limits,
            boot_command=options.split_command("--boot-command", boot_command),
            stop_command=options.split_command("--stop-command", stop_command),
            serial_directory=serial_directory,
            node_roots=node_roots,
        )
        server.run(chosen, _announce)
    except options.EmulatorError as error:
        refuse(str(error), "see slurm-hooks emulator --help")


def _start_logging(log_file: Path | None) -> None:
    import logging

    try:
        handler = logging.FileHandler(log_file) if log_file else logging.StreamHandler()
    except OSError as error:
        refuse(f"--log-file {log_file}: {error.strerror}", "choose a file that can be written")
    logging.basicConfig(
        handlers=[handler], level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )


def _announce(url: str) -> None:
    print(f"listening on {url}", flush=True)
