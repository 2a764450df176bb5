"""What the image of a box's VMs has, below the root of the node: all that a boot needs of it.

Slurm's daemon and configuration are the box's own. Nothing can be mounted on a machine that many
VMs share, so `mount` only writes down what it was told, where the kernel would show it. Standard
library only: a guest makes it at every boot.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from slurm_hooks.sandbox.box.layout import Layout
from slurm_hooks.sandbox.node.root import NodeRoot

_MOUNT = """\
#!/bin/sh
# Called as mount -t TYPE [-o OPTIONS] SOURCE TARGET: writes down the mount and does nothing.
type=$2
shift 2
options=rw
if [ "$1" = -o ]; then options=$2; shift 2; fi
printf '%s %s %s %s 0 0\\n' "$1" "$2" "$type" "$options" >> {mounts}
"""


def install_image(layout: Layout, root: NodeRoot, slurmd: Path) -> None:
    """Put programs, configuration and keys into the image of a VM that boots."""
    mounts = root.path("proc", "self", "mounts")
    mounts.parent.mkdir(parents=True, exist_ok=True)
    mounts.touch()
    _install(root.path("usr", "sbin", "mount"), _MOUNT.format(mounts=shlex.quote(str(mounts))))
    _link(root.path("usr", "sbin", "slurmd"), slurmd)
    _link(root.path("etc", "slurm", "slurm.conf"), layout.slurm_conf)
    _link(root.path("etc", "slurm", "slurm.key"), layout.munge_key)
    _link(root.path("etc", "munge", "munge.key"), layout.munge_key)


def _install(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


def _link(path: Path, target: Path) -> None:
    """A link of the image; what an earlier boot of the VM put in its place stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() and not path.is_symlink():
        path.symlink_to(target)
