"""RebootProgram on pretended nodes: an orderly reboot first, then by force."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from slurm_hooks.health.drains import OwnDrain, read_drain
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Verdict
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
"""Each test starts the program as slurmd does, and waits for its patience to end."""

FORCED_SECONDS = 20


class Node:
    """A root with programs that do as a test says, and the kernel's trigger as a plain file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("usr/bin", "proc", "sys/fs/cgroup", "var/log/slurm-hooks"):
            (directory / name).mkdir(parents=True)
        self.trigger.touch()
        self.program("sync", "")
        self.program("systemctl", "")

    @property
    def trigger(self) -> Path:
        return self.directory / "proc/sysrq-trigger"

    def program(self, name: str, body: str) -> None:
        path = self.directory / "usr/bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.directory}/calls\n{body}\n')
        path.chmod(0o755)

    def calls(self) -> list[str]:
        path = self.directory / "calls"
        return [line.strip() for line in path.read_text().splitlines()] if path.exists() else []

    def log(self) -> str:
        path = self.directory / "var/log/slurm-hooks/health.log"
        return path.read_text() if path.exists() else ""

    def command(self, *arguments: str) -> list[str]:
        program = [sys.executable, "-m", "slurm_hooks.programs.reboot"]
        return [*program, "--root", str(self.directory), "--node", "g-0", *arguments]

    def reboot(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={},
        )

    def wait_until_forced(self) -> None:
        wait_until("it to be forced", lambda: self.trigger.read_text() == "sub", FORCED_SECONDS)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_node_is_synced_then_rebooted_in_order(node: Node) -> None:
    assert node.reboot("--patience", "0.1").returncode == 0
    assert node.calls() == ["sync", "systemctl reboot"]
    assert "reboot asked for node=g-0" in node.log()
    node.wait_until_forced()


def test_node_remembers_that_it_was_rebooted(node: Node) -> None:
    boot_id = node.directory / "proc/sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text("0123abcd-0000-0000-0000-000000000000\n")
    node.reboot("--patience", "0.1")
    node.wait_until_forced()
    assert read_drain(Host(str(node.directory))) == OwnDrain(Verdict.REBOOT, "0123abcd")


def test_node_that_is_not_down_in_time_is_forced_and_says_so(node: Node) -> None:
    node.reboot("--patience", "0.1")
    node.wait_until_forced()
    assert "still up, reboot is forced node=g-0" in node.log()


def test_node_is_forced_although_sync_hangs(node: Node) -> None:
    node.program("sync", "exec sleep 60")
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            node.command("--patience", "0.1"),
            stdout=subprocess.DEVNULL,
            timeout=3,
            check=False,
        )
    node.wait_until_forced()


def test_node_without_systemd_is_forced_and_the_failure_is_told(node: Node) -> None:
    (node.directory / "usr/bin/systemctl").unlink()
    node.reboot("--patience", "0.1")
    node.wait_until_forced()
    assert "not run command=systemctl" in node.log()


def test_failure_of_systemctl_is_told(node: Node) -> None:
    node.program("systemctl", "echo no bus >&2; exit 1")
    node.reboot("--patience", "0.1")
    assert 'failed command=systemctl why="no bus"' in node.log()
    node.wait_until_forced()


def test_process_that_watches_leaves_the_group_that_ends_with_slurmd(node: Node) -> None:
    group = node.directory / "sys/fs/cgroup/cgroup.procs"
    group.touch()
    node.reboot("--patience", "0.1")
    node.wait_until_forced()
    watcher = int(group.read_text())
    assert f"slurm-hooks-reboot[{watcher}] still up" in node.log()


def test_caller_is_not_kept_waiting_by_the_process_that_watches(node: Node) -> None:
    done = node.reboot("--patience", "5")
    assert done.stdout == ""
    assert node.trigger.read_text() == "", "it returned only after the watching was over"
    node.wait_until_forced()


@pytest.mark.parametrize("text", ["soon", "-1", "601", "nan", ""])
def test_patience_that_is_none_is_refused_and_nothing_is_rebooted(node: Node, text: str) -> None:
    refused = node.reboot("--patience", text)
    assert refused.returncode == 1
    assert "write seconds up to 600" in refused.stderr
    assert node.calls() == []
    assert node.trigger.read_text() == ""
