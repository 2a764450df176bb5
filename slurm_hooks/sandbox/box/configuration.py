"""The configuration files of a box: slurm.conf, the rendered files and the controller's settings.

slurm.conf holds what one machine and one user need; all that concerns the cluster comes from the
renderer, as on a real controller. Facts: one machine is many nodes only with `slurmd -N`, with
hardware that need not be there, and without cgroups.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import slurm_hooks
from slurm_hooks import settings
from slurm_hooks.cluster.document import read_document
from slurm_hooks.cluster.errors import ClusterFileError
from slurm_hooks.cluster.load import load_cluster
from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.health.machine_types import BUILT_IN
from slurm_hooks.health.policy import ExpectedHardware
from slurm_hooks.sandbox.box.daemons import find_program
from slurm_hooks.sandbox.box.layout import BoxError, Layout
from slurm_hooks.sandbox.box.node_programs import HEALTH_PROGRAMS
from slurm_hooks.sandbox.box.provisions import provisions_of
from slurm_hooks.sandbox.box.state import BoxState
from slurm_hooks.sandbox.gpu.build import DriverLibraryError, build_driver_library
from slurm_hooks.sandbox.node.hardware import NodeHardware, write_hardware
from slurm_hooks.slurm.render import (
    RenderError,
    RenderOptions,
    include_lines,
    parse_slurm_version,
    render,
)

_MUNGE_KEY_BYTES = 128
_MOST_GPUS = 16
_VERSION_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class BoxOptions:
    """What may differ from box to box. `capacity` is the VMs that the zone of each compute pool
    can hold, None without limit; `latency` are the emulator's by their JSON names. The grace is
    the controller's where the cluster file sets none: its own minutes are too long to watch.
    Without `applied` the box is as before the first apply: no cluster file, nothing rendered,
    slurmctld and slurm-hooksd not started; the file that it is made with says how far it may
    grow."""

    with_daemon: bool = True
    applied: bool = True
    suspend_time_seconds: int = 15
    suspend_timeout_seconds: int = 10
    resume_timeout_seconds: int = 600
    requeue_delay_seconds: int = 5
    scheduler_interval_seconds: int = 5
    pass_interval_seconds: int = 2
    health_check_interval_seconds: int = 5
    reap_grace_seconds: int = 10
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
    """Write every configuration file of the box. Raises BoxError when it cannot be rendered."""
    layout = Layout(state.directory)
    write_private(layout.munge_key, secrets.token_bytes(_MUNGE_KEY_BYTES))
    texts = _rendered(state, cluster, options)
    if options.applied:
        layout.cluster_file.write_text(_with_grace(cluster_file, options), encoding="utf-8")
    else:
        texts = {settings.FILE_NAME: texts[settings.FILE_NAME]}
    for name, text in texts.items():
        path = layout.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
    with layout.settings.open("a", encoding="utf-8") as file:
        file.write(_more_settings(state, options))
    layout.slurm_conf.write_text(_slurm_conf(state), encoding="utf-8")
    (layout.directory / "cgroup.conf").write_text(_cgroup_conf(), encoding="utf-8")
    _write_programs(layout, state.python)
    _make_devices(layout)
    _provide_hardware(layout, cluster)
    layout.provisions.write_text(provisions_of(cluster).model_dump_json(), encoding="utf-8")


def _with_grace(cluster_file: Path, options: BoxOptions) -> str:
    """The cluster file, which has been read without a mistake, with the box's own grace."""
    document = read_document(cluster_file)
    own = document.get("slurm_hooks")
    policy = {"reap_grace_seconds": options.reap_grace_seconds}
    if isinstance(own, dict):
        policy.update(own)
    return json.dumps({**document, "slurm_hooks": policy}, indent=2) + "\n"


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from its first moment on."""
    path.touch(mode=0o600)
    path.write_bytes(content)


def _slurm_version() -> tuple[int, int]:
    answer = subprocess.run(
        (find_program("slurmctld"), "-V"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_VERSION_SECONDS,
        check=False,
    )
    try:
        return parse_slurm_version(answer.stdout)
    except RenderError as error:
        raise BoxError(str(error)) from None


def _rendered(state: BoxState, cluster: Cluster, options: BoxOptions) -> dict[str, str]:
    layout = Layout(state.directory)
    try:
        return render(
            cluster,
            RenderOptions(
                slurm_version=_slurm_version(),
                programs_directory=str(layout.programs),
                gpu_device_prefix=str(layout.devices / "nvidia"),
                one_machine_first_port=state.ports.first_node,
                suspend_time_seconds=options.suspend_time_seconds,
                suspend_timeout_seconds=options.suspend_timeout_seconds,
                resume_timeout_seconds=options.resume_timeout_seconds,
                requeue_delay_seconds=options.requeue_delay_seconds,
                scheduler_interval_seconds=options.scheduler_interval_seconds,
                munge_socket=str(layout.munge_socket),
                spool_directory=str(layout.hooks_spool),
                log_file=str(layout.log("slurm-hooks")),
                api_endpoint=f"http://127.0.0.1:{state.ports.emulator}",
                api_credentials="anonymous",
                cluster_config=str(layout.cluster_file),
                health_check_interval_seconds=options.health_check_interval_seconds,
                contain_jobs=False,
            ),
        )
    except RenderError as error:
        raise BoxError(str(error)) from None


def _more_settings(state: BoxState, options: BoxOptions) -> str:
    restart = (
        *(state.python, "-m", "slurm_hooks.cli.main", "sandbox", "restart-slurmctld"),
        *("--dir", str(state.directory)),
    )
    return (
        "\nLogLevel=DEBUG\n"
        f"RestartSlurmctld={shlex.join(restart)}\n"
        f"SlurmBinDir={Path(find_program('scontrol')).parent}\n"
        f"PassIntervalSeconds={options.pass_interval_seconds}\n"
    )


def _slurm_conf(state: BoxState) -> str:
    layout = Layout(state.directory)
    user = pwd.getpwuid(os.getuid()).pw_name
    includes = "\n".join(include_lines())
    return f"""\
