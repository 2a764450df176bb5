"""What a boot hands over is enough for Slurm's own daemons and commands, without a file of theirs.

One munged and one /run are a node's, so this one node has a mount namespace of its own, where root
may make one; all that runs in it ends with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from slurm_hooks.boot import keys
from slurm_hooks.sandbox.box.ports import free_port_block
from tests.unit.boot.vms import NODE, Vm, good_vm

pytestmark = pytest.mark.slow

UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
SLURM_CONF = """\
ClusterName=configless
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmctldParameters=enable_configless
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmctldPidFile={directory}/slurmctld.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdSpoolDir={directory}/spool
SlurmdPidFile={directory}/slurmd.pid
SlurmdLogFile={directory}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
NodeName={node} NodeAddr=127.0.0.1 Port={node_port} CPUs=1
PartitionName=all Nodes=ALL Default=YES
"""
WHOLE_NODE = """\
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t tmpfs none /run
mkdir /run/munge
munged --force --key-file="$1/compute/etc/munge/munge.key" --pid-file=/run/munged.pid \\
  --seed-file=/run/munged.seed --log-file="$1/munged.log"
slurmctld -c -f "$1/slurm.conf"
. "$1/compute/run/slurm-hooks/slurmd"
slurmd $SLURMD_OPTIONS
rm /run/slurm/conf  # what slurmd keeps there, commands on a login node do not have
export $(cat "$1/login/etc/environment")
until [ "$(sinfo -h -N -o '%N %t')" = "$2 idle" ]; do sleep 0.2; done
srun -N1 printenv SLURMD_NODENAME
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory that a namespace of ours can be used in."""
    programs = [shutil.which(name, path="/usr/sbin:/usr/bin") for name in ("munged", "slurmctld")]
    if None in programs or subprocess.run((*UNSHARE, "true"), check=False).returncode != 0:
        pytest.skip("needs munged, slurmctld, slurmd and, as root, the right to make namespaces")
    (tmp_path / "state").mkdir()
    return tmp_path


def boot(vm: Vm, port: int, role: keys.Role) -> None:
    vm.tell(keys.CONTROLLERS, f"localhost:{port}")
    vm.tell(keys.ROLE, role)
    assert vm.boot(), vm.console


def test_slurmd_and_commands_get_their_configuration_from_the_controller(directory: Path) -> None:
    port = free_port_block(2)
    conf = SLURM_CONF.format(port=port, node_port=port + 1, directory=directory, node=NODE)
    (directory / "slurm.conf").write_text(conf)
    for role in keys.Role:
        with good_vm(directory / role) as vm:
            boot(vm, port, role)
    key = directory / "compute/etc/munge/munge.key"
    for path in (key, key.parent):
        os.chown(path, os.geteuid(), os.getegid())  # munged runs as us here
    answer = subprocess.run(
        (*UNSHARE, "bash", "-c", WHOLE_NODE, "node", str(directory), NODE),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    logs = "".join(path.read_text() for path in directory.glob("*.log"))
    assert answer.stdout == f"{NODE}\n", f"{answer.stderr}\n{logs}"
