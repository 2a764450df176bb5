"""Epilog: slurmd calls it for every job on this node."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NoReturn

from slurm_hooks.health import program
from slurm_hooks.health.host import Host

PROGRAM = program.Program(
    "slurm-hooks-epilog",
    "Epilog",
    "checks the node after a job, and queues the job again if the node was at fault.",
)


def main() -> NoReturn:
    """Entry point of `slurm-hooks-epilog`: it never returns."""
    program.run_and_leave(PROGRAM, sys.argv[1:], _work)


def _work(host: Host, environment: Mapping[str, str]) -> int:
    from slurm_hooks.health.after_job import after_job  # a fault in it must not drain every node

    return after_job(host, environment)


if __name__ == "__main__":
    main()