ClusterName=box
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={state.ports.slurmctld}
CommunicationParameters=NoCtldInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={layout.slurmctld_state}
SlurmctldPidFile={layout.slurmctld_state}/slurmctld.pid
SlurmctldLogFile={layout.log("slurmctld")}
SlurmctldDebug=verbose
SlurmctldSyslogDebug=quiet
DebugFlags=Power
SlurmdSpoolDir={layout.node_spools}/%n
SlurmdPidFile={layout.node_spools}/%n/slurmd.pid
SlurmdLogFile={layout.logs}/%n.log
SlurmdSyslogDebug=quiet
SlurmdTimeout=30
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
MailProg=/bin/true
{includes}
"""


def _cgroup_conf() -> str:
    # Older slurmds cannot switch cgroups off: left to choose, they do not start where cgroups are
    # version 2 or not mounted, as in a container. Version 1 is not touched before a job needs it.
    plugin = "disabled" if _slurm_version() >= (24, 11) else "cgroup/v1"
    return f"CgroupPlugin={plugin}\n"


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
    for name in (*HEALTH_PROGRAMS, "reboot"):
        path = layout.programs / f"slurm-hooks-{name.replace('_', '-')}"
        arguments = (name, str(layout.directory), str(Path(find_program("scontrol")).parent))
        path.write_text(
            f"#!{python}\n"
            "import sys\n"
            "from slurm_hooks.sandbox.box.node_programs import run\n"
            f"sys.exit(run{arguments!r})\n",
            encoding="utf-8",
        )
        path.chmod(0o755)


def _provide_hardware(layout: Layout, cluster: Cluster) -> None:
    """Write down what each node has, and build the driver library if one of them has GPUs."""
    nodes = {
        name: hardware_of(pool)
        for pool in cluster.pools.values()
        for name in cluster.node_names(pool.pool_id)
    }
    write_hardware(layout.hardware, nodes)
    if not any(found.gpus for found in nodes.values()):
        return
    try:
        _build_driver_library(layout.driver_library)
    except (DriverLibraryError, OSError) as error:
        raise BoxError(f"a node with GPUs needs a driver: {error}") from None


def _build_driver_library(path: Path) -> None:
    try:
        build_driver_library(path, _driver_library_cache())
    except OSError:
        build_driver_library(path)


def _driver_library_cache() -> Path:
    """Where compiled driver libraries are kept for the next box."""
    kept = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(kept) if kept.startswith("/") else Path.home() / ".cache"
    return base / "slurm-hooks"


def hardware_of(pool: NodePool) -> NodeHardware:
    """What the VMs of a pool have: GPUs as the cluster file says, the rest by machine type."""
    known = BUILT_IN.get(pool.machine_type, ExpectedHardware())
    return NodeHardware(pool.accelerator_count, known.nvlinks or 0, known.rdma_ports or 0)


def _make_devices(layout: Layout) -> None:
    """GPUs without hardware: slurmd takes no GPU without a device file that exists."""
    for index in range(_MOST_GPUS):
        (layout.devices / f"nvidia{index}").symlink_to("/dev/null")
