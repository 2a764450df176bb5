"""What the programs for slurmd share: surroundings, arguments, and what happens to our mistakes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from slurm_hooks.health.host import Host
from slurm_hooks.health.slurmd import USAGE, UsageError, host_of
from slurm_hooks.programs import log_line, surroundings

Work = Callable[[Host, Mapping[str, str]], int]


def run(role: str, purpose: str, arguments: Sequence[str], work: Work) -> int:
    """Run one program and return its exit status for slurmd.

    A mistake of ours lets the job start, and is loud: it must not take the cluster down.
    """
    surroundings.mend()
    name = os.path.basename(arguments[0])
    if "--help" in arguments[1:] or "-h" in arguments[1:]:
        path = os.path.abspath(arguments[0])
        sys.stdout.write(USAGE.format(name=name, role=role, purpose=purpose, path=path))
        return 0
    log_file = Host().log_file
    try:
        host = host_of(arguments[1:], os.environ)
        log_file = host.log_file
        return work(host, os.environ)
    except UsageError as error:
        log_line.write(log_file, name, "ERROR", "called wrongly", why=error)
    except Exception as error:
        kind = type(error).__name__
        log_line.write(log_file, name, "ERROR", "health run failed by itself", kind=kind, why=error)
    return 0
