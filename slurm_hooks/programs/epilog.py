"""Epilog: slurmd calls it for every job on this node."""

from __future__ import annotations

import sys

from slurm_hooks.health import program
from slurm_hooks.health.after_job import after_job


def main() -> int:
    """Entry point of `slurm-hooks-epilog`."""
    return program.run(
        "Epilog",
        "checks the node after a job, and queues the job again if the node was at fault.",
        sys.argv,
        after_job,
    )


if __name__ == "__main__":
    sys.exit(main())
