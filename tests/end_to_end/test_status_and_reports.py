"""A cluster is watched from its first request on; faulty nodes are replaced at a person's word."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks import settings
from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.status.as_json import status_as_json
from slurm_hooks.status.read import read_status
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import Fleet, example_document, short_times
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

LOGIN, KEPT = "flexvm-login-0", "flexvm-kept-0"
RESERVATION = "projects/sandbox/zones/us-central1-a/reservations/kept"
REPORT_SECONDS = 600.0
SLOW_REPORTS = {**FAST_LATENCY, "hostReportSeconds": REPORT_SECONDS}
"""The report of a host is over when the test says so, by moving the emulator's clock."""
AGAIN = """\
if [ -n "$SLURM_RESTART_COUNT" ]; then echo "again after $SLURM_RESTART_COUNT"; exit 0; fi
sleep 600
"""
SOON = 60


def write_pools(path: Path) -> Path:
    """A login node, a Flex-start pool of a static and a dynamic node, one node in a reservation."""
    document = example_document(login_nodes=1)
    login, flex = document["node_pools"]
    flex["scaling_spec"] = {"min_node_count": 1, "max_node_count": 2}
    affinity = {
        "reservation_affinity_type": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [RESERVATION],
    }
    kept = {
        **flex,
        "id": "kept",
        "provisioning_model": "RESERVATION",
        "machine_spec": {**flex["machine_spec"], "reservation_affinity": affinity},
        "scaling_spec": {"min_node_count": 0, "max_node_count": 1},
    }
    del kept["flex_start_max_duration"]
    document["node_pools"] = [login, flex, kept]
    document["orchestrator_spec"]["slurm_spec"]["partitions"] = [
        {"id": pool, "node_pool_ids": [pool]} for pool in ("a3u", "kept")
    ]
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


class Watched:
    """The cluster as the commands of slurm-hooks show it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of slurm-hooks."""
        return self._fleet.box.run([sys.executable, "-m", "slurm_hooks.cli.main", *arguments])

    def status(self) -> dict[str, Any]:
        """What `status --json` answers, without the seconds that a process of its own takes."""
        settings_file = settings.find(self._fleet.box.environment["SLURM_CONF"])
        answer: dict[str, Any] = json.loads(status_as_json(read_status(settings_file)))
        return answer

    def node(self, name: str) -> dict[str, Any]:
        """One node of it."""
        return next(node for node in self.status()["nodes"] if node["node"] == name)

    def wait_for(self, name: str, state: str, detail: str = "") -> None:
        """Wait until the node stands so."""
        seen: dict[str, Any] = {}

        def stands() -> bool:
            seen.update(self.node(name))
            return seen["state"] == state and detail in str(seen["detail"])

        self._fleet.box.wait_until(f"{name} to be {state} {detail}", stands, SOON)

    def reports(self) -> list[tuple[str, str]]:
        """The outcome of each report, the newest first."""
        listed = json.loads(self.run("report-faulty", "--list", "--json").stdout)
        return [(report["node"], report["state"]) for report in listed]

    def history(self, name: str) -> list[str]:
        """How far the events say that reports of a node were."""
        lines = self.run("events", "--node", name, "--type", "VM_REPORT_AND_REPLACEMENT", "--json")
        messages = [json.loads(line)["event_message"] for line in lines.stdout.splitlines()]
        return [message.partition(":")[0] for message in messages]


def test_cluster_is_watched_to_its_start_and_faulty_nodes_are_replaced_under_their_jobs(
    start_box: Callable[..., Box], tmp_path: Path
) -> None:
    file = write_pools(tmp_path / "cluster.json")
    options = replace(short_times(SLOW_REPORTS), capacity=0)
    fleet = Fleet(start_box(cluster_file=file, options=options))
    watched = Watched(fleet)

    watched.wait_for(N0, "PREPARING", "waits for capacity since ")
    shown = watched.status()
    assert shown["state"] == "PROVISIONING"
    assert any(line.startswith(f"{N0}: waits for capacity") for line in shown["held_up_by"])
    assert watched.node(N0)["request"]["state"] == "ACCEPTED"
    assert watched.node(N1)["state"] == "OFF"

    fleet.set_capacity(1)
    watched.wait_for(N0, "RUNNING")
    watched.wait_for(LOGIN, "RUNNING")
    answer = watched.run("status")
    assert (answer.returncode, "cluster flexvm is RUNNING" in answer.stdout) == (0, True)
    assert watched.status()["state"] == "RUNNING"

    job_id = fleet.submit(1, "-p", "a3u", "-w", N1, more=AGAIN)
    watched.wait_for(N1, "PREPARING", "ZONE_RESOURCE_POOL_EXHAUSTED")
    assert watched.node(N1)["jobs"] == [job_id]
    assert watched.status()["state"] == "RUNNING"
    fleet.set_capacity(3)
    fleet.wait_for_job(job_id, "RUNNING")
    watched.wait_for(N1, "RUNNING")

    first = fleet.vm_id(N1)
    answer = watched.run("report-faulty", N1, "--yes", "--wait", "--description", "slow")
    assert answer.returncode == 0, answer.stderr
    fleet.wait_for_job(job_id, "COMPLETED")
    assert "again after 1" in fleet.witness.job_output(job_id)
    assert fleet.vm_id(N1) != first
    assert watched.history(N1) == ["ORDERED", "REPLACING", "REPLACED"]
    refused = watched.run("report-faulty", N0, "--yes", "--host", "--behavior", "PERFORMANCE")
    assert (refused.returncode, "FLEX_START" in refused.stderr) == (2, True)

    job_id = fleet.submit(1, "-p", "kept", more=AGAIN)
    fleet.wait_for_job(job_id, "RUNNING")
    first, host = fleet.vm_id(KEPT), ("--host", "--behavior", "UNRECOVERABLE_GPU_ERROR")
    assert watched.run("report-faulty", KEPT, "--yes", *host).returncode == 0
    watched.wait_for(KEPT, "REPAIRING", "reported faulty")
    refused = watched.run("report-faulty", N0, "--yes")
    assert (refused.returncode, f"report of {KEPT} is still open" in refused.stderr) == (2, True)
    fleet.box.wait_until("the job to go", lambda: fleet.job_state(job_id) != "RUNNING", SOON)
    fleet.wait_for_passes()
    assert (fleet.vm_id(KEPT), watched.node(KEPT)["state"]) == (first, "REPAIRING")
    fleet.box.control.advance_clock(REPORT_SECONDS)
    fleet.wait_for_job(job_id, "COMPLETED")
    assert "again after 1" in fleet.witness.job_output(job_id)
    assert fleet.vm_id(KEPT) != first
    assert watched.history(KEPT) == ["ORDERED", "REPORTED", "REPLACING", "REPLACED"]
    assert watched.reports() == [(KEPT, "REPLACED"), (N1, "REPLACED")]
    made = [call.path for call in fleet.box.control.calls()]
    assert sum("/reportHostAsFaulty" in path for path in made) == 1
