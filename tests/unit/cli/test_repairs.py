"""`slurm-hooks repairs` as its users meet it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from slurm_hooks.cli.main import app
from slurm_hooks.health.model import Verdict
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.history.events import EventHistory
from slurm_hooks.reconcile.bell import Bell
from tests.unit.cli.test_sync import configure
from tests.unit.reconcile.condemned import reason

NOW = datetime.now(UTC)
STOP = Event(NOW, EventKind.REPAIRS_STOPPED, "a3u", "stop", message="3 of 4 nodes")
REBOOT = Event(NOW, EventKind.VM_REBOOT, "a3u", "reboot", "flexvm-a3u-1")
SCONTROL = """\
#!/bin/sh
case "$*" in
  --version) echo slurm 22.05.8 ;;
  *"show nodes") cat {nodes} ;;
  *"show jobs") echo No jobs in the system ;;
  *"show partitions") echo No partitions in the system ;;
  *) echo No reservations in the system ;;
esac
"""
NODES = f"""\
NodeName=flexvm-a3u-0 State=IDLE+CLOUD+DRAIN Partitions=a3u Reason={reason(Verdict.MANUAL)} \
[root@2026-05-01T12:00:00]
NodeName=flexvm-a3u-1 State=IDLE+CLOUD Partitions=a3u
"""


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    commands = tmp_path / "bin"
    commands.mkdir()
    (tmp_path / "nodes").write_text(NODES)
    (commands / "scontrol").write_text(SCONTROL.format(nodes=tmp_path / "nodes"))
    (commands / "squeue").write_text("#!/bin/sh\necho no json here >&2\nexit 1\n")
    for command in commands.iterdir():
        command.chmod(0o755)
    return configure(tmp_path, SlurmBinDir=str(commands))


@pytest.fixture
def history(spool: Path) -> EventHistory:
    return EventHistory(spool / "history.sqlite3")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["repairs", *arguments])


def test_pools_and_nodes_are_listed(history: EventHistory) -> None:
    history.record([REBOOT], NOW)
    pool, condemned, repaired = run().stdout.splitlines()
    assert pool == "pool a3u: nodes are repaired"
    assert condemned.startswith("flexvm-a3u-0: MANUAL gpu_lost gpu 3 fell off the bus: stays drain")
    assert repaired == "flexvm-a3u-1: serves; repaired once in 7 days"
    history.record([replace(REBOOT, key="another")], NOW)
    assert run().stdout.splitlines()[-1] == "flexvm-a3u-1: serves; repaired 2 times in 7 days"


def test_node_that_slurm_drained_is_listed_with_slurms_reason(
    history: EventHistory, tmp_path: Path
) -> None:
    drained = "State=IDLE+CLOUD+DRAIN Partitions=a3u Reason=Low RealMemory"
    (tmp_path / "nodes").write_text(NODES.replace("State=IDLE+CLOUD Partitions=a3u", drained))
    told = run().stdout.splitlines()[-1]
    assert told.startswith("flexvm-a3u-1: Low RealMemory: stays drained until a health run says")


def test_listing_is_json_for_programs(history: EventHistory) -> None:
    history.record([STOP], NOW)
    answer = json.loads(run("--json").stdout)
    (pool,) = answer["pools"]
    assert (pool["id"], pool["repairs_stopped"], pool["why"]) == ("a3u", True, "3 of 4 nodes")
    (node,) = answer["nodes"]
    assert (node["node"], node["verdict"]) == ("flexvm-a3u-0", "MANUAL")
    assert node["since_utc"] == "2026-05-01T12:00:00+00:00"


def test_slurm_that_does_not_answer_is_told(spool: Path) -> None:
    (spool.parent / "bin" / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    result = run()
    assert result.exit_code == 2
    assert "scontrol" in result.stderr


def test_stopped_pool_goes_on_and_the_daemon_is_woken(history: EventHistory, spool: Path) -> None:
    history.record([STOP], NOW)
    bell = Bell(spool)
    try:
        result = run("resume", "a3u")
        assert bell.rung.wait(10)
    finally:
        bell.close()
    assert result.exit_code == 0
    last = history.recent(NOW)[-1]
    assert (last.kind, last.pool) == (EventKind.REPAIRS_RESUMED, "a3u")
    assert "pool a3u: nodes are repaired" in run().stdout


def test_pool_that_is_not_stopped_is_left_as_it_is(history: EventHistory) -> None:
    result = run("resume", "a3u")
    assert (result.exit_code, history.path.exists()) == (0, False)
    assert "not stopped" in result.stdout


def test_pool_that_does_not_exist_is_a_mistake(history: EventHistory) -> None:
    result = run("resume", "a3x")
    assert result.exit_code == 2
    assert "a3u" in result.stderr


def test_stop_of_long_ago_can_be_resumed(history: EventHistory) -> None:
    history.record([STOP], NOW)
    later = NOW + timedelta(days=200)
    history.record([Event(later, EventKind.VM_REBOOT, "a3u", "later")], later)
    assert "repaired again" in run("resume", "a3u").stdout
