"""What the VMs of a cluster must be told to become nodes by themselves: our own settings.

Written under the key `slurm_hooks` of the cluster file; docs/node_boot.md says what nodes make of
them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

STARTUP_SCRIPT_SECONDS = 900


class Authentication(enum.StrEnum):
    """Slurm's AuthType of the cluster: auth/munge, or auth/slurm, which 23.11 brought."""

    MUNGE = "munge"
    SLURM = "slurm"


@dataclass(frozen=True, slots=True)
class NodeBoot:
    """How nodes of one cluster boot.

    `controllers` are HOST or HOST:PORT of each slurmctld, the primary first; without them the
    image has a slurm.conf. `key_secret` is the version of the secret that holds the key of munge
    or Slurm; without it the image has the key. `mount_sources` are (instance, what mount takes)
    of storage whose address nodes need not ask for.
    """

    controllers: tuple[str, ...] = ()
    authentication: Authentication = Authentication.MUNGE
    key_secret: str = ""
    mount_sources: tuple[tuple[str, str], ...] = ()
    nfs_mount_options: str = ""
    lustre_mount_options: str = ""
    startup_script_timeout_seconds: int = STARTUP_SCRIPT_SECONDS
