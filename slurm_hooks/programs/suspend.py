"""SuspendProgram: slurmctld calls it with the nodes that are to be powered down."""

from __future__ import annotations

import sys

from slurm_hooks.programs import hook


def main() -> int:
    """Entry point of `slurm-hooks-suspend`."""
    return hook.run("suspend", "SuspendProgram", sys.argv)


if __name__ == "__main__":
    sys.exit(main())
