"""The configuration files of a box: Slurm's own, the rendered ones and the controller's settings.

slurm.conf here holds what one machine needs; all that concerns the cluster comes from the
renderer, as on a real controller. Facts: one machine acts as many nodes only with `-N`, with
overridden hardware and without cgroups.
"""

from __future__ import annotations

import os
import pwd
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import slurm_hooks
from slurm_hooks.cluster.errors import ClusterFileError
from slurm_hooks.cluster.load import load_cluster
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.sandbox.box.daemons import find_program
from slurm_hooks.sandbox.box.layout import BoxError, Layout
from slurm_hooks.sandbox.box.state import BoxState, Ports

_MUNGE_KEY_BYTES = 128
_MOST_GPUS = 16


@dataclass(frozen=True, slots=True)
class BoxOptions:
    """What may differ from box to box. `capacity` is the VMs that the zone of each pool can
    hold, None without limit; `latency` are the emulator's by their JSON names."""

    with_daemon: bool = True
    suspend_time_seconds: int = 15
    suspend_timeout_seconds: int = 10
    resume_timeout_seconds: int = 300
    pass_interval_seconds: int = 2
    capacity: int | None = None
    latency: Mapping[str, float] = field(default_factory=dict)


def example_cluster_file() -> Path:
    """The example cluster of a checkout. Raises BoxError when there is none."""
    path = Path(slurm_hooks.__file__).parents[1] / "etc" / "slurm-hooks" / "cluster_config.json"
    if not path.exists():
        raise BoxError("the example cluster is not installed: name a cluster file with --config")
    return path


def read_cluster(path: Path) -> Cluster:
    """Read a cluster file. Raises BoxError with all that is wrong."""
    try:
        return load_cluster(path)
    except (ClusterFileError, OSError) as error:
        raise BoxError(f"{path}: {error}") from None


def write_configuration(
    state: BoxState, cluster: Cluster, cluster_file: Path, options: BoxOptions
) -> None:
    """Write every configuration file of the box."""
    layout = Layout(state.directory)
    write_private(layout.munge_key, secrets.token_bytes(_MUNGE_KEY_BYTES))
    layout.cluster_file.write_bytes(cluster_file.read_bytes())
    layout.settings.write_text(_settings(state, cluster, options), encoding="utf-8")
    layout.slurm_conf.write_text(_slurm_conf(layout, state.ports, options), encoding="utf-8")
    (layout.directory / "gres.conf").write_text(
        f"NodeName=flexvm-a3u-[0-1] Name=gpu File={layout.devices}/nvidia[0-7]\n"
    )
    _write_programs(layout, state.python)
    _make_devices(layout)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from its first moment on."""
    path.touch(mode=0o600)
    path.write_bytes(content)


def _settings(state: BoxState, cluster: Cluster, options: BoxOptions) -> str:
    layout = Layout(state.directory)
    values = {
        "ClusterConfig": layout.cluster_file,
        "ClusterId": cluster.cluster_id,
        "Project": cluster.project,
        "SpoolDir": layout.hooks_spool,
        "LogFile": layout.log("slurm-hooks"),
        "LogLevel": "DEBUG",
        "ApiEndpoint": f"http://127.0.0.1:{state.ports.emulator}",
        "ApiCredentials": "anonymous",
        "SlurmBinDir": Path(find_program("scontrol")).parent,
        "PassIntervalSeconds": options.pass_interval_seconds,
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _write_programs(layout: Layout, python: str) -> None:
    """The programs that Slurm calls, as an installation has them, with the mode Slurm asks for."""
    for name in ("resume", "suspend", "resume_fail"):
        path = layout.programs / f"slurm-hooks-{name.replace('_', '-')}"
        path.write_text(
            f"#!{python}\n"
            "import sys\n"
            f"from slurm_hooks.programs.{name} import main\n"
            "sys.exit(main())\n",
            encoding="utf-8",
        )
        path.chmod(0o755)


def _make_devices(layout: Layout) -> None:
    """GPUs without hardware: slurmd ignores GPUs whose device files it cannot see."""
    for index in range(_MOST_GPUS):
        (layout.devices / f"nvidia{index}").symlink_to("/dev/null")


def _slurm_conf(layout: Layout, ports: Ports, options: BoxOptions) -> str:
    user = pwd.getpwuid(os.getuid()).pw_name
    return f"""\
ClusterName=box
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports.slurmctld}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={layout.munge_socket},cred_expire=5
CommunicationParameters=NoCtldInAddrAny
StateSaveLocation={layout.slurmctld_state}
SlurmctldPidFile={layout.slurmctld_state}/slurmctld.pid
SlurmctldLogFile={layout.log("slurmctld")}
SlurmctldDebug=verbose
MailProg=/bin/true
SlurmctldSyslogDebug=quiet
DebugFlags=Power
SlurmdSpoolDir={layout.node_spools}/%n
SlurmdPidFile={layout.node_spools}/%n/slurmd.pid
SlurmdLogFile={layout.logs}/%n.log
SlurmdSyslogDebug=quiet
SlurmdParameters=config_overrides
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SlurmdTimeout=30
ReturnToService=2
TreeWidth=65533
GresTypes=gpu
SlurmctldParameters=idle_on_node_suspend,cloud_reg_addrs,power_save_interval=1
PrivateData=cloud
SuspendTime={options.suspend_time_seconds}
SuspendTimeout={options.suspend_timeout_seconds}
ResumeTimeout={options.resume_timeout_seconds}
ResumeRate=0
SuspendRate=0
ResumeProgram={layout.programs}/slurm-hooks-resume
SuspendProgram={layout.programs}/slurm-hooks-suspend
NodeName=flexvm-a3u-[0-1] NodeHostName=localhost NodeAddr=127.0.0.1 Gres=gpu:8 \\
  Port={ports.first_node}-{ports.first_node + 1} CPUs=224 RealMemory=2900000 State=CLOUD
PartitionName=a3u Nodes=flexvm-a3u-[0-1] Default=YES
"""
