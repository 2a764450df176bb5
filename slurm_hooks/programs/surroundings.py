"""Makes the bare surroundings in which slurmctld runs its programs fit to work in.

Slurm 22.05 starts them with file descriptors 0, 1 and 2 closed and most signals blocked; every
version gives no PATH. Nothing here may fail: a program that dies at its start leaves no trace.
"""

from __future__ import annotations

import os
import signal


def mend() -> None:
    """Open /dev/null on closed standard descriptors and unblock every signal."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free descriptor is this one, since those below it are open by now.
            os.open(os.devnull, os.O_RDWR)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
