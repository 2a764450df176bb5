"""A cluster from its file alone: applied on an empty project, changed, cut short, deleted."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import (
    AT_ONCE,
    N2,
    POOL,
    SETTLED_PASSES,
    Fleet,
    example_document,
    short_times,
)
from tests.end_to_end.lifecycle import N0, N1
from tests.end_to_end.test_reaping import FOREIGN, insert_vm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LOGIN, N3 = "flexvm-login-0", "flexvm-a3u-3"
APPLY_SECONDS = 180
NEEDS_A_PERSON = 3
UNTIL_TOLD = "until [ -e go ]; do sleep 0.2; done"


def document(static: int, most: int, *, login: int = 1, disk_gb: int = 400) -> dict[str, Any]:
    """The example cluster with so many nodes and disks of that size."""
    found = example_document(login_nodes=login)
    pool = next(pool for pool in found["node_pools"] if pool["id"] == POOL)
    pool["scaling_spec"] = {"min_node_count": static, "max_node_count": most}
    pool["boot_disk"]["boot_disk_size_gb"] = disk_gb
    return {**found, "slurm_hooks": AT_ONCE}


class Operator(Fleet):
    """A person at the controller, with a cluster file of their own."""

    @property
    def file(self) -> Path:
        """The file that is applied."""
        return self.box.layout.jobs / "mine.json"

    def write(self, wanted: dict[str, Any]) -> None:
        """Write the file."""
        self.file.write_text(json.dumps(wanted), encoding="utf-8")

    def apply(
        self, wanted: dict[str, Any], *options: str, status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Apply a file, which must end with that exit status."""
        self.write(wanted)
        command = ["slurm-hooks", "apply", str(self.file), "--yes", *options]
        answer = self.box.run(command, deadline_seconds=APPLY_SECONDS)
        assert answer.returncode == status, f"{answer.returncode}: {answer.stdout}{answer.stderr}"
        return answer

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a command of ours, whose progress can be read."""
        return subprocess.Popen(
            ["slurm-hooks", *words],
            env=self.box.environment,
            cwd=self.box.layout.jobs,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill_after(self, line: str, *words: str) -> None:
        """Start a command of ours and kill it when it says the line."""
        with self.begin(*words) as process:
            assert process.stderr is not None
            said = []
            for found in process.stderr:
                said.append(found)
                if found.startswith(line):
                    process.send_signal(signal.SIGKILL)
                    break
            process.wait(APPLY_SECONDS)
        assert process.returncode == -signal.SIGKILL, f"never said {line!r}: {said}"

    def delete(self, *options: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Delete the cluster, which must end with that exit status."""
        command = ["slurm-hooks", "delete", "--yes", *options]
        answer = self.box.run(command, deadline_seconds=APPLY_SECONDS)
        assert answer.returncode == status, f"{answer.returncode}: {answer.stdout}{answer.stderr}"
        return answer

    def node_names(self) -> set[str]:
        """The nodes that Slurm has."""
        return set(self.slurm("sinfo", "-h", "-N", "-o", "%N").split())

    def wait_for_idle_passes(self) -> None:
        """Wait until the daemon has looked at the world again, and left it alone."""
        before = len(self.log_lines("stood by"))
        self.box.wait_until(
            "passes that only watch",
            lambda: len(self.log_lines("stood by")) >= before + SETTLED_PASSES,
            60,
        )

    def left_in_the_project(self) -> dict[str, object]:
        """Everything in the emulated project that a controller makes."""
        project = self.witness.project
        return {
            "VMs": set(self.vm_states()),
            "groups": project.groups(),
            "templates": project.templates(),
            "policies": project.workload_policies(),
        }


@pytest.fixture
def operator(start_box: Callable[..., Box], tmp_path: Path) -> Operator:
    """A controller before its first apply, and an empty project; it may grow to four nodes."""
    file = tmp_path / "largest.json"
    file.write_text(json.dumps(document(2, 4)), encoding="utf-8")
    options = replace(short_times(FAST_LATENCY), applied=False)
    return Operator(start_box(cluster_file=file, options=options))


def start_the_cluster(operator: Operator, wanted: dict[str, Any]) -> None:
    """The first apply, and what an installation starts besides."""
    operator.apply(wanted, "--restart-slurmctld", "--no-wait")
    operator.box.daemon.start()


