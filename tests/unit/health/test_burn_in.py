"""A node that was rebooted for its health stands some work under load before it asks to be let
back."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from slurm_hooks.health.burn_in import BurnIn, Progress, read_burn_in
from slurm_hooks.health.drains import OwnDrain, read_drain, remember_drain
from slurm_hooks.health.host import Host
from slurm_hooks.health.in_background import in_background
from slurm_hooks.health.model import Verdict
from tests.unit.health.node_roots import BOOT_ID, NodeRoot
from tests.unit.health.scontrol import NodesScontrol
from tests.unit.health.tools import add_tool, tool_calls
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
"""Each test waits for a burn-in to end in a process of its own."""

_BOOT = BOOT_ID[:8]
_CONDEMNED = "slurm-hooks: REBOOT gpu_lost gpu 3 inst=4711 boot=0000beef : reboot issued"
_PASSED = f"slurm-hooks: OK health_run passed inst=4711 boot={_BOOT} ctx=background"
_SECONDS = 30
_LET_GO = 'until [ -e "$ROOT/go" ]; do sleep 0.05; done'


class Rebooted:
    """A healthy node that comes back of a reboot for its health, still drained."""

    def __init__(self, node: NodeRoot, scontrol: NodesScontrol) -> None:
        self.node = node
        self.scontrol = scontrol
        self.host: Host = node.host()._replace(
            name="g-0", slurm_bin_directory=str(scontrol.directory)
        )

    @property
    def reasons(self) -> list[str]:
        """The reasons that slurmctld was told."""
        return [call[-1].removeprefix("reason=") for call in self.scontrol.changes]

    @property
    def log(self) -> str:
        return Path(self.host.log_file).read_text()

    @property
    def progress(self) -> BurnIn:
        return read_burn_in(self.host, _BOOT)

    def policy(self, text: str) -> None:
        self.node.write("etc/slurm-hooks/health.yaml", f"disks: []\n{text}\n")

    def burn_in(self, script: str, more: str = "") -> None:
        """The site's own burn-in."""
        add_tool(self.node, "opt/burn", script)
        self.policy(f"burn_in: [{self.node.path('opt/burn')}]\n{more}")

    def dcgm(self, status: str, exit_status: int = 0) -> None:
        """DCGM is there, and its diagnostic says this of the first GPU."""
        result = {"gpu_id": "0", "status": status}
        tests = [{"name": "Targeted Stress", "results": [result]}]
        answer = {"DCGM Diagnostic": {"test_categories": [{"tests": tests}]}}
        said = json.dumps(answer) if status else "cannot reach nv-hostengine"
        script = f"[ \"$3\" = 2 ] || exit 0\necho '{said}'\nexit {exit_status}"
        add_tool(self.node, "usr/bin/dcgmi", script)
        self.policy("checks: {dcgm: off}")

    def check(self) -> int:
        return in_background(self.host)

    def wait_for_reason(self) -> str:
        """Wait until slurmctld is told something, and return it."""
        wait_until("slurmctld to be told", lambda: bool(self.reasons), _SECONDS)
        return self.reasons[-1]


@pytest.fixture
def rebooted(node: NodeRoot, tmp_path: Path) -> Rebooted:
    (tmp_path / "slurm").mkdir()
    node.path("var/log/slurm-hooks").mkdir(parents=True)
    node.write("proc/sys/kernel/random/boot_id", f"{BOOT_ID}\n")
    node.write("var/lib/slurm-hooks/health/identity", f"{_BOOT}\n4711\na3-highgpu-8g\n")
    made = Rebooted(node, NodesScontrol(tmp_path / "slurm"))
    made.scontrol.knows("IDLE+CLOUD+DRAIN", _CONDEMNED)
    remember_drain(made.host, OwnDrain(Verdict.REBOOT, "0000beef"))
    return made


def test_node_asks_to_be_let_back_when_its_burn_in_has_passed_and_not_before(
    rebooted: Rebooted,
) -> None:
    rebooted.burn_in(_LET_GO)
    assert rebooted.check() == 0
    wait_until("it to run", lambda: rebooted.progress.progress is Progress.RUNNING, _SECONDS)
    assert rebooted.check() == 0
    assert rebooted.reasons == []
    rebooted.node.write("go", "")
    assert rebooted.wait_for_reason() == _PASSED
    assert tool_calls(rebooted.node) == ["burn "]
    wait_until("the drain to be forgotten", lambda: not read_drain(rebooted.host), _SECONDS)


def test_node_that_fails_under_load_is_to_be_replaced(rebooted: Rebooted) -> None:
    rebooted.burn_in("echo first\necho ECC error on gpu 5\nexit 3")
    rebooted.check()
    told = "slurm-hooks: REPLACE burn_in burn exit 3 ECC error on gpu 5 inst=4711"
    assert rebooted.wait_for_reason() == f"{told} boot={_BOOT} ctx=background"
    wait_until("the end", lambda: read_drain(rebooted.host) == OwnDrain(Verdict.REPLACE, _BOOT), 30)
    rebooted.scontrol.knows("IDLE+CLOUD+DRAIN", rebooted.reasons[-1])
    rebooted.check()
    assert len(rebooted.reasons) == 1


def test_burn_in_that_hangs_is_a_finding(rebooted: Rebooted) -> None:
    rebooted.burn_in("exec sleep 60", "deadlines: {burn_in: 1}")
    rebooted.check()
    assert "REPLACE burn_in burn did not end within 1 s" in rebooted.wait_for_reason()


