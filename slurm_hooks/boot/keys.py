"""What the controller tells a VM by its instance metadata: the names of the keys, for both sides.

Lists have commas between their items. A key that is absent has the value that its line says.
"""

from __future__ import annotations

import enum


class Role(enum.StrEnum):
    """What a VM is to its cluster: a node that runs jobs, or one from which people send them."""

    COMPUTE = "compute"
    LOGIN = "login"


CLUSTER = "slurm-hooks-cluster"
"""The cluster id. Required: without it a VM is none of ours."""
POOL = "slurm-hooks-pool"
"""The pool id. Required."""
ROLE = "slurm-hooks-role"
"""`compute`, which is the default, or `login`."""
CONTROLLERS = "slurm-hooks-controllers"
"""HOST or HOST:PORT of each slurmctld, the primary first. Absent: the image has a slurm.conf."""
AUTHENTICATION = "slurm-hooks-authentication"
"""`munge`, which is the default, or `slurm`."""
KEY_SECRET = "slurm-hooks-key-secret"
"""`projects/P/secrets/S/versions/V`, whose payload is the key. Absent: the image has the key."""
HOME = "slurm-hooks-home"
"""The Filestore instance whose share is /home. Absent: the image's own /home."""
FILESTORES = "slurm-hooks-filestores"
"""Filestore instances to mount below /mnt/filestore, as partial URLs."""
LUSTRES = "slurm-hooks-lustres"
"""Lustre instances to mount below /mnt/lustre, as partial URLs."""
MOUNT_SOURCES = "slurm-hooks-mount-sources"
"""INSTANCE=SOURCE for instances whose address the VM need not ask for."""
NFS_OPTIONS = "slurm-hooks-nfs-options"
LUSTRE_OPTIONS = "slurm-hooks-lustre-options"
"""What mount takes behind -o; absent: the defaults in mounts.py."""
STARTUP_SCRIPT = "slurm-hooks-startup-script"
"""The pool's startup script, whole. Not Google's own key: its guest agent would run it, too."""
STARTUP_SCRIPT_SECONDS = "slurm-hooks-startup-script-seconds"
"""How long it may run."""
GPUS = "slurm-hooks-gpus"
"""How many GPUs the VM has; absent: none."""