def test_cluster_comes_grows_gets_new_disks_shrinks_and_goes_again(operator: Operator) -> None:
    first = operator.apply(document(1, 2), status=NEEDS_A_PERSON)
    assert "--restart-slurmctld" in first.stdout
    assert operator.vm_states() == {}
    start_the_cluster(operator, document(1, 2))
    running = operator.apply(document(1, 2))
    assert "cluster: done" in running.stdout
    assert operator.is_up(N0)
    assert operator.vm_states() == {N0: "RUNNING", LOGIN: "RUNNING"}
    assert operator.node_names() == {N0, N1}
    insert_vm(operator, FOREIGN, {})

    # Two nodes more, of which one is static: 22.05 needs a restart for them, and is asked first.
    before = operator.vm_id(N0)
    asked = operator.apply(document(2, 4), status=NEEDS_A_PERSON)
    assert "takes changed nodes at its start alone" in asked.stdout
    assert operator.node_names() == {N0, N1}
    operator.apply(document(2, 4), "--restart-slurmctld")
    assert operator.node_names() == {N0, N1, N2, N3}
    assert operator.is_up(N1)
    assert operator.vm_id(N0) == before
    settled = operator.apply(document(2, 4), "--json")
    plan = json.loads(settled.stdout)["plan"]
    assert plan["slurmctld"]["way"] == "keep"
    assert {part["effect"] for part in plan["changes"]} == {"keep"}

    # Other disks: the idle node gets its new VM now, the busy one when its job has ended.
    busy = operator.submit(1, "-w", N1, more=UNTIL_TOLD)
    operator.wait_for_job(busy, "RUNNING")
    vms = {node: operator.vm_id(node) for node in (N0, N1)}
    moved = operator.apply(document(2, 4, disk_gb=500), "--no-wait")
    assert f"job {busy} of " in moved.stdout
    assert f"has {N1}, which gets a new VM after it" in moved.stdout
    operator.wait_until_up(N0, another_than=vms[N0])
    assert operator.vm_id(N1) == vms[N1]
    operator.let_go()
    operator.wait_for_job(busy, "COMPLETED")
    operator.apply(document(2, 4, disk_gb=500))
    assert operator.is_up(N1)
    assert operator.vm_id(N1) != vms[N1]

    # Two nodes less, one of them under a job: refused, then waited for.
    (operator.box.layout.jobs / "go").unlink()
    last = operator.submit(1, "-w", N2, more=UNTIL_TOLD)
    operator.wait_for_job(last, "RUNNING")
    refused = operator.apply(document(1, 2, disk_gb=500), status=2)
    assert f"job {last} of " in refused.stderr
    assert 'max_node_count": 4' in operator.box.layout.cluster_file.read_text()
    command = ("apply", str(operator.file), "--yes", "--wait", "--restart-slurmctld")
    with operator.begin(*command) as shrinking:
        assert shrinking.stderr is not None
        said = next(line for line in shrinking.stderr if f"job {last} of " in line)
        assert said.startswith("nodes that leave: waiting")
        assert operator.job_state(last) == "RUNNING"
        assert operator.node_names() == {N0, N1, N2, N3}
        operator.let_go()
        shrinking.communicate(timeout=APPLY_SECONDS)
    assert shrinking.returncode == 0
    assert operator.job_state(last) == "COMPLETED"
    assert operator.node_names() == {N0, N1}

    # All of it goes, but not under a job without a word, and nothing of others.
    held = operator.submit(1, "-w", N0, more="sleep 600")
    operator.wait_for_job(held, "RUNNING")
    refused = operator.delete(status=2)
    assert f"job {held} of " in refused.stderr
    assert operator.vm_states()[N0] == "RUNNING"
    operator.delete("--force")
    assert operator.left_in_the_project() == {
        "VMs": {FOREIGN},
        "groups": [],
        "templates": [],
        "policies": [],
    }
    assert operator.slurm("scontrol", "show", "reservations").startswith("No reservations")
    assert operator.job_state(held) == "PENDING"
    operator.wait_for_idle_passes()
    assert set(operator.vm_states()) == {FOREIGN}
    assert json.loads(operator.delete("--json").stdout)["left"] == []


def test_apply_and_delete_that_are_killed_at_each_step_go_on_from_there(
    operator: Operator,
) -> None:
    small, large = document(0, 1, login=0), document(0, 2, login=0)
    operator.write(small)
    apply = (
        *("apply", str(operator.file), "--yes", "--skip-check"),
        *("--restart-slurmctld", "--no-wait"),
    )
    steps = ("cluster file: done", "nodes that leave: done", "rendered files: done")
    operator.kill_after(steps[-1], *apply)
    start_the_cluster(operator, small)
    assert operator.node_names() == {N0}
    for step in (*steps, "slurmctld: done"):
        wanted = large if operator.node_names() == {N0} else small
        operator.write(wanted)
        operator.kill_after(step, *apply)
        operator.apply(wanted, "--restart-slurmctld", "--no-wait")
        assert operator.node_names() == ({N0, N1} if wanted is large else {N0})
    again = json.loads(operator.apply(wanted, "--json").stdout)
    assert again["plan"]["slurmctld"]["way"] == "keep"

    job = operator.submit(1, "-w", N0, more="sleep 600")
    operator.wait_for_job(job, "RUNNING")
    operator.kill_after("still there", "delete", "--yes", "--force")
    operator.delete("--force")
    assert operator.left_in_the_project() == {
        "VMs": set(),
        "groups": [],
        "templates": [],
        "policies": [],
    }

    operator.apply(small)
    operator.wait_for_job(job, "RUNNING")
