"""A job over a thousand nodes, and more jobs than a region has places, on real Slurm.

The zone has no capacity, so requests wait and no VM boots: one machine cannot be a thousand nodes.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Iterator

import pytest

from slurm_hooks.sandbox.box.project import Request
from tests.end_to_end.conftest import fleet_without_capacity
from tests.end_to_end.fleet import Fleet

pytestmark = pytest.mark.slow

NODES = 1100
JOB_NODES = 1050
MOST_VMS_A_REQUEST = 1000
PLACES = 100
JOBS = 105
SECONDS = 60


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """One pool of more than a thousand nodes."""
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    with fleet_without_capacity(path, NODES) as fleet:
        yield fleet


def names(first: int, last: int) -> set[str]:
    return {f"flexvm-a3u-{index}" for index in range(first, last)}


def waiting(fleet: Fleet) -> list[Request]:
    """The requests that wait, the larger ones first."""
    found = [r for r in fleet.witness.project.requests() if r.state == "ACCEPTED"]
    return sorted(found, key=lambda request: -len(request.instances))


def all_nodes_are(fleet: Fleet, state: str) -> bool:
    return fleet.slurm("sinfo", "-h", "-p", "a3u", "-o", "%D %T").split() == [str(NODES), state]


def wait_until_nothing_is_left(fleet: Fleet) -> None:
    fleet.box.wait_until(
        "all nodes to be powered down and all requests to be gone",
        lambda: all_nodes_are(fleet, "idle~") and fleet.request_states() == {},
        SECONDS,
    )


def wait_until(fleet: Fleet, what: str, condition: Callable[[], bool]) -> None:
    fleet.box.wait_until(what, condition, SECONDS)


def test_job_over_a_thousand_nodes_has_two_requests_that_live_and_die_together(
    fleet: Fleet,
) -> None:
    job_id = fleet.submit(JOB_NODES)
    wait_until(fleet, "two requests", lambda: len(waiting(fleet)) == 2)
    large, small = waiting(fleet)
    assert len(large.instances) == MOST_VMS_A_REQUEST
    assert large.group != small.group
    assert len(fleet.inserts()) == 2
    asked = [*large.instances, *small.instances]
    assert sorted(asked) == sorted(names(0, JOB_NODES))

    fleet.box.control.fail_resize_request(small.name, "QUOTA_EXCEEDED", "GPUS in us-central1")
    fleet.wait_for_job(job_id, "PENDING", SECONDS)
    assert "QUOTA_EXCEEDED: GPUS in us-central1" in fleet.comment(job_id)
    assert "Restarts=1" in fleet.witness.job(job_id).text
    fleet.slurm("scontrol", "hold", str(job_id))
    wait_until_nothing_is_left(fleet)
    fleet.slurm("scontrol", "release", str(job_id))

    wait_until(fleet, "two new requests", lambda: len(waiting(fleet)) == 2)
    again = waiting(fleet)
    assert {request.name for request in again}.isdisjoint({large.name, small.name})
    assert {request.group for request in again} == {large.group, small.group}
    fleet.slurm("scancel", str(job_id))
    wait_until_nothing_is_left(fleet)
    assert fleet.vm_states() == {}
    assert all(group.target_size == 0 for group in fleet.witness.project.groups())


def jobs_asked_for(fleet: Fleet) -> set[int]:
    return {int(request.name.split("-")[1]) for request in waiting(fleet)}


def raw_ids(fleet: Fleet) -> list[int]:
    return [int(word) for word in fleet.slurm("squeue", "-h", "-r", "-o", "%A").split()]


def task_of(fleet: Fleet, job_id: int) -> str:
    """The job's id as a task of its array, which is all that scancel takes."""
    by_id = (line.split() for line in fleet.slurm("squeue", "-h", "-r", "-o", "%A %i").splitlines())
    return {int(raw): shown for raw, shown in by_id}[job_id]


def jobs_told_of_their_turn(fleet: Fleet) -> set[int]:
    text = fleet.slurm("scontrol", "-o", "show", "jobs")
    return {
        int(line.split()[0].removeprefix("JobId="))
        for line in text.splitlines()
        if re.search(r"AdminComment=.*waiting for its turn", line)
    }


def test_a_hundred_jobs_ask_and_the_others_go_by_priority_as_places_fall_free(
    fleet: Fleet,
) -> None:
    fleet.submit(1, f"--array=1-{JOBS}")
    wait_until(fleet, "a hundred requests", lambda: len(waiting(fleet)) == PLACES)
    first_asked = jobs_asked_for(fleet)
    jobs = raw_ids(fleet)
    assert len(jobs) == JOBS
    late = set(jobs) - first_asked
    wait_until(fleet, "the others to be told", lambda: jobs_told_of_their_turn(fleet) == late)

    urgent = fleet.submit(1)
    fleet.slurm("scontrol", "update", f"jobid={urgent}", "priority=4294901760")
    wait_until(fleet, "the urgent job to be told", lambda: urgent in jobs_told_of_their_turn(fleet))
    fleet.slurm("scancel", task_of(fleet, max(first_asked)))
    wait_until(fleet, "the next request", lambda: len(jobs_asked_for(fleet) - first_asked) == 1)
    assert jobs_asked_for(fleet) - first_asked == {urgent}
    fleet.slurm("scancel", f"--user={getpass.getuser()}")
    wait_until_nothing_is_left(fleet)
