"""What the programs for slurmd share: surroundings, arguments, and what happens to our mistakes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from slurm_hooks.health.host import Host
from slurm_hooks.health.slurmd import USAGE, UsageError, host_of
from slurm_hooks.programs import node_log, surroundings

Work = Callable[[Host, Mapping[str, str]], int]


class Program(NamedTuple):
    """One of them. `role` is the key in slurm.conf that names it, `purpose` ends its sentence."""

    name: str
    role: str
    purpose: str


def run_and_leave(program: Program, arguments: Sequence[str], work: Work) -> NoReturn:
    """Run one program, and end the process with its exit status for slurmd.

    It lives for a moment: searching for garbage, and taking the interpreter down piece by piece,
    would cost a Prolog a quarter of its time.
    """
    gc.disable()
    status = run(program, arguments, work)
    os._exit(status)


def run(program: Program, arguments: Sequence[str], work: Work) -> int:
    """Run one program and return its exit status for slurmd.

    A mistake of ours lets the job start, and is loud: it must not take the cluster down.
    """
    surroundings.mend()
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(USAGE.format(**program._asdict()))
        sys.stdout.flush()
        return 0
    log_file = Host().log_file
    try:
        host = host_of(arguments, os.environ)
        log_file = host.log_file
        return work(host, os.environ)
    except UsageError as error:
        node_log.write(log_file, program.name, "ERROR", "called wrongly", why=error)
    except Exception as error:
        kind = type(error).__name__
        message = "health run failed by itself"
        node_log.write(log_file, program.name, "ERROR", message, kind=kind, why=error)
    return 0
