"""ResumeProgram: slurmctld calls it with the nodes that jobs or people want powered up."""

from __future__ import annotations

import sys

from slurm_hooks.programs import hook


def main() -> int:
    """Entry point of `slurm-hooks-resume`."""
    return hook.run("resume", "ResumeProgram", sys.argv)


if __name__ == "__main__":
    sys.exit(main())
