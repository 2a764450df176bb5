"""Node health end to end: real slurmd calls our programs on nodes whose GPUs can break."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import UP_SECONDS, Fleet, short_times, write_cluster
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

FOUND_SECONDS = 40
UNREPAIRED = {"most_repairs_a_node": 0}
"""A policy under which a drained node stays as it was drained."""


def health_log(fleet: Fleet, node: str) -> str:
    path = fleet.box.layout.node(node) / "var/log/slurm-hooks/health.log"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def wait_until_drained(fleet: Fleet, node: str) -> None:
    fleet.box.wait_until(
        f"{node} to be drained by a health run",
        lambda: (
            "DRAIN" in fleet.node_flags(node) and fleet.reason(node).startswith("slurm-hooks: ")
        ),
        FOUND_SECONDS,
    )


def boot_id(fleet: Fleet, node: str) -> str:
    """Empty while the node is between two boots."""
    path = fleet.box.layout.node(node) / "proc/sys/kernel/random/boot_id"
    return path.read_text(encoding="ascii").strip() if path.exists() else ""


def wait_until_booted_before_this_second(fleet: Fleet, node: str) -> None:
    """slurmctld takes a reboot that it asks for in the second of the last boot for over at once."""
    asked_at = time.time()
    fleet.box.wait_until(f"a second after {node} was up", lambda: time.time() >= asked_at + 1, 5)


def test_job_on_healthy_gpus_passes_prolog_and_epilog(start_fleet: Callable[..., Fleet]) -> None:
    fleet = start_fleet(1)
    fleet.wait_until_up(N0)
    job = fleet.submit(1)
    fleet.wait_for_job(job, "COMPLETED")
    state = fleet.box.layout.node(N0) / "var/lib/slurm-hooks/health"
    assert fleet.vm_id(N0) in (state / "identity").read_text(encoding="utf-8")
    assert (state / "jobs").is_dir(), "the Prolog has left nothing for the Epilog"
    assert health_log(fleet, N0) == ""
    assert "DRAIN" not in fleet.node_flags(N0)


def test_job_does_not_start_on_a_lost_gpu_and_the_node_says_why(
    start_box: Callable[..., Box], tmp_path: Path
) -> None:
    file = write_cluster(tmp_path / "cluster.json", static=2, nodes=3, policy=UNREPAIRED)
    options = replace(short_times(FAST_LATENCY), health_check_interval_seconds=3600)
    fleet = Fleet(start_box(cluster_file=file, options=options))
    fleet.wait_until_up(N0, N1)
    fleet.box.control.gpu_fault(N0, "lost", gpu=3)
    job = fleet.submit(2, f"-w{N0},{N1}")
    wait_until_drained(fleet, N0)
    reason = fleet.reason(N0)
    assert re.match(r"slurm-hooks: REBOOT gpu_lost .*3.* inst=\d+ boot=[0-9a-f]{8} ", reason)
    assert f"inst={fleet.vm_id(N0)} boot={boot_id(fleet, N0)[:8]} " in reason
    assert f"ctx=prolog job={job} " in reason
    fleet.wait_for_job(job, "PENDING")
    assert fleet.witness.job_output(job) == "", "the job ran on a broken node"
    assert "DRAIN" not in fleet.node_flags(N1)


def test_gpu_that_breaks_on_an_idle_node_is_found_without_a_job(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(1, **UNREPAIRED)
    fleet.wait_until_up(N0)
    fleet.box.control.gpu_fault(N0, "row-remap-failure", gpu=0)
    wait_until_drained(fleet, N0)
    assert "REPLACE row_remap" in fleet.reason(N0)
    assert "ctx=background" in fleet.reason(N0)


def test_reboot_keeps_the_vm_and_its_disk_and_cures_what_does_not_last(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(1)
    fleet.wait_until_up(N0)
    vm, boot = fleet.vm_id(N0), boot_id(fleet, N0)
    fleet.slurm("scontrol", "update", f"nodename={N0}", "state=drain", "reason=mine")
    fleet.box.control.gpu_fault(N0, "no-driver")
    kept = fleet.box.layout.node(N0) / "var/lib/kept"
    kept.touch()
    wait_until_booted_before_this_second(fleet, N0)
    fleet.slurm("scontrol", "reboot", "ASAP", "nextstate=RESUME", "reason=mine", N0)
    fleet.box.wait_until("a new boot", lambda: boot_id(fleet, N0) not in ("", boot), UP_SECONDS)
    fleet.wait_until_up(N0)
    assert fleet.vm_id(N0) == vm
    assert kept.exists()
    fleet.run_on(N0, "true")


def test_site_script_of_the_cluster_file_keeps_a_job_from_starting(
    start_box: Callable[..., Box], tmp_path: Path
) -> None:
    file = write_cluster(tmp_path / "cluster.json", static=1, nodes=1, policy=UNREPAIRED)
    document = json.loads(file.read_text(encoding="utf-8"))
    document["orchestrator_spec"]["slurm_spec"]["prolog_bash_scripts"] = [
        "true",
        "echo 'license server is gone'; exit 3",
    ]
    file.write_text(json.dumps(document), encoding="utf-8")
    fleet = Fleet(start_box(cluster_file=file, options=short_times(FAST_LATENCY)))
    fleet.wait_until_up(N0)
    fleet.submit(1)
    wait_until_drained(fleet, N0)
    assert "MANUAL site_script 02.sh exit 3: license server is gone" in fleet.reason(N0)
