"""What people see who wait for nodes at a terminal, or whose job may not be queued again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import AT_ONCE, N2, Fleet, short_times, write_cluster
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

TOLD_SECONDS = 30
MESSAGE = "GPUS in us-central1"
BATCH_JOB = 3
JOBS = (1, 2, BATCH_JOB)
"""Ids of the first jobs of a box, in the order in which they are submitted."""


@pytest.fixture
def fleet(start_box: Callable[..., Box], tmp_path: Path) -> Fleet:
    """Three nodes without capacity, whose pool is not held after so few failures."""
    policy = {**AT_ONCE, "hold_after_failures": 10}
    path = write_cluster(tmp_path / "cluster.json", static=0, nodes=3, policy=policy)
    options = replace(short_times(FAST_LATENCY), capacity=0)
    return Fleet(start_box(cluster_file=path, options=options))


def test_jobs_that_slurm_does_not_queue_again_end_with_a_reason_that_explains(
    fleet: Fleet,
) -> None:
    with fleet.interactive(N0, "hostname") as srun:
        fleet.wait_for_requests(1)
        with fleet.at_a_terminal("salloc", N1, "hostname") as salloc:
            fleet.wait_for_requests(2)
            assert fleet.submit(1, "-w", N2, "--no-requeue") == BATCH_JOB
            fleet.wait_for_requests(3)
            fleet.box.wait_until(
                "each job to be told what it waits for",
                lambda: all("waiting for capacity" in fleet.comment(job_id) for job_id in JOBS),
                TOLD_SECONDS,
            )
            for name in fleet.request_states():
                fleet.box.control.fail_resize_request(name, "QUOTA_EXCEEDED", MESSAGE)
            said_by_srun, _ = srun.communicate(timeout=TOLD_SECONDS)
            said_by_salloc, _ = salloc.communicate(timeout=TOLD_SECONDS)
    assert srun.returncode != 0
    assert f"Node failure on {N0}" in said_by_srun
    assert salloc.returncode != 0
    assert f"Node failure on {N1}" in said_by_salloc
    for job_id, node in zip(JOBS, (N0, N1, N2), strict=True):
        assert fleet.job_state(job_id) == "NODE_FAIL"
        assert "failed: 1 x a3-ultragpu-8g in us-central1-a" in fleet.comment(job_id)
        for told in (fleet.comment(job_id), fleet.reason(node)):
            assert "QUOTA_EXCEEDED" in told
            assert MESSAGE in told
    fleet.wait_until_off(N0, N1, N2)
    fleet.box.wait_until("no request to be left", lambda: fleet.request_states() == {}, 30)


def test_interactive_job_waits_for_capacity_and_runs(fleet: Fleet) -> None:
    with fleet.at_a_terminal("salloc", N0, "hostname") as salloc:
        fleet.wait_for_requests(1)
        fleet.set_capacity(1)
        said, _ = salloc.communicate(timeout=60)
    assert salloc.returncode == 0, said
    assert f"Nodes {N0} are ready for job" in said


def test_interrupted_wait_gives_request_and_node_up(fleet: Fleet) -> None:
    with fleet.interactive(N0, "hostname") as srun:
        fleet.wait_for_requests(1)
        srun.terminate()
        srun.wait(TOLD_SECONDS)
        fleet.wait_until_off(N0)
    fleet.box.wait_until("no request to be left", lambda: fleet.request_states() == {}, 30)
    assert fleet.vm_states() == {}