def test_dcgms_stress_is_the_burn_in_where_it_is_installed(rebooted: Rebooted) -> None:
    rebooted.dcgm("Fail", exit_status=1)
    rebooted.check()
    assert "REPLACE burn_in DCGM Targeted Stress failed" in rebooted.wait_for_reason()
    assert tool_calls(rebooted.node) == ["dcgmi diag -r 2 -j"]


@pytest.mark.parametrize(("status", "exit_status"), [("Pass", 0), ("Skip", 0), ("", 1)])
def test_dcgm_that_tells_no_failure_lets_the_node_back(
    rebooted: Rebooted, status: str, exit_status: int
) -> None:
    rebooted.dcgm(status, exit_status)
    rebooted.check()
    assert rebooted.wait_for_reason() == _PASSED
    assert ("burn-in not judged" in rebooted.log) == (not status)


def test_burn_in_that_cannot_be_run_keeps_no_node_away(rebooted: Rebooted) -> None:
    rebooted.policy("burn_in: [/nowhere/burn]")
    rebooted.check()
    assert rebooted.wait_for_reason() == _PASSED
    assert "burn cannot be run: No such file" in rebooted.log


@pytest.mark.parametrize("text", ["burn_in: off", ""])
def test_without_a_burn_in_the_first_run_that_passes_asks(rebooted: Rebooted, text: str) -> None:
    rebooted.policy(text)
    rebooted.check()
    assert rebooted.reasons == [_PASSED]


@pytest.mark.parametrize("state", ["MIXED+CLOUD+DRAIN", "IDLE+CLOUD+COMPLETING+DRAIN"])
def test_no_load_is_put_on_a_node_before_its_job_is_over(rebooted: Rebooted, state: str) -> None:
    rebooted.burn_in("")
    rebooted.scontrol.knows(state, _CONDEMNED)
    rebooted.check()
    assert f"a job may be on the node: {state}" in rebooted.log
    assert "burn-in started" not in rebooted.log
    rebooted.scontrol.knows("IDLE+CLOUD+DRAIN", _CONDEMNED)
    rebooted.check()
    assert rebooted.wait_for_reason() == _PASSED


@pytest.mark.parametrize(
    ("state", "reason"),
    [("IDLE+CLOUD+DRAIN", "fan replaced on Friday"), ("ALLOCATED+CLOUD", ""), ("IDLE+CLOUD", "")],
)
def test_no_load_is_put_on_a_node_that_a_person_has_taken_over(
    rebooted: Rebooted, state: str, reason: str
) -> None:
    rebooted.burn_in("")
    rebooted.scontrol.knows(state, reason)
    rebooted.check()
    assert read_drain(rebooted.host) is None
    assert not Path(rebooted.host.log_file).exists()


def test_node_that_a_person_lets_serve_during_its_burn_in_is_not_condemned_by_it(
    rebooted: Rebooted,
) -> None:
    rebooted.burn_in(f"{_LET_GO}\nexit 3")
    rebooted.check()
    wait_until("it to run", lambda: rebooted.progress.progress is Progress.RUNNING, _SECONDS)
    rebooted.scontrol.knows("MIXED+CLOUD")
    rebooted.node.write("go", "")
    wait_until("the drain to be forgotten", lambda: not read_drain(rebooted.host), _SECONDS)
    assert rebooted.reasons == []
    assert "burn exit 3" in rebooted.log


def test_node_that_does_not_know_which_vm_it_is_does_not_ask(rebooted: Rebooted) -> None:
    rebooted.policy("burn_in: off")
    rebooted.node.path("var/lib/slurm-hooks/health/identity").unlink()
    host = rebooted.host._replace(metadata_url="http://127.0.0.1:9")
    in_background(host)
    assert rebooted.reasons == []
    assert "not let back" in rebooted.log


def test_node_that_reboots_before_it_has_registered_burns_in_meanwhile(rebooted: Rebooted) -> None:
    rebooted.burn_in("")
    rebooted.scontrol.knows("DOWN+CLOUD+DRAIN+REBOOT_ISSUED", _CONDEMNED)
    rebooted.check()
    assert rebooted.wait_for_reason() == _PASSED


def test_burn_in_that_was_killed_is_begun_anew(rebooted: Rebooted) -> None:
    rebooted.burn_in(_LET_GO)
    rebooted.check()
    wait_until("it to run", lambda: rebooted.progress.progress is Progress.RUNNING, _SECONDS)
    wait_until("the load", lambda: tool_calls(rebooted.node) == ["burn "], _SECONDS)
    file = rebooted.node.path("var/lib/slurm-hooks/health/burn-in")
    os.kill(int(file.read_text().split()[1]), signal.SIGKILL)
    ended = Progress.NOT_STARTED
    wait_until("it to end", lambda: rebooted.progress.progress is ended, _SECONDS)
    rebooted.node.write("go", "")
    rebooted.check()
    assert rebooted.wait_for_reason() == _PASSED


def test_drain_that_was_no_condemnation_needs_no_burn_in(rebooted: Rebooted) -> None:
    rebooted.burn_in("")
    remember_drain(rebooted.host, OwnDrain(Verdict.REQUEUE, _BOOT))
    rebooted.check()
    assert rebooted.reasons == [_PASSED]
    assert tool_calls(rebooted.node) == []


def test_burn_in_of_another_boot_counts_for_nothing(rebooted: Rebooted) -> None:
    rebooted.burn_in("")
    path = "var/lib/slurm-hooks/health/burn-in"
    rebooted.node.write(path, "0000beef 1 1\npassed \n")
    assert rebooted.progress.progress is Progress.NOT_STARTED
