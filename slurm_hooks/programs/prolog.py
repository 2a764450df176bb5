"""Prolog: slurmd calls it for every job on this node."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NoReturn

from slurm_hooks.health import program
from slurm_hooks.health.host import Host

PROGRAM = program.Program(
    "slurm-hooks-prolog", "Prolog", "checks the node before a job starts on it."
)


def main() -> NoReturn:
    """Entry point of `slurm-hooks-prolog`: it never returns."""
    program.run_and_leave(PROGRAM, sys.argv[1:], _work)


def _work(host: Host, environment: Mapping[str, str]) -> int:
    from slurm_hooks.health.before_job import before_job  # a fault in it must not stop every job

    return before_job(host, environment)


if __name__ == "__main__":
    main()
