"""How each daemon of a box is started: its program, arguments, environment and output.

Nothing of the machine's own Slurm is used but its programs: every process of a box gets the
box's SLURM_CONF and none of the caller's Slurm variables.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slurm_hooks.sandbox.box.layout import BoxError, Layout
from slurm_hooks.sandbox.box.state import BoxState, DaemonName

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SLURM_VARIABLES = ("SLURM_", "SLURMD_", "SBATCH_", "SALLOC_", "SRUN_", "SQUEUE_", "SINFO_")
_PACKAGES = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "scontrol": "slurm-client",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A process to start. Standard output and error are appended to `output`."""

    arguments: tuple[str, ...]
    output: Path


def box_environment(layout: Layout, python: str, base: Mapping[str, str]) -> dict[str, str]:
    """The environment of everything in the box: `base` with the box's Slurm and our programs."""
    environment = {
        name: value for name, value in base.items() if not name.startswith(_SLURM_VARIABLES)
    }
    path = environment.get("PATH") or _SYSTEM_PATH
    environment["PATH"] = os.pathsep.join([str(Path(python).parent), path, _SYSTEM_PATH])
    environment["SLURM_CONF"] = str(layout.slurm_conf)
    return environment


def find_program(name: str) -> str:
    """The absolute path of a program of Slurm or munge. Raises BoxError when not installed."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), _SYSTEM_PATH]))
    if found is None:
        package = _PACKAGES[name]
        raise BoxError(f"{name} is not installed: on Debian, apt-get install {package}")
    return found


def require_programs() -> None:
    """Raise BoxError when a program that a box needs is not installed."""
    for name in _PACKAGES:
        find_program(name)


def daemon_command(state: BoxState, daemon: DaemonName) -> Command:
    """The command of a daemon of this box."""
    layout = Layout(state.directory)
    match daemon:
        case DaemonName.MUNGED:
            arguments = _munged(layout)
        case DaemonName.EMULATOR:
            arguments = _emulator(state)
        case DaemonName.SLURMCTLD:
            arguments = (find_program("slurmctld"), "-D", "-f", str(layout.slurm_conf))
            # Its log file has the same lines, with times.
            return Command(arguments, layout.logs / "slurmctld.out")
        case DaemonName.HOOKSD:
            arguments = (state.python, "-m", "slurm_hooks.reconcile.daemon")
    return Command(arguments, layout.log(daemon))


def guest_command(state: BoxState) -> tuple[str, ...]:
    """What the emulator runs when a VM boots."""
    return (
        state.python, "-m", "slurm_hooks.sandbox.box.guest",
        "--dir", str(state.directory), "--slurmd", find_program("slurmd"),
        "--api", f"http://127.0.0.1:{state.ports.emulator}",
    )  # fmt: skip


def _munged(layout: Layout) -> tuple[str, ...]:
    directory = layout.munge_key.parent
    # --force: munged wants its socket open to all users, a box's is for one user alone.
    return (
        find_program("munged"), "--foreground", "--force", "--num-threads=2",
        f"--key-file={layout.munge_key}", f"--socket={layout.munge_socket}",
        f"--pid-file={directory / 'munged.pid'}", f"--seed-file={directory / 'munged.seed'}",
        f"--log-file={layout.log('munged')}",
    )  # fmt: skip


def _emulator(state: BoxState) -> tuple[str, ...]:
    layout = Layout(state.directory)
    return (
        state.python, "-m", "slurm_hooks.cli.main", "emulator",
        "--listen", f"127.0.0.1:{state.ports.emulator}",
        "--project", state.project,
        *(word for zone in state.zones for word in ("--zone", zone)),
        "--serial-directory", str(layout.serial_ports),
        "--node-roots", str(layout.nodes),
        "--boot-command", shlex.join(guest_command(state)),
    )  # fmt: skip
