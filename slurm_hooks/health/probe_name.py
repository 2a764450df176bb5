"""The name under which the driver and `ps` show our probe, for people who read the kernel log.

Any user can name a program so: nothing is decided by it.
"""

from __future__ import annotations

PROBE_NAME = "slurm-hooks-gpu"
"""At most 15 characters: the kernel keeps no more of a process's name."""


def take_probe_name() -> None:
    """Give this process the probe's name. Never raises: without it, only the log says less."""
    try:
        with open("/proc/self/comm", "wb", buffering=0) as name:
            name.write(PROBE_NAME.encode())
    except OSError:
        return
