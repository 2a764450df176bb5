"""A private slurmctld and slurmds of cloud nodes for tests, without munge and without root.

Everything lies in one directory, listens on free ports of its own and ends with `stop`. The
power-save programs do nothing: a test starts slurmds itself. Another Slurm than the installed one
is tested by naming the directory of its commands and daemons in SLURM_BIN_DIRECTORY.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.ports import free_port_block
from slurm_hooks.slurm.versions import SlurmVersion
from tests.waiting import wait_until

BIN_DIRECTORY = os.environ.get("SLURM_BIN_DIRECTORY", "")
DAEMONS_PATH = ":".join(filter(None, [BIN_DIRECTORY, "/usr/sbin:/usr/bin:/sbin:/bin"]))
PROGRAMS = ("slurmctld", "slurmd", "scontrol", "sbatch", "scancel", "squeue")
STOP_SECONDS = 10

_CONF = """\
ClusterName=demo
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool.%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=2,sched_interval=2
ReturnToService=2
SlurmctldParameters=idle_on_node_suspend,power_save_interval=1{old_parameters}
{old_settings}
SuspendTime=3600
SuspendTimeout=3
ResumeTimeout=600
ResumeRate=0
SuspendRate=0
ResumeProgram={directory}/nothing
SuspendProgram={directory}/nothing
RebootProgram={directory}/nothing
PartitionName=cpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class PrivateSlurm:
    """One cluster `demo` with the cloud nodes `demo-cpu-0` and up, all powered down at first."""

    def __init__(self, directory: Path, node_count: int = 4) -> None:
        self.directory = directory
        self.conf = directory / "slurm.conf"
        self.node_names = [f"demo-cpu-{index}" for index in range(node_count)]
        self._environment = {"SLURM_CONF": str(self.conf), "PATH": DAEMONS_PATH}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._slurmds: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start slurmctld and wait until it answers."""
        (self.directory / "state").mkdir()
        program = self.directory / "nothing"
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o755)
        self._write_conf()
        self._start("slurmctld", "-D", "-c")
        wait_until("slurmctld answers", self._answers, 20)

    def start_slurmd(self, node: str) -> None:
        """Start the slurmd of one node; with -b its boot time is now."""
        self._slurmds[node] = self._start("slurmd", "-D", "-b", "-N", node)

    def restart_slurmd(self, node: str) -> None:
        """What a reboot does to the slurmd of a node."""
        daemon = self._slurmds[node]
        daemon.terminate()
        daemon.wait(STOP_SECONDS)
        self.start_slurmd(node)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands on this cluster, in the local time zone of Tokyo."""
        return subprocess.run(
            arguments,
            env={**self._environment, "TZ": "Asia/Tokyo"},
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def submit(self, *options: str) -> int:
        """Submit a batch job that sleeps; its id."""
        answer = self.command("sbatch", "--parsable", *options, "--wrap", "sleep 600")
        assert answer.returncode == 0, answer.stderr
        return int(answer.stdout)

    def stop(self) -> None:
        """End all jobs and daemons that were started."""
        self._end_jobs()
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in self._pids_of_steps():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _end_jobs(self) -> None:
        with suppress(subprocess.TimeoutExpired, AssertionError):
            self.command("scancel", "--user", getpass.getuser())
            wait_until("job steps end", self._has_no_steps, STOP_SECONDS)

    def _has_no_steps(self) -> bool:
        return not self.command("squeue", "-h", "-t", "running,completing").stdout.strip()

    def _pids_of_steps(self) -> Iterator[int]:
        """What a dead slurmctld could not cancel, known by the slurm.conf in its environment."""
        mark = f"SLURM_CONF={self.conf}".encode()
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if mark in environ.read_bytes().split(b"\0"):
                    yield int(environ.parent.name)

    def _answers(self) -> bool:
        return self.command("scontrol", "ping").returncode == 0

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.directory / "daemons.out").open("ab") as output:
            self._processes.append(
                subprocess.Popen(
                    command,
                    env=self._environment,
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            )
        return self._processes[-1]

    def _write_conf(self) -> None:
        controller_port = free_port_block(1 + len(self.node_names))
        node_ports = range(controller_port + 1, controller_port + 1 + len(self.node_names))
        version = installed_version()
        is_old = version < SlurmVersion(23, 2)
        text = _CONF.format(
            directory=self.directory,
            user=getpass.getuser(),
            controller_port=controller_port,
            old_parameters=",cloud_reg_addrs" if is_old else "",
            old_settings="PrivateData=cloud\nTreeWidth=65533" if is_old else "",
        )
        nodes = [
            f"NodeName={name} NodeHostName=localhost NodeAddr=127.0.0.1 Port={port}"
            " CPUs=1 RealMemory=1 State=CLOUD\n"
            for name, port in zip(self.node_names, node_ports, strict=True)
        ]
        self.conf.write_text(text + "".join(nodes))
        # Older slurmds that look for cgroups do not start where those are version 2 or missing.
        plugin = "disabled" if version >= SlurmVersion(24, 5) else "cgroup/v1"
        (self.directory / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")


def require_slurm() -> None:
    """Skip the test where Slurm's daemons are not installed."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=DAEMONS_PATH)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def installed_version() -> SlurmVersion:
    """The version of the installed slurmctld."""
    answer = subprocess.run(
        ["slurmctld", "-V"],
        env={**os.environ, "PATH": DAEMONS_PATH},
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return SlurmVersion.parse(answer.stdout)
