"""What slurmd calls on a node of a box: our real programs, each on its VM's pretended node.

All VMs of a box share this machine, so the program is told which of them it is on. The reboot
alone is the box's own: it asks the guest, which ends slurmd with all its processes and starts it
on the same VM again.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from importlib import import_module
from pathlib import Path

from slurm_hooks.health.drains import remember_reboot
from slurm_hooks.health.host import Host
from slurm_hooks.sandbox.box.layout import Layout
from slurm_hooks.sandbox.box.processes import ProcessIdentity
from slurm_hooks.sandbox.node.root import NodeRoot, NodeRootError

HEALTH_PROGRAMS = ("prolog", "epilog", "health_check")
REBOOT_SIGNAL = signal.SIGUSR1
"""Upon it a guest reboots."""

_NODE_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


def run(program: str, directory: str, slurm_bin_directory: str) -> int:
    """Run a program for the node that slurmd says, and return its exit status."""
    layout = Layout(Path(directory))
    # slurmd tells its programs the node, but a RebootProgram: that gets slurmd's own environment.
    node = os.environ.get("SLURMD_NODENAME") or os.environ.get("SLURM_HOOKS_VM_NAME", "")
    if not _NODE_NAME.fullmatch(node):
        return _fail(f"{program}: not a node of the box: {node!r}")
    try:
        if program == "reboot":
            remember_reboot(Host(root=str(layout.node(node)), name=node))
            return _reboot(layout, node)
        root = NodeRoot(layout.node(node))
        boot = root.boot()
        root.write_uptime()
    except (NodeRootError, OSError, ValueError) as error:
        return _fail(f"{program}: {error}")
    os.environ["SLURM_CONF"] = str(layout.slurm_conf)
    sys.argv[1:] = [
        "--root", str(root.directory), "--node", node,
        "--metadata-url", f"http://{boot.metadata_host}/computeMetadata/v1",
        "--slurm-bin-dir", slurm_bin_directory,
    ]  # fmt: skip
    return int(import_module(f"slurm_hooks.programs.{program}").main())


def _reboot(layout: Layout, node: str) -> int:
    guest = ProcessIdentity(**json.loads(layout.guest(node).read_text(encoding="utf-8")))
    if guest.send_signal(REBOOT_SIGNAL):
        return 0
    return _fail(f"reboot: the VM {node} does not run")


def _fail(text: str) -> int:
    print(f"slurm-hooks sandbox: {text}", file=sys.stderr)
    return 1
