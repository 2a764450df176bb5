"""HealthCheckProgram: slurmd calls it every HealthCheckInterval, whatever runs on the node."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NoReturn

from slurm_hooks.health import program
from slurm_hooks.health.host import Host

PROGRAM = program.Program(
    "slurm-hooks-health-check",
    "HealthCheckProgram",
    "looks at the node now and then, and drains one that is not well.",
)


def main() -> NoReturn:
    """Entry point of `slurm-hooks-health-check`: it never returns."""
    program.run_and_leave(PROGRAM, sys.argv[1:], _work)


def _work(host: Host, _environment: Mapping[str, str]) -> int:
    from slurm_hooks.health.in_background import in_background

    return in_background(host)


if __name__ == "__main__":
    main()
