"""HealthCheckProgram: slurmd calls it every HealthCheckInterval, whatever runs on the node."""

from __future__ import annotations

import sys

from slurm_hooks.health import program
from slurm_hooks.health.in_background import in_background


def main() -> int:
    """Entry point of `slurm-hooks-health-check`."""
    return program.run(
        "HealthCheckProgram",
        "looks at the node now and then, and drains one that is not well.",
        sys.argv,
        lambda host, _environment: in_background(host),
    )


if __name__ == "__main__":
    sys.exit(main())
