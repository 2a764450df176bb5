"""slurm-hooks-health: what a person on the node sees, and that looking changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks.health import cli
from slurm_hooks.health.cleared import read_cleared
from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.registry import all_checks
from tests.unit.health.node_roots import BOOT_ID, NodeRoot
from tests.unit.health.tools import add_tool

_NAMES = [check.name for check in all_checks()]


@pytest.fixture
def known_node(node: NodeRoot) -> NodeRoot:
    """A healthy node that knows who it is."""
    identity = f"{BOOT_ID[:8]}\n4711\na3-highgpu-8g\n"
    node.write("var/lib/slurm-hooks/health/identity", identity)
    node.write("etc/slurm-hooks/health.yaml", "disks: []\n")
    return node


def _call(node: NodeRoot, *arguments: str) -> int:
    command, *rest = arguments
    options = ["--root", str(node.directory), "--metadata-url", "http://127.0.0.1:9/v1"]
    return cli.main([command, *options, *rest])


def _json(node: NodeRoot, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    _call(node, *arguments, "--json")
    return json.loads(capsys.readouterr().out)


def test_a_healthy_node_is_well(known_node: NodeRoot, capsys: pytest.CaptureFixture[str]) -> None:
    assert _call(known_node, "run") == 0
    assert capsys.readouterr().out.startswith("OK in ")


@pytest.mark.parametrize("context", list(Context))
def test_a_sick_node_is_not(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str], context: Context
) -> None:
    known_node.change_gpu(3, recovery_action=2)

    assert _call(known_node, "run", "--context", context) == 1
    assert "REBOOT   recovery_action gpu 3: driver asks" in capsys.readouterr().out


def test_the_answer_in_json_has_every_finding(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    known_node.change_gpu(3, recovery_action=2)

    answer = _json(known_node, capsys, "run")

    assert answer["verdict"] == Verdict.REBOOT
    assert answer["hung_check"] is None
    assert answer["findings"] == [
        {
            "check": "recovery_action", "verdict": "REBOOT", "gpu": 3, "xid": None,
            "detail": "driver asks for action 2 (node reboot)", "acting": True,
        }
    ]  # fmt: skip


def test_what_is_only_observed_says_so(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    known_node.write("etc/slurm-hooks/health.yaml", "observe: true\ndisks: []\n")
    known_node.change_gpu(3, recovery_action=2)

    assert _call(known_node, "run") == 0
    assert "(observed only)" in capsys.readouterr().out


def test_single_checks_are_run_alone(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    known_node.change_gpu(3, recovery_action=2)

    assert _call(known_node, "run", "load", "disks") == 0
    assert _call(known_node, "run", "recovery_action") == 1
    capsys.readouterr()


@pytest.mark.parametrize("command", ["run", "explain"])
def test_an_unknown_check_gets_a_guess(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert _call(known_node, command, "inventroy") == 2
    assert "Did you mean inventory?" in capsys.readouterr().err


def _files(node: NodeRoot) -> dict[str, float]:
    return {str(path): path.stat().st_mtime_ns for path in node.directory.rglob("*")}


@pytest.mark.parametrize("context", list(Context))
def test_looking_changes_nothing(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str], context: Context
) -> None:
    known_node.change_gpu(2, is_persistence_on=False)
    known_node.change_gpu(3, recovery_action=2)
    add_tool(known_node, "usr/bin/dcgmi")
    add_tool(known_node, "usr/bin/scontrol")
    before = _files(known_node)

    assert _call(known_node, "run", "--context", context) == 1

    known_node.path("tool-calls").unlink(missing_ok=True)
    assert _files(known_node) == before
    capsys.readouterr()


@pytest.fixture
def open_node(driver_library: Path) -> Iterator[NodeRoot]:
    """A healthy node that every user may look at, but for its kernel log."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        node = NodeRoot(directory / "node", driver_library).with_gpus(8)
        node.path("dev/kmsg").chmod(0o600)
        yield node


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user to run as")
def test_somebody_who_is_not_root_may_look(open_node: NodeRoot) -> None:
    options = ["--root", str(open_node.directory), "--metadata-url", "http://127.0.0.1:9/v1"]

    ended = subprocess.run(
        [sys.executable, "-I", "-m", "slurm_hooks.health.cli", "run", *options, "--json"],
        user=65_534, env={}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["verdict"] == "UNKNOWN"


@pytest.mark.parametrize("name", _NAMES)
def test_every_check_explains_itself_and_its_verdicts(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    check = next(check for check in all_checks() if check.name == name)

    assert _call(known_node, "explain", name) == 0

    told = capsys.readouterr().out
    assert told.startswith(f"{name}: {check.summary}\n")
    assert check.explanation in told
    assert any(verdict in check.explanation for verdict in Verdict)
    assert check.contexts
    assert check.summary == check.summary.strip(". \n")


def test_no_two_checks_have_one_name() -> None:
    assert len(set(_NAMES)) == len(_NAMES)


def test_an_explanation_comes_in_json_too(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _json(known_node, capsys, "explain", "disks")

    assert answer["name"] == "disks"
    assert answer["contexts"] == ["prolog", "background"]
    assert "MANUAL" in answer["explanation"]


def test_the_list_has_every_check_with_its_switch(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    known_node.write("etc/slurm-hooks/health.yaml", "checks: {load: off, dcgm: observe}\n")

    rows = _json(known_node, capsys, "list")

    assert [row["name"] for row in rows] == _NAMES
    switches = {row["name"]: row["switch"] for row in rows}
    assert (switches["load"], switches["dcgm"], switches["driver"]) == ("off", "observe", "on")
    assert _call(known_node, "list") == 0
    assert len(capsys.readouterr().out.splitlines()) == len(_NAMES)


def test_a_repair_by_hand_is_noted_with_time_and_name(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    xid = "4,1,1000000,-;NVRM: Xid (PCI:0000:07:00): 79, GPU has fallen off the bus."
    known_node.kernel_log(xid)
    assert _call(known_node, "run", "xid") == 1

    assert _call(known_node, "clear", "--by", "Ada Lovelace") == 0

    mark = read_cleared(known_node.host())
    assert mark is not None
    assert mark.by == "Ada Lovelace"
    assert _call(known_node, "run", "xid") == 0
    known_node.kernel_log(xid.replace("4,1,1000000", "4,2,2000000"))
    assert _call(known_node, "run", "xid") == 1
    capsys.readouterr()


def test_a_mark_that_cannot_be_written_is_told(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    known_node.path("var/lib/slurm-hooks/health/identity").unlink()
    known_node.path("var/lib/slurm-hooks/health").rmdir()
    known_node.write("var/lib/slurm-hooks/health", "a file in the way")

    assert _call(known_node, "clear") == 2
    assert "are you root?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["list"], ["explain", "disks"]],
)
def test_a_broken_policy_is_told_line_by_line(
    known_node: NodeRoot, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    known_node.write("etc/slurm-hooks/health.yaml", "observe: perhaps\nxids: {0: OK}\n")

    status = _call(known_node, *arguments, "--json")

    told = capsys.readouterr()
    assert (status, told.out) == (2, "")
    assert "observe: 'perhaps'" in told.err
    assert "xids.0" in told.err


@pytest.mark.parametrize(
    "arguments", [[], ["cure"], ["run", "--context", "noon"], ["explain"], ["run", "--roof", "/"]]
)
def test_a_wrong_call_is_a_mistake_with_its_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)

    assert ended.value.code == 2
    assert "usage: slurm-hooks-health" in capsys.readouterr().err


def test_a_reader_that_goes_away_brings_no_traceback(known_node: NodeRoot) -> None:
    command = [sys.executable, "-I", "-m", "slurm_hooks.health.cli", "list"]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [*command, "--root", str(known_node.directory)],
            stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(writer)

    assert "Traceback" not in ended.stderr
