"""Prolog: slurmd calls it for every job on this node."""

from __future__ import annotations

import sys

from slurm_hooks.health import program
from slurm_hooks.health.before_job import before_job


def main() -> int:
    """Entry point of `slurm-hooks-prolog`."""
    return program.run("Prolog", "checks the node before a job starts on it.", sys.argv, before_job)


if __name__ == "__main__":
    sys.exit(main())
