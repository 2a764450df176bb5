"""What slurmctld runs with, and how it is made to read its configuration again."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.slurm.client import SlurmRefused, SlurmUnavailable
from slurm_hooks.slurm.process import CommandResult
from slurm_hooks.slurm.scontrol import ScontrolClient
from tests.fakes.commands import CannedRunner

CONFIG = """\
Configuration data as of 2026-12-01T13:55:28
AccountingStorageBackupHost = (null)
PriorityType            = priority/basic
SchedulerParameters     = default_queue_depth=100,max_rpc_cnt=0
SLURM_VERSION           = 22.05.8
SlurmUser               = slurm(64030)

Cgroup Support Configuration:
AllowedDevicesFile      = (null)

Slurmctld(primary) at vm is UP
"""
NEEDS_RESTART = (
    "slurm_reconfigure error: SelectType change requires restart of the slurmctld daemon to take"
    " effect\n"
)
DIED = "slurm_reconfigure error: Zero Bytes were transmitted or received\n"


def client(command: str, stdout: str = "", stderr: str = "", status: int = 0) -> ScontrolClient:
    runner = CannedRunner({command: CommandResult(status, stdout, stderr)})
    return ScontrolClient(Path("/etc/demo/slurm.conf"), runner=runner)


def test_parameters_are_those_that_slurmctld_shows() -> None:
    found = client("scontrol show config", CONFIG).parameters()
    assert found["PriorityType"] == "priority/basic"
    assert found["SchedulerParameters"] == "default_queue_depth=100,max_rpc_cnt=0"
    assert found["AccountingStorageBackupHost"] == "(null)"


def test_slurmctld_that_does_not_answer_shows_none() -> None:
    error = "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)\n"
    with pytest.raises(SlurmUnavailable):
        client("scontrol show config", stderr=error, status=1).parameters()


def test_reconfigure_that_slurmctld_refuses_is_told_from_one_that_ends_it() -> None:
    client("scontrol reconfigure").reconfigure()
    with pytest.raises(SlurmRefused, match="SelectType change requires restart"):
        client("scontrol reconfigure", stderr=NEEDS_RESTART, status=1).reconfigure()
    with pytest.raises(SlurmUnavailable):
        client("scontrol reconfigure", stderr=DIED, status=1).reconfigure()
