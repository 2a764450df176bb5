"""How Slurm starts on this VM: slurmd on a compute node, its clients on a login node.

The daemons are started by their own units, which read their options from a file below
/run/slurm-hooks and do not start without it. So a boot that fails starts none.
Measured on 22.05.8: `--conf-server` and SLURM_CONF_SERVER take several controllers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from slurm_hooks.boot.identity import Authentication, Identity
from slurm_hooks.boot.machine import BootError, Machine
from slurm_hooks.health.children import PATH, run_program

SLURMD_FILE, SACKD_FILE = "slurmd", "sackd"
"""In the run directory; each has one variable, which the daemon's unit hands to it."""

_VERSION_SECONDS = 10.0
_TAKES_INSTANCE = (23, 11)
"""The first slurmd with --instance-id and --instance-type."""
_SERVER_VARIABLE = "SLURM_CONF_SERVER"


def forget_last_boot(machine: Machine) -> None:
    """Remove what an earlier run in this boot handed over, so that a failure counts."""
    os.makedirs(machine.run_directory, mode=0o755, exist_ok=True)
    for name in (SLURMD_FILE, SACKD_FILE):
        try:
            os.unlink(os.path.join(machine.run_directory, name))
        except FileNotFoundError:
            continue


def prepare_slurmd(machine: Machine, identity: Identity) -> str:
    """Hand slurmd its options; returns them. Raises BootError and OSError."""
    program = machine.find_program("slurmd")
    if not program:
        raise BootError("slurmd is not installed in the image")
    options = [*_server_options(machine, identity), "-N", identity.node]
    if _version(program) >= _TAKES_INSTANCE:
        options += ["--instance-id", identity.instance_id]
        options += ["--instance-type", identity.machine_type]
    _hand_over(machine, SLURMD_FILE, "SLURMD_OPTIONS", options)
    return " ".join(options)


def prepare_clients(machine: Machine, identity: Identity) -> str:
    """Let Slurm's commands find the controller; returns how. Raises BootError and OSError.

    sackd, which 24.05 brought, keeps the configuration for all commands. Without it each command
    fetches it for itself from the server that its environment names.
    """
    options = _server_options(machine, identity)
    has_sackd = bool(machine.find_program("sackd"))
    if identity.authentication is Authentication.SLURM and not has_sackd:
        raise BootError("without munge a login node needs sackd (Slurm 24.05), which is missing")
    if has_sackd:
        _hand_over(machine, SACKD_FILE, "SACKD_OPTIONS", options)
        return " ".join(["sackd", *options])
    if not options:
        return "slurm.conf of the image"
    _set_environment(machine, ",".join(identity.controllers))
    return f"{_SERVER_VARIABLE}={','.join(identity.controllers)}"


def _server_options(machine: Machine, identity: Identity) -> tuple[str, ...]:
    """Where the configuration comes from; nothing where the image has one of its own."""
    if identity.controllers:
        return ("--conf-server", ",".join(identity.controllers))
    if os.path.exists(machine.path("etc", "slurm", "slurm.conf")):
        return ()
    raise BootError("no controllers in the metadata, and no /etc/slurm/slurm.conf in the image")


def _version(program: str) -> tuple[int, int]:
    ended = run_program((program, "-V"), _VERSION_SECONDS, {"PATH": PATH})
    found = re.search(r"\b(\d{2})\.(\d{2})\b", ended.output)
    if not ended.is_good or found is None:
        raise BootError(f"{program} -V says {ended.output[:80]!r}, status {ended.status}")
    return int(found[1]), int(found[2])


def _hand_over(machine: Machine, name: str, variable: str, options: Sequence[str]) -> None:
    _replace(os.path.join(machine.run_directory, name), f'{variable}="{" ".join(options)}"\n')


def _set_environment(machine: Machine, servers: str) -> None:
    """Name the server in the environment of all sessions (pam_env reads this file)."""
    path = machine.path("etc", "environment")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        lines = []
    kept = [line for line in lines if not line.startswith(f"{_SERVER_VARIABLE}=")]
    _replace(path, "\n".join([*kept, f"{_SERVER_VARIABLE}={servers}", ""]))


def _replace(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    temporary = f"{path}.new"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(text)
    os.replace(temporary, path)
