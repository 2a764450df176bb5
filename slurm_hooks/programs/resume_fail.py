"""ResumeFailProgram: slurmctld calls it with the nodes that did not come up in ResumeTimeout."""

from __future__ import annotations

import sys

from slurm_hooks.programs import hook


def main() -> int:
    """Entry point of `slurm-hooks-resume-fail`."""
    return hook.run("resume-fail", "ResumeFailProgram", sys.argv)


if __name__ == "__main__":
    sys.exit(main())
