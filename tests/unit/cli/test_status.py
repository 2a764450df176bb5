"""`slurm-hooks status` as its users meet it: table, JSON, filters, and halves that are missing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from slurm_hooks.cli.main import app
from slurm_hooks.cli.status_table import status_view
from slurm_hooks.history.report import FaultBehavior, ReportState
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from slurm_hooks.status.as_json import status_as_json
from slurm_hooks.status.model import ClusterState, ClusterStatus, NodeState
from tests.unit.cli.test_repairs import SCONTROL
from tests.unit.cli.test_sync import COMMAND, configure
from tests.unit.reconcile.builders import N0, N1, NOW, World, job, off, request, starting, vm
from tests.unit.status.standing import DYNAMIC, all_up, login_vm, status, up

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "status.md"
NODES = """\
NodeName=flexvm-a3u-0 State=IDLE+CLOUD Partitions=a3u
NodeName=flexvm-a3u-1 State=IDLE+CLOUD+POWERED_DOWN Partitions=a3u
"""


def shown(of: ClusterStatus, *, fold: bool = True) -> str:
    """What a terminal of 200 columns shows of a status."""
    console = Console(width=200, file=None)
    with console.capture() as capture:
        console.print(status_view(of, of.nodes, fold=fold))
    return capture.get()


def busy() -> ClusterStatus:
    """Three alike nodes under one job, one that waits, and a login node."""
    nodes = [up(f"flexvm-a3u-{i}", base=BaseState.ALLOCATED) for i in range(3)]
    names = [node.name for node in nodes]
    waits = "flexvm-a3u-3"
    world = World(
        [*nodes, starting(waits)],
        [job(7, *names, state=JobState.RUNNING), job(8, waits)],
        [request("r", waits, job_id=8, last_attempt="STOCKOUT")],
        [*map(vm, names), login_vm()],
        cluster=DYNAMIC,
    )
    return status(world)


def test_alike_nodes_share_a_line_unless_all_are_asked_for() -> None:
    folded, whole = shown(busy()), shown(busy(), fold=False)
    assert re.search(r"a3u +flexvm-a3u-\[0-2\] \(3\) +RUNNING +ALLOCATED +RUNNING +- +7", folded)
    assert "flexvm-a3u-1 " not in folded
    assert re.search(r"flexvm-a3u-1 +RUNNING +ALLOCATED +RUNNING", whole)


def test_table_says_what_holds_the_cluster_up_and_why_a_node_is_not_there() -> None:
    text = shown(busy())
    assert text.startswith("cluster flexvm is RUNNING  (at 2026-05-01T12:00:00Z)\nheld up by\n")
    why = "waits for capacity since 2026-05-01T11:55:00Z (STOCKOUT: text)"
    assert text.count(why) == 2
    assert re.search(r"login \(login\) +flexvm-login-0 +RUNNING", text)


def test_what_a_terminal_would_act_on_is_shown_as_text() -> None:
    nodes = [up(N0), up(N1, NodeFlag.DRAIN, reason="[red]\x1b[31m gone")]
    text = shown(status(replace(all_up(), nodes=nodes)))
    assert "\x1b" not in text
    assert r"[red]\x1b[31m gone" in text


def test_json_has_all_that_is_known_of_a_node() -> None:
    end = NOW + timedelta(days=1)
    waits = request("r", N1, job_id=8, last_attempt="STOCKOUT")
    world = World(
        [up(N0), starting(N1)],
        [job(8, N1)],
        [waits],
        [replace(vm(N0), termination_time_utc=end)],
        cluster=DYNAMIC,
    )
    answer = json.loads(status_as_json(status(world)))
    first, second = answer["nodes"][:2]
    assert (answer["cluster_id"], answer["time"]) == ("flexvm", "2026-05-01T12:00:00Z")
    assert first["vm"] == {
        "instance_id": "70",
        "status": "RUNNING",
        "zone": "us-central1-a",
        "creation_time": "2026-05-01T11:50:00Z",
    }
    assert (first["end_of_life"], first["request"]) == ("2026-05-02T12:00:00Z", None)
    assert second["request"] == {
        "name": "r",
        "state": "ACCEPTED",
        "creation_time": "2026-05-01T11:55:00Z",
        "code": "STOCKOUT",
    }
    assert (second["node"], second["state"], second["jobs"]) == (N1, "PREPARING", [8])


def keys_of(value: object) -> Iterator[str]:
    """All keys in a JSON value."""
    if isinstance(value, dict):
        yield from value
    for part in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from keys_of(part)


def test_document_names_every_state_and_every_field() -> None:
    text = DOCUMENT.read_text()
    fields = set(keys_of(json.loads(status_as_json(busy()))))
    for word in (*ClusterState, *NodeState, *ReportState, *FaultBehavior, *fields, "system", "why"):
        assert f"`{word}`" in text, word


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A controller whose Slurm has two nodes and whose Compute Engine does not answer."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    commands = tmp_path / "bin"
    commands.mkdir()
    (tmp_path / "nodes").write_text(NODES)
    (commands / "scontrol").write_text(SCONTROL.format(nodes=tmp_path / "nodes"))
    (commands / "squeue").write_text("#!/bin/sh\necho no json here >&2\nexit 1\n")
    for command in commands.iterdir():
        command.chmod(0o755)
    configure(tmp_path, SlurmBinDir=str(commands))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["status", *arguments])


@pytest.mark.slow
def test_missing_half_is_named_and_the_other_one_is_shown(place: Path) -> None:
    result = run("--json")
    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    (missing,) = answer["unavailable"]
    assert missing["system"] == "Compute Engine"
    states = {node["node"]: node["slurm_state"] for node in answer["nodes"]}
    assert states[N0] == "IDLE+CLOUD"
    assert states[N1] == "IDLE+CLOUD+POWERED_DOWN"


@pytest.mark.slow
def test_both_halves_may_be_missing(place: Path) -> None:
    (place / "bin" / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    result = run()
    assert result.exit_code == 1
    assert "cluster flexvm is ERROR: slurmctld does not answer" in result.stdout
    assert "Slurm could not be read" in result.stdout
    assert "Compute Engine could not be read" in result.stdout


@pytest.mark.slow
def test_nodes_are_chosen_by_pool_and_by_name(place: Path) -> None:
    def names(*options: str) -> list[str]:
        return [node["node"] for node in json.loads(run("--json", *options).stdout)["nodes"]]

    assert names("--node", "flexvm-a3u-[1-5]") == [N1]
    assert names("--pool", "login") == ["flexvm-login-0"]
    assert names("--pool", "login", "--node", N0) == []


def test_mistakes_are_told_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    assert run().exit_code == 2
    configure(tmp_path, ClusterConfig="/nonexistent/cluster.json")
    result = run()
    assert (result.exit_code, "/nonexistent/cluster.json" in result.stderr) == (2, True)
    assert run("--node", "a[").exit_code == 2


@pytest.mark.slow
def test_watching_goes_on_until_it_is_interrupted_and_ends_quietly(place: Path) -> None:
    environment = {"SLURM_CONF": str(place / "slurm.conf"), "PATH": os.defpath}
    with subprocess.Popen(
        [str(COMMAND), "status", "--watch", "--interval", "1", "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
    assert first["time"] < second["time"]


def test_off_nodes_are_shown_as_such() -> None:
    text = shown(status(World([off(N0)], cluster=DYNAMIC)))
    assert re.search(r"flexvm-a3u-0 +OFF +IDLE\+POWERED_DOWN +- ", text)
