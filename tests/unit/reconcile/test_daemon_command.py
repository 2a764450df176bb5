"""slurm-hooksd as a command: a user's mistake gets one line that says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from slurm_hooks.reconcile.locks import daemon_runner
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
"""Each test starts the daemon as a process of its own."""

DAEMON = Path(sys.executable).parent / "slurm-hooksd"
EXAMPLE = Path(__file__).resolve().parents[3] / "etc" / "slurm-hooks" / "cluster_config.json"


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"SLURM_CONF": str(directory / "slurm.conf"), "PATH": os.defpath}
    return subprocess.run(
        [str(DAEMON), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def write_settings(directory: Path, **more: str) -> None:
    values = {
        "SpoolDir": str(directory / "spool"),
        "LogFile": str(directory / "log"),
        "ClusterConfig": str(EXAMPLE),
        "ClusterId": "flexvm",
        "ApiEndpoint": "http://127.0.0.1:9",
        "ApiCredentials": "anonymous",
        **more,
    }
    text = "".join(f"{key}={value}\n" for key, value in values.items())
    (directory / "slurm-hooks.conf").write_text(text)


def complaint(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 2, result.stderr
    lines = result.stderr.splitlines()
    assert "Traceback" not in result.stderr
    return lines[-1]


def test_missing_cluster_file_is_named(tmp_path: Path) -> None:
    write_settings(tmp_path, ClusterConfig="/nonexistent/cluster.json")
    assert "/nonexistent/cluster.json" in complaint(run(tmp_path, "--once", "--foreground"))


def test_odd_interval_is_named_with_what_is_expected(tmp_path: Path) -> None:
    write_settings(tmp_path, PassIntervalSeconds="soon")
    assert "PassIntervalSeconds=soon" in complaint(run(tmp_path, "--once", "--foreground"))


def test_unknown_setting_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "slurm-hooks.conf").write_text("# comment\n\nSpool=/x\n")
    assert "slurm-hooks.conf:3" in complaint(run(tmp_path, "--once"))


def test_spool_that_others_may_write_is_refused(tmp_path: Path) -> None:
    write_settings(tmp_path)
    spool = tmp_path / "spool"
    spool.mkdir()
    spool.chmod(0o777)
    assert "chmod 0700" in complaint(run(tmp_path, "--once", "--foreground"))


def test_spool_that_cannot_be_created_comes_with_the_command_that_does(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    spool = tmp_path / "file" / "spool"
    write_settings(tmp_path, SpoolDir=str(spool))
    assert f"install -d -m 0700 -o slurm -g slurm {spool}" in complaint(run(tmp_path, "--dry-run"))


def test_second_daemon_is_refused(tmp_path: Path) -> None:
    write_settings(tmp_path)
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    with daemon_runner(spool):
        assert "another slurm-hooksd" in complaint(run(tmp_path, "--foreground"))
        assert "another slurm-hooksd" in complaint(run(tmp_path, "--once", "--foreground"))


@pytest.mark.parametrize("command", ["slurm-hooksd", "slurm-hooks"])
def test_version_is_told_without_settings(tmp_path: Path, command: str) -> None:
    program = DAEMON.parent / command
    result = subprocess.run(
        [str(program), "--version"],
        env={"SLURM_CONF": str(tmp_path / "missing.conf"), "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout.strip() == f"{command} {metadata.version('slurm-hooks')}"


def test_help_teaches(tmp_path: Path) -> None:
    result = run(tmp_path, "--help")
    assert result.returncode == 0
    for word in ("--once", "--dry-run", "--settings"):
        assert word in result.stdout


def test_stop_does_not_wait_for_a_slurm_that_does_not_answer(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("scontrol", "squeue"):
        (commands / name).write_text("#!/bin/sh\nexec sleep 600\n")
        (commands / name).chmod(0o755)
    write_settings(tmp_path, SlurmBinDir=str(commands))
    environment = {"SLURM_CONF": str(tmp_path / "slurm.conf"), "PATH": os.defpath}
    daemon = subprocess.Popen([str(DAEMON)], env=environment)
    try:
        log = tmp_path / "log"
        wait_until("the daemon", lambda: log.exists() and "started" in log.read_text(), 30)
        wait_until("its question to Slurm", lambda: bool(children_of(daemon.pid)), 30)
        (child,) = children_of(daemon.pid)
        daemon.terminate()
        assert daemon.wait(timeout=10) == 0
        assert "stopped" in log.read_text()
        wait_until("the command to be gone", lambda: not Path(f"/proc/{child}").exists(), 10)
    finally:
        daemon.kill()
        daemon.wait()


def children_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in children.split()]
