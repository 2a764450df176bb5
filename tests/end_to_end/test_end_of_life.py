"""VMs that end after minutes, on real Slurm: who may run there, and what comes after."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import Fleet, short_times, write_cluster
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

NO_SUSPENSION_SECONDS = 600
NOTICE_SECONDS = 20
SIGNALLED = """
if [ -z "$SLURM_RESTART_COUNT" ]; then
  trap 'echo signalled' URG
  while :; do sleep 1; done
fi
echo second run
"""


@pytest.fixture
def short_lived(start_box: Callable[..., Box], tmp_path: Path) -> Callable[..., Fleet]:
    """A cluster of so many nodes, dynamic ones if not static, whose VMs live that long."""

    def start(nodes: int, life_seconds: int, static: int = 0) -> Fleet:
        path = tmp_path / "cluster_config.json"
        write_cluster(
            path,
            static=static,
            nodes=nodes,
            policy={"end_of_life_notice_seconds": NOTICE_SECONDS},
        )
        document = json.loads(path.read_text(encoding="utf-8"))
        for pool in document["node_pools"]:
            if pool["id"] == "a3u":
                pool["flex_start_max_duration"] = f"{life_seconds}s"
        path.write_text(json.dumps(document), encoding="utf-8")
        times = short_times(FAST_LATENCY)
        options = dataclasses.replace(times, suspend_time_seconds=NO_SUSPENSION_SECONDS)
        return Fleet(start_box(cluster_file=path, options=options))

    return start


def reservations(fleet: Fleet) -> str:
    return fleet.slurm("scontrol", "-o", "show", "reservations")


def node_of(fleet: Fleet, job_id: int) -> str:
    match = re.search(r"^ *NodeList=(\S+)$", fleet.witness.job(job_id).text, re.MULTILINE)
    return match.group(1) if match else ""


def test_jobs_run_where_the_life_left_is_enough_and_idle_nodes_are_renewed(
    short_lived: Callable[..., Fleet],
) -> None:
    fleet = short_lived(2, 180)
    first = fleet.submit(1, "--time=1")
    fleet.wait_for_job(first, "COMPLETED")
    assert (node_of(fleet, first), fleet.is_up(N0)) == (N0, True)
    made = reservations(fleet)
    assert f"Nodes={N0} " in made
    assert "slurm-hooks-eol-" in made

    short = fleet.submit(1, "--time=1")
    fleet.wait_for_job(short, "COMPLETED", 60)
    assert node_of(fleet, short) == N0

    # Its limit is the whole life of a VM: the node that is up has too little left for it.
    long = fleet.submit(1, "--time=3", more="sleep 600")
    fleet.wait_for_job(long, "RUNNING")
    assert node_of(fleet, long) == N1

    old_vm = fleet.vm_id(N0)
    another = fleet.submit(1, "--time=3", more="sleep 600")
    fleet.wait_for_job(another, "RUNNING", 120)
    assert node_of(fleet, another) == N0
    assert fleet.vm_id(N0) != old_vm
    renewed = fleet.log_lines("too little life left")
    assert len(renewed) == 1
    assert str(another) in renewed[0]


def test_job_is_signalled_once_queued_again_at_the_end_and_runs_on_a_new_vm(
    short_lived: Callable[..., Fleet],
) -> None:
    fleet = short_lived(1, 60)
    job_id = fleet.submit(1, "--time=1", "--open-mode=append", more=SIGNALLED)
    fleet.wait_for_job(job_id, "RUNNING")
    old_vm = fleet.vm_id(N0)
    fleet.box.wait_until("the signal", lambda: "signalled" in fleet.witness.job_output(job_id), 60)
    fleet.box.wait_until("the comment", lambda: "URG was sent" in fleet.comment(job_id), 10)
    fleet.box.daemon.kill()
    fleet.box.daemon.start()

    fleet.wait_for_job(job_id, "PENDING", 60)
    fleet.wait_for_job(job_id, "COMPLETED", 120)
    output = fleet.witness.job_output(job_id)
    assert output.count("signalled") == 1
    assert "second run" in output
    assert fleet.vm_id(N0) != old_vm
    assert "URG was sent" not in fleet.comment(job_id)

    fleet.wait_until_off(N0)
    fleet.box.wait_until(
        "the reservations to go with their VMs",
        lambda: "slurm-hooks-eol-" not in reservations(fleet),
        10,
    )


def test_static_node_is_back_on_a_new_vm_after_its_end(
    short_lived: Callable[..., Fleet],
) -> None:
    fleet = short_lived(1, 60, static=1)
    fleet.wait_until_up(N0)
    old_vm = fleet.vm_id(N0)
    fleet.box.wait_until(
        "the VM to be gone", lambda: fleet.vm_id(N0) != old_vm and not fleet.is_up(N0), 120
    )
    fleet.wait_until_up(N0, another_than=old_vm)
    assert len(fleet.log_lines("VM gone|VM goes")) == 1
    fleet.box.wait_until(
        "the reservation of the new VM to be the only one",
        lambda: reservations(fleet).count("slurm-hooks-eol-") == 1,
        10,
    )
