"""What a pool may ask for beyond the usual, with real jobs: run time, placement, waiting limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.box.project import Request
from tests.end_to_end.conftest import FAST_LATENCY, place_for_a_box
from tests.end_to_end.fleet import Fleet, example_document, short_times

pytestmark = pytest.mark.slow

LIMIT_SECONDS = 6
MARGIN_SECONDS = 660
OPTIONS = {
    "timed": {"run_duration_follows_job": True},
    "compact": {"compact_placement": True},
    "limited": {"capacity_wait_limit_seconds": LIMIT_SECONDS},
}


def write_pools(path: Path) -> Path:
    """A pool and a partition of two nodes for each option."""
    document = example_document()
    model = next(pool for pool in document["node_pools"] if pool["id"] == "a3u")
    document["node_pools"].remove(model)
    document["node_pools"] += [
        {**model, "id": pool_id, "slurm_hooks": options} for pool_id, options in OPTIONS.items()
    ]
    document["orchestrator_spec"]["slurm_spec"]["partitions"] = [
        {"id": pool_id, "node_pool_ids": [pool_id]} for pool_id in OPTIONS
    ]
    document["slurm_hooks"] = {
        "job_duration_margin_seconds": MARGIN_SECONDS,
        "hold_seconds": 5,  # a pool that gave nothing in time is held at once
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A cluster in whose zone requests wait until a test lets them have VMs."""
    path = write_pools(tmp_path_factory.mktemp("cluster") / "cluster.json")
    options = replace(short_times(FAST_LATENCY), capacity=0)
    with (
        place_for_a_box() as directory,
        Box.start(directory, cluster_file=path, options=options) as box,
    ):
        yield Fleet(box)


def requests_of(fleet: Fleet, job_id: int) -> list[Request]:
    return [
        request
        for request in fleet.witness.project.requests()
        if request.name.startswith(f"job-{job_id}-")
    ]


def request_of(fleet: Fleet, job_id: int) -> Request:
    """The job's only request, once it is there."""
    fleet.box.wait_until(
        f"the request of job {job_id}", lambda: len(requests_of(fleet, job_id)) == 1, 30
    )
    return requests_of(fleet, job_id)[0]


def test_vms_are_asked_for_as_long_as_the_job_may_run_and_the_margin(fleet: Fleet) -> None:
    short = fleet.submit(1, "-p", "timed", "--time=2")
    long = fleet.submit(1, "-p", "timed", "--time=60")
    requests = {job_id: request_of(fleet, job_id) for job_id in (short, long)}
    assert requests[short].run_seconds == 2 * 60 + MARGIN_SECONDS
    assert requests[long].run_seconds == 60 * 60 + MARGIN_SECONDS
    for request in requests.values():
        fleet.box.control.grant_resize_request(request.name)
    for job_id in requests:
        fleet.wait_for_job(job_id, "COMPLETED")


def test_each_start_of_a_job_has_a_compact_group_that_goes_with_it(fleet: Fleet) -> None:
    jobs = [fleet.submit(1, "-p", "compact") for _ in range(2)]
    requests = {job_id: request_of(fleet, job_id) for job_id in jobs}
    first, second = jobs
    assert requests[first].group != requests[second].group
    policies = {group.name: group.workload_policy for group in fleet.witness.project.groups()}
    for request in requests.values():
        assert policies[request.group]

    fleet.box.control.fail_resize_request(requests[first].name, "QUOTA_EXCEEDED", "GPUS")
    fleet.wait_for_job(first, "PENDING", 30)
    fleet.box.wait_until(
        "the group of its second start",
        lambda: any(request.state == "ACCEPTED" for request in requests_of(fleet, first)),
        60,
    )
    (again,) = [request for request in requests_of(fleet, first) if request.state == "ACCEPTED"]
    assert again.group not in {request.group for request in requests.values()}
    for name in (again.name, requests[second].name):
        fleet.box.control.grant_resize_request(name)
    for job_id in jobs:
        fleet.wait_for_job(job_id, "COMPLETED")


def test_request_that_waits_beyond_the_limit_of_its_pool_is_given_up_and_the_job_told(
    fleet: Fleet,
) -> None:
    job_id = fleet.submit(1, "-p", "limited")
    first = request_of(fleet, job_id)
    fleet.box.wait_until(
        "the job to be told",
        lambda: f"CAPACITY_WAIT_LIMIT: none came within {LIMIT_SECONDS} s" in fleet.comment(job_id),
        3 * LIMIT_SECONDS + 20,
    )
    fleet.box.wait_until(
        "its request to be given up",
        lambda: (
            first.name not in {r.name for r in requests_of(fleet, job_id) if r.state == "ACCEPTED"}
        ),
        20,
    )
    fleet.box.wait_until(
        "the request of its second start",
        lambda: any(request.state == "ACCEPTED" for request in requests_of(fleet, job_id)),
        60,
    )
    (again,) = [request for request in requests_of(fleet, job_id) if request.state == "ACCEPTED"]
    fleet.box.control.grant_resize_request(again.name)
    fleet.wait_for_job(job_id, "COMPLETED")
