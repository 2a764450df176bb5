"""Jobs that come in pieces: nodes woken one call after another, components, tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.end_to_end.conftest import fleet_without_capacity
from tests.end_to_end.fleet import Fleet
from tests.end_to_end.lifecycle import COME_SECONDS

pytestmark = pytest.mark.slow

NODES = 5
RATE = 4
"""So many nodes a minute are woken, and as many at once: a fifth one comes 15 seconds later."""
WHOLE_NODES = ("--gres=gpu:8", "--exclusive")


@pytest.fixture(scope="module")
def shared_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """One pool of five nodes."""
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    with fleet_without_capacity(path, NODES) as fleet:
        yield fleet


@pytest.fixture
def fleet(shared_fleet: Fleet) -> Fleet:
    """The pool with all nodes off and no capacity."""
    shared_fleet.set_capacity(0)
    shared_fleet.wait_until_off(*all_nodes())
    shared_fleet.box.wait_until(
        "no request to be left", lambda: shared_fleet.request_states() == {}, 30
    )
    return shared_fleet


def all_nodes() -> list[str]:
    return [f"flexvm-a3u-{index}" for index in range(NODES)]


def submit_heterogeneous(fleet: Fleet, more: str = "") -> int:
    """A job of two components, of one node and of two."""
    path = fleet.box.layout.jobs / "heterogeneous.sh"
    path.write_text(f"#!/bin/bash\nsrun --het-group=0,1 -l hostname\n{more}\n", encoding="utf-8")
    answer = fleet.slurm(
        "sbatch", "--parsable", "-N1", *WHOLE_NODES, ":", "-N2", *WHOLE_NODES, str(path)
    )
    return int(answer)


def nodes_of_components(fleet: Fleet, job_id: int) -> set[tuple[str, ...]]:
    shown = fleet.slurm("squeue", "-h", "-o", "%N", "-j", str(job_id)).split()
    return {tuple(fleet.slurm("scontrol", "show", "hostnames", names).split()) for names in shown}


def test_job_woken_in_pieces_is_asked_for_once_with_all_its_nodes(fleet: Fleet) -> None:
    fleet.configure(f"ResumeRate={RATE}")
    calls, inserts = len(fleet.resume_calls()), len(fleet.inserts())
    job_id = fleet.submit(NODES)
    fleet.box.wait_until("the first piece", lambda: len(fleet.resume_calls()) > calls, 30)
    fleet.wait_for_passes(2)
    assert fleet.request_states() == {}
    fleet.wait_for_requests(1)
    assert len(fleet.resume_calls()) - calls > 1
    (asked,) = fleet.requested_nodes()
    assert sorted(asked) == all_nodes()

    fleet.set_capacity(NODES)
    fleet.wait_for_job(job_id, "COMPLETED")
    assert len(fleet.inserts()) == inserts + 1
    fleet.configure("ResumeRate=0")


def test_components_of_a_heterogeneous_job_are_asked_for_apart_and_run_together(
    fleet: Fleet,
) -> None:
    job_id = submit_heterogeneous(fleet)
    fleet.wait_for_requests(2)
    assert set(fleet.requested_nodes()) == nodes_of_components(fleet, job_id)
    fleet.box.wait_until(
        "each component to be told its own",
        lambda: (
            "for 1 x" in fleet.slurm("scontrol", "show", "job", f"{job_id}+0")
            and "for 2 x" in fleet.slurm("scontrol", "show", "job", f"{job_id}+1")
        ),
        30,
    )
    fleet.set_capacity(NODES)
    fleet.box.wait_until(
        "both components to be done",
        lambda: fleet.job_states(job_id) == ["COMPLETED", "COMPLETED"],
        COME_SECONDS,
    )
    assert len(fleet.witness.job_output(job_id).split()) == 2 * 3


def test_cancelled_heterogeneous_job_and_array_leave_nothing(fleet: Fleet) -> None:
    components = submit_heterogeneous(fleet)
    tasks = fleet.submit(1, "--array=0-1")
    fleet.wait_for_requests(4)
    assert sorted(len(nodes) for nodes in fleet.requested_nodes()) == [1, 1, 1, 2]
    fleet.slurm("scancel", str(components), str(tasks))
    fleet.wait_until_off(*all_nodes())
    fleet.box.wait_until("no request to be left", lambda: fleet.request_states() == {}, 30)
    assert fleet.vm_states() == {}


@pytest.mark.parametrize("nodes", [1, 2], ids=["first component", "second component"])
def test_heterogeneous_job_whose_start_fails_starts_again_as_a_whole(
    fleet: Fleet, nodes: int
) -> None:
    job_id = submit_heterogeneous(fleet)
    fleet.wait_for_requests(2)
    (failing,) = (
        request.name
        for request in fleet.witness.project.requests()
        if len(request.instances) == nodes
    )
    before = fleet.active_requests()
    fleet.box.control.fail_resize_request(failing, "QUOTA_EXCEEDED", "GPUS in us-central1")
    fleet.box.wait_until(
        "both components to be queued again",
        lambda: fleet.job_states(job_id) == ["PENDING", "PENDING"],
        COME_SECONDS,
    )
    assert "QUOTA_EXCEEDED" in fleet.slurm("scontrol", "show", "job", str(job_id))
    fleet.box.wait_until(
        "both components to be asked for again",
        lambda: len(fleet.active_requests() - before) == 2,
        COME_SECONDS,
    )
    fleet.set_capacity(NODES)
    fleet.box.wait_until(
        "both components to be done",
        lambda: fleet.job_states(job_id) == ["COMPLETED", "COMPLETED"],
        COME_SECONDS,
    )


def test_jobs_that_share_a_node_have_one_request_for_it_and_both_run(fleet: Fleet) -> None:
    half = ("--gres=gpu:4", "--mem=100", "--cpus-per-task=1")
    first, second, _ = all_nodes()[:3]
    script = "#!/bin/bash\nsrun -l hostname\n"
    wide = fleet.witness.submit(script, "-N2", "-n2", "-w", f"{first},{second}", *half)
    narrow = fleet.witness.submit(script, "-N1", "-n1", "-w", first, *half)

    fleet.box.wait_until(
        "both jobs to have their nodes",
        lambda: fleet.job_state(wide) == fleet.job_state(narrow) == "CONFIGURING",
        COME_SECONDS,
    )
    fleet.wait_for_requests(1)
    fleet.wait_for_passes()
    assert fleet.requested_nodes() == [(first, second)]
    assert fleet.comment(narrow), "the job that only shares the node is told what it waits for"

    fleet.set_capacity(2)
    fleet.wait_for_job(wide, "COMPLETED")
    fleet.wait_for_job(narrow, "COMPLETED")
