"""Where a node keeps what health checks read, below one root.

The root is `/` on a real node. Another one gives a whole node in a directory, as a chroot would:
its `sys`, `proc`, `dev`, `etc`, `var`, `run`, `mnt` and driver library.
"""

from __future__ import annotations

import os
from typing import NamedTuple

METADATA_URL = "http://169.254.169.254/computeMetadata/v1"
"""By the address, which never changes: looking the name up has no deadline, and a node whose
network is broken must say so in time."""


class Host(NamedTuple):
    """The places of one node. `name` is its name in Slurm, empty where nobody said it.

    `slurm_bin_directory` is where scontrol lies; empty searches the usual directories.
    `slurm_conf` is handed to it; empty leaves that to Slurm.
    """

    root: str = "/"
    name: str = ""
    metadata_url: str = METADATA_URL
    slurm_bin_directory: str = ""
    slurm_conf: str = ""

    def path(self, *parts: str) -> str:
        """A path of the node, such as `path("proc", "sys", "kernel")`, below the root."""
        return os.path.join(self.root, *parts)

    @property
    def policy_file(self) -> str:
        """The health policy."""
        return self.path("etc", "slurm-hooks", "health.yaml")

    @property
    def kernel_log(self) -> str:
        """The kernel's own log, one record a read; a plain file of records below another root."""
        return self.path("dev", "kmsg")

    @property
    def state_directory(self) -> str:
        """What health runs remember on this node's disk. It goes with the VM."""
        return self.path("var", "lib", "slurm-hooks", "health")

    @property
    def log_file(self) -> str:
        """Where health runs write their lines: Slurm keeps no output of its programs."""
        return self.path("var", "log", "slurm-hooks", "health.log")

    @property
    def driver_library(self) -> str:
        """A driver library below another root; empty for the one that the system finds."""
        if self.root == "/":
            return ""
        return self.path("usr", "lib", "libnvidia-ml.so.1")
