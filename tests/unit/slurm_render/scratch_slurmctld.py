"""A slurmctld of its own in a scratch directory, without munge, for one test.

Only as much of a cluster as it takes to have slurmctld read the rendered files.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slurm_hooks.sandbox.box.ports import free_port_block
from slurm_hooks.slurm.render import include_lines

DEADLINE_SECONDS = 30
SLURMCTLD = shutil.which("slurmctld", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@dataclass(frozen=True, slots=True)
class ScratchSlurmctld:
    """A running slurmctld: its slurm.conf and its log."""

    slurm_conf: Path
    log_file: Path

    def scontrol(self, *arguments: str) -> str:
        """What `scontrol` answers. Raises CalledProcessError."""
        return subprocess.run(
            ["scontrol", *arguments],
            env={"SLURM_CONF": str(self.slurm_conf), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
            timeout=DEADLINE_SECONDS,
        ).stdout

    def log(self) -> str:
        """Everything that slurmctld logged so far."""
        return self.log_file.read_text(errors="replace")


@contextlib.contextmanager
def scratch_slurmctld(directory: Path, texts: dict[str, str]) -> Iterator[ScratchSlurmctld]:
    """Start slurmctld on rendered files, wait until it answers, and stop it at the end."""
    for name, text in texts.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)
    slurm_conf, log_file = directory / "slurm.conf", directory / "slurmctld.log"
    (directory / "state").mkdir()
    slurm_conf.write_text(_slurm_conf(directory, log_file))
    assert SLURMCTLD is not None
    process = subprocess.Popen(
        [SLURMCTLD, "-D", "-c", "-f", str(slurm_conf)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        controller = ScratchSlurmctld(slurm_conf, log_file)
        _wait_until_it_answers(controller, process)
        yield controller
    finally:
        process.terminate()
        try:
            process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _slurm_conf(directory: Path, log_file: Path) -> str:
    return "\n".join(
        (
            "ClusterName=scratch",
            "SlurmctldHost=localhost(127.0.0.1)",
            f"SlurmctldPort={free_port_block(1)}",
            f"SlurmUser={getpass.getuser()}",
            "AuthType=auth/none",
            "CredType=cred/none",
            f"StateSaveLocation={directory}/state",
            f"SlurmctldPidFile={directory}/slurmctld.pid",
            f"SlurmctldLogFile={log_file}",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "DebugFlags=Power",
            *include_lines(),
            "",
        )
    )


def _wait_until_it_answers(controller: ScratchSlurmctld, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        assert process.poll() is None, f"slurmctld ended:\n{controller.log()}"
        try:
            controller.scontrol("ping")
            return
        except subprocess.CalledProcessError:
            assert time.monotonic() < deadline, f"slurmctld is silent:\n{controller.log()}"
