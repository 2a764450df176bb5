"""Big jobs and many jobs over whole passes: all together, in turn, and given up together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.reconcile.places import MOST_ACTIVE_REQUESTS
from slurm_hooks.reconcile.rooms import MOST_VMS_A_GROUP
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.unit.reconcile.builders import example_cluster
from tests.unit.reconcile.scenario import Scenario

FEW_PASSES = 12


def cluster_of(tmp_path: Path, nodes: int) -> Scenario:
    return Scenario(tmp_path, example_cluster(max_node_count=nodes))


def names(count: int, first: int = 0) -> list[str]:
    return [f"flexvm-a3u-{index}" for index in range(first, first + count)]


def run_until(scenario: Scenario, holds: Callable[[], bool]) -> int:
    """Passes, with slurmctld working in between, until something holds; how many."""
    for count in range(FEW_PASSES):
        if holds():
            return count
        scenario.run()
        scenario.slurm.pass_power_thread()
    raise AssertionError(f"does not hold after {FEW_PASSES} passes")


def sizes(scenario: Scenario) -> list[int]:
    return sorted(len(r.instances) for r in scenario.requests() if r.state.is_active)


def group_sizes(scenario: Scenario) -> list[int]:
    return sorted(group.target_size for group in scenario.compute.state.groups.values())


def state(scenario: Scenario, job_id: int) -> JobState:
    return scenario.slurm.jobs[job_id].state


@pytest.fixture
def big_job(tmp_path: Path) -> tuple[Scenario, int]:
    """A job of 1,500 nodes whose two requests wait."""
    scenario = cluster_of(tmp_path, 1600)
    job_id = scenario.slurm.submit(names(1500))
    run_until(scenario, lambda: sizes(scenario) == [500, 1000])
    return scenario, job_id


def test_job_of_1500_nodes_gets_two_requests_at_once_in_two_groups(
    big_job: tuple[Scenario, int],
) -> None:
    scenario, job_id = big_job
    assert group_sizes(scenario) == [500, 1000]
    assert len(scenario.compute.state.templates) == 1
    inserts = scenario.compute.calls_of("insert_resize_request")
    assert len(inserts) == 2

    scenario.grant_all()
    scenario.settle_with_vms()
    assert state(scenario, job_id) is JobState.RUNNING
    scenario.slurm.complete(job_id)
    scenario.slurm.suspend(names(1500))
    scenario.settle_with_vms()
    scenario.settle_after_the_grace()
    assert (scenario.vm_names(), scenario.requests()) == ([], [])


def test_both_requests_of_a_job_are_inserted_in_one_pass(tmp_path: Path) -> None:
    scenario = cluster_of(tmp_path, 1600)
    scenario.slurm.submit(names(1500))
    counts = []
    for _ in range(FEW_PASSES):
        scenario.run()
        counts.append(len(scenario.compute.calls_of("insert_resize_request")))
    assert set(counts) == {0, 2}


def test_restart_in_between_makes_no_third_request(big_job: tuple[Scenario, int]) -> None:
    scenario, _ = big_job
    scenario.restart()
    scenario.settle()
    assert sizes(scenario) == [500, 1000]
    assert len(scenario.compute.calls_of("insert_resize_request")) == 2


@pytest.mark.parametrize("position", [0, 1])
def test_one_failed_request_gives_up_the_other_in_two_passes(
    big_job: tuple[Scenario, int], position: int
) -> None:
    scenario, job_id = big_job
    failed = scenario.waiting()[position]
    scenario.compute.state.fail(failed, "QUOTA_EXCEEDED", "GPUS in us-central1")
    assert run_until(scenario, lambda: scenario.waiting() == []) == 2
    assert state(scenario, job_id) is JobState.PENDING
    assert "QUOTA_EXCEEDED" in scenario.slurm.jobs[job_id].admin_comment
    scenario.settle()
    scenario.settle_after_the_grace()
    assert scenario.requests() == []
    assert all(
        node.state.has(NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN)
        for node in scenario.slurm.nodes.values()
    )


def test_one_refused_request_gives_up_the_other(tmp_path: Path) -> None:
    scenario = cluster_of(tmp_path, 1600)
    job_id = scenario.slurm.submit(names(1500))
    run_until(scenario, lambda: len(scenario.compute.state.groups) == 2)
    refusal = ComputeError(ErrorKind.PERMISSION, "forbidden", "grant compute.x to y", 403)
    scenario.compute.fail_next(refusal, "insert_resize_request")
    run_until(scenario, lambda: state(scenario, job_id) is JobState.PENDING)
    run_until(scenario, lambda: scenario.waiting() == [])
    assert "grant compute.x to y" in scenario.slurm.jobs[job_id].admin_comment
    scenario.settle()
    scenario.settle_after_the_grace()
    assert scenario.requests() == []


def test_vms_are_deleted_from_the_group_that_they_are_in(big_job: tuple[Scenario, int]) -> None:
    scenario, job_id = big_job
    scenario.grant_all()
    scenario.settle_with_vms()
    scenario.slurm.complete(job_id)
    scenario.slurm.suspend(names(1500))
    scenario.run()
    assert group_sizes(scenario) == [0, 0]


def test_groups_are_filled_before_others_are_created(tmp_path: Path) -> None:
    scenario = cluster_of(tmp_path, 2600)
    for number in range(26):
        scenario.slurm.submit(names(100, number * 100))
    run_until(scenario, lambda: sizes(scenario) == [100] * 26)
    assert group_sizes(scenario) == [600, MOST_VMS_A_GROUP, MOST_VMS_A_GROUP]


def test_120_jobs_get_places_in_their_order_as_they_fall_free(tmp_path: Path) -> None:
    scenario = cluster_of(tmp_path, 130)
    jobs = [scenario.slurm.submit([name]) for name in names(120)]
    for priority, job_id in enumerate(jobs):
        scenario.slurm.jobs[job_id] = replace(scenario.slurm.jobs[job_id], priority=priority)
    run_until(scenario, lambda: len(scenario.waiting()) == MOST_ACTIVE_REQUESTS)
    for _ in range(3):
        scenario.run()
    assert len(scenario.compute.calls_of("insert_resize_request")) == MOST_ACTIVE_REQUESTS
    asked = {name for r in scenario.requests() for name in r.instances}
    assert asked == set(names(MOST_ACTIVE_REQUESTS, 20))
    assert "its turn" in scenario.slurm.jobs[jobs[19]].admin_comment
    assert NodeFlag.POWERING_UP in scenario.slurm.nodes[names(1)[0]].state.flags

    for reference in scenario.waiting()[:5]:
        scenario.compute.state.grant(reference)
    run_until(scenario, lambda: len(scenario.waiting()) == MOST_ACTIVE_REQUESTS)
    asked |= {name for r in scenario.requests() for name in r.instances}
    assert asked == set(names(MOST_ACTIVE_REQUESTS + 5, 15))

    for _ in range(4):
        scenario.grant_all()
        scenario.compute.state.run_all()
        scenario.register_running()
        for _ in range(3):
            scenario.run()
    assert {state(scenario, job_id) for job_id in jobs} == {JobState.RUNNING}


def test_places_of_others_in_the_project_are_waited_for(tmp_path: Path) -> None:
    scenario = cluster_of(tmp_path, 4)
    first, second = (scenario.slurm.submit([name]) for name in names(2))
    run_until(scenario, lambda: len(scenario.compute.state.groups) == 1)
    full = ComputeError(ErrorKind.QUOTA, "quotaExceeded", "ACTIVE_RESIZE_REQUESTS", 403)
    scenario.compute.fail_next(full, "insert_resize_request")
    for _ in range(3):
        scenario.run()
    assert len(scenario.compute.calls_of("insert_resize_request")) == 1
    for job_id in (first, second):
        assert state(scenario, job_id) is JobState.CONFIGURING
        assert "its turn" in scenario.slurm.jobs[job_id].admin_comment
        assert "quotaExceeded" in scenario.slurm.jobs[job_id].admin_comment
    scenario.now += timedelta(minutes=1)
    run_until(scenario, lambda: len(scenario.waiting()) == 2)


def test_job_that_reaches_resume_program_in_pieces_gets_one_request(tmp_path: Path) -> None:
    scenario = cluster_of(tmp_path, 4)
    job_id = scenario.slurm.queue()
    scenario.slurm.allocate(job_id, names(3), wake=False)
    for name in names(3):
        assert scenario.compute.calls_of("insert_resize_request") == []
        scenario.slurm.wake([name])
        for _ in range(4):
            scenario.run()
    assert sizes(scenario) == [3]
