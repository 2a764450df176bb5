"""The site's own scripts, run after our checks, in the order of their names.

They lie in /etc/slurm-hooks/prolog.d and epilog.d, where the cluster file's prolog_bash_scripts and
epilog_bash_scripts are written to. Each has a deadline of its own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, Verdict

CHECK = "site_script"
_BASH = "/bin/bash"
_SHOWN_CHARACTERS = 120


def run_site_scripts(
    context: Context, host: Host, environment: Mapping[str, str], seconds: float
) -> list[Finding]:
    """Run the scripts of a context until one fails, and say which. `seconds` is for each one.

    A script that others than root may write is not run: it would be run as root.
    """
    directory = host.path("etc", "slurm-hooks", f"{context}.d")
    try:
        names = sorted(name for name in os.listdir(directory) if not name.startswith("."))
    except OSError:
        return []
    if not names:
        return []
    from slurm_hooks.health.children import PATH

    kept = {"PATH": PATH, "LANG": "C.UTF-8", **_slurms_own(environment)}
    for name in names:
        finding = _run(os.path.join(directory, name), name, kept, seconds)
        if finding is not None:
            return [finding]
    return []


def _slurms_own(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that slurmd itself gives to a Prolog or Epilog."""
    return {
        key: value
        for key, value in environment.items()
        if key.startswith(("SLURM_", "SLURMD_")) or key in ("CUDA_VISIBLE_DEVICES",)
    }


def _run(path: str, name: str, environment: Mapping[str, str], seconds: float) -> Finding | None:
    try:
        found = os.stat(path)
    except OSError as error:
        return _finding(name, f"could not be read: {error.strerror}")
    if found.st_uid not in (0, os.geteuid()) or stat.S_IMODE(found.st_mode) & 0o022:
        return _finding(name, "is writable by others than root and was not run")
    from slurm_hooks.health.children import run_program

    try:
        ended = run_program((_BASH, path), seconds, environment)
    except OSError as error:
        return _finding(name, f"could not be started: {error.strerror}")
    if ended.is_good:
        return None
    last = ended.output.splitlines()[-1:] or [""]
    said = f": {last[0][:_SHOWN_CHARACTERS]}" if last[0] else ""
    if ended.status is None:
        return _finding(name, f"did not end in {seconds:g} s{said}")
    how = f"exit {ended.status}" if ended.status >= 0 else f"signal {-ended.status}"
    return _finding(name, f"{how}{said}")


def _finding(name: str, what: str) -> Finding:
    return Finding(CHECK, Verdict.MANUAL, f"{name} {what}")
