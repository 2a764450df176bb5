"""More jobs than the region has places for resize requests, and arrays, on real Slurm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import short_times, write_cluster
from tests.end_to_end.lifecycle import Lifecycle

pytestmark = pytest.mark.slow

REGION = "us-central1"
PLACES = 2
COME_SECONDS = 120
"""A place that others of the project hold is asked for again after half a minute."""


@pytest.fixture
def cluster(start_box: Callable[..., Box], tmp_path: Path) -> Iterator[Lifecycle]:
    """Four nodes, no capacity, and two places for active requests."""
    file = write_cluster(tmp_path / "cluster.json", static=0, nodes=4, policy={})
    options = replace(short_times(FAST_LATENCY), capacity=0)
    with start_box(cluster_file=file, options=options) as box:
        box.control.set_quota(REGION, "ACTIVE_RESIZE_REQUESTS", PLACES)
        yield Lifecycle(box)


def asked_for(cluster: Lifecycle) -> set[int]:
    """The jobs that requests have been made for."""
    return {int(name.split("-")[1]) for name in cluster.request_states()}


def test_jobs_beyond_the_places_wait_for_their_turn_and_none_fails(cluster: Lifecycle) -> None:
    jobs = [cluster.submit(1) for _ in range(4)]
    cluster.wait_for_requests(PLACES)
    cluster.box.wait_until(
        "the others to be told that they wait for their turn",
        lambda: all("its turn" in cluster.comment(job_id) for job_id in jobs[PLACES:]),
        30,
    )
    assert asked_for(cluster) == set(jobs[:PLACES])
    assert "quotaExceeded" in cluster.comment(jobs[-1])
    for job_id in jobs:
        assert cluster.job_state(job_id) == "CONFIGURING"

    cluster.set_capacity(PLACES)
    for job_id in jobs[:PLACES]:
        cluster.wait_for_job(job_id, "COMPLETED")
    cluster.set_capacity(4)
    for job_id in jobs[PLACES:]:
        cluster.wait_for_job(job_id, "COMPLETED", COME_SECONDS)
    assert len(cluster.inserts()) == len(jobs)
    for job_id in jobs:
        assert "Restarts=0" in cluster.witness.job(job_id).text


def test_tasks_of_an_array_get_requests_and_comments_of_their_own(cluster: Lifecycle) -> None:
    array_id = cluster.submit(1, "--array=1-3")
    cluster.wait_for_requests(PLACES)

    def comments() -> list[str]:
        shown = (
            cluster.slurm("scontrol", "-o", "show", "job", f"{array_id}_{n}") for n in (1, 2, 3)
        )
        return [text.partition("AdminComment=")[2] for text in shown]

    cluster.box.wait_until(
        "each task to be told its own",
        lambda: sorted("its turn" in text for text in comments()) == [False, False, True],
        30,
    )
    cluster.box.control.set_quota(REGION, "ACTIVE_RESIZE_REQUESTS", 100)
    cluster.set_capacity(4)
    cluster.box.wait_until(
        "all tasks to be done",
        lambda: cluster.slurm("squeue", "-h", "-o", "%i").split() == [],
        COME_SECONDS,
    )
