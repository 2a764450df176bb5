"""`slurm-hooks sync` as its users meet it: mistakes, standby, and a daemon that runs already."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_hooks.reconcile.bell import Bell, ring
from slurm_hooks.reconcile.locks import daemon_runner
from tests.fakes.canned_server import answer_error, canned_server
from tests.unit.cluster.files import EXAMPLE

COMMAND = Path(sys.executable).parent / "slurm-hooks"


def sync(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"SLURM_CONF": str(directory / "slurm.conf"), "PATH": os.defpath}
    result = subprocess.run(
        [str(COMMAND), "sync", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in result.stderr
    return result


def configure(directory: Path, slurm_conf: str = "SlurmctldHost=head1\n", **more: str) -> Path:
    """Settings whose Slurm and Compute Engine do not answer; the spool's directory."""
    spool = directory / "spool"
    spool.mkdir(mode=0o700)
    (directory / "slurm.conf").write_text(slurm_conf)
    values = {
        "SpoolDir": str(spool),
        "LogFile": str(directory / "log"),
        "ClusterConfig": str(EXAMPLE),
        "ClusterId": "flexvm",
        "ApiEndpoint": "http://127.0.0.1:9",
        "ApiCredentials": "anonymous",
        "SlurmBinDir": str(directory / "nowhere"),
        **more,
    }
    text = "".join(f"{key}={value}\n" for key, value in values.items())
    (directory / "slurm-hooks.conf").write_text(text)
    return spool


def test_settings_that_are_missing_are_named(tmp_path: Path) -> None:
    result = sync(tmp_path, "--dry-run")
    assert result.returncode == 2
    assert "slurm-hooks.conf" in result.stderr


def test_where_nobody_can_be_asked_it_says_what_to_add(tmp_path: Path) -> None:
    configure(tmp_path)
    for arguments in ((), ("--json",), ("--force-kills",)):
        result = sync(tmp_path, *arguments)
        assert result.returncode == 2
        assert "--yes" in result.stderr


def test_cluster_file_that_is_missing_is_named(tmp_path: Path) -> None:
    configure(tmp_path, ClusterConfig="/nonexistent/cluster.json")
    result = sync(tmp_path, "--yes")
    assert result.returncode == 2
    assert "/nonexistent/cluster.json" in result.stderr


@pytest.mark.slow
def test_system_that_is_not_readable_is_a_notice_and_exit_status_1(tmp_path: Path) -> None:
    with canned_server() as server:
        server.will_answer(answer_error(403, "forbidden"))
        configure(tmp_path, ApiEndpoint=server.url)
        result = sync(tmp_path, "--dry-run", "--json")
        assert sync(tmp_path, "--yes").returncode == 1
    assert result.returncode == 1
    answer = json.loads(result.stdout)
    assert answer["actions"] == []
    assert {notice["subject"] for notice in answer["notices"]} == {"Slurm", "Compute Engine"}


def test_host_that_is_not_in_charge_does_nothing(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    ping = commands / "scontrol"
    ping.write_text("#!/bin/sh\necho 'Slurmctld(primary) at elsewhere is UP'\n")
    ping.chmod(0o755)
    two = "SlurmctldHost=elsewhere\nSlurmctldHost=head2\n"
    configure(tmp_path, two, SlurmBinDir=str(commands))
    result = sync(tmp_path, "--yes")
    assert result.returncode == 2
    assert "not in charge" in result.stderr


def test_daemon_that_runs_is_woken_instead(tmp_path: Path) -> None:
    spool = configure(tmp_path)
    with daemon_runner(spool):
        bell = Bell(spool)
        try:
            result = sync(tmp_path, "--yes")
            assert result.returncode == 0
            assert "woken" in result.stdout
            assert bell.rung.is_set()
            assert bell.take_confirmed_kills() == 0
            answer = json.loads(sync(tmp_path, "--yes", "--json").stdout)
            assert answer == {
                "passes_run_by": "another process",
                "woken": True,
                "confirmed_kills": 0,
            }
        finally:
            bell.close()


def test_pass_of_somebody_who_does_not_answer_is_told(tmp_path: Path) -> None:
    spool = configure(tmp_path)
    with daemon_runner(spool):
        result = sync(tmp_path, "--yes")
    assert result.returncode == 1
    assert "on its way" in result.stdout


def test_confirmed_kills_reach_the_daemon_once(tmp_path: Path) -> None:
    bell = Bell(tmp_path)
    try:
        assert ring(tmp_path, confirmed_kills=12)
        assert bell.rung.is_set()
        assert bell.take_confirmed_kills() == 12
        assert bell.take_confirmed_kills() == 0
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as odd:
            odd.settimeout(10)
            odd.connect(str(tmp_path / "slurm-hooksd.sock"))
            odd.sendall(b"wake -7\n")
            assert odd.recv(16) == b"ok\n"
        assert bell.take_confirmed_kills() == 0
    finally:
        bell.close()
    assert not ring(tmp_path)
