"""The end of life of nodes over whole passes, restarts and failures included."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.slurm.client import SlurmUnavailable
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.unit.reconcile.builders import N0, N1, example_cluster
from tests.unit.reconcile.scenario import Scenario

LIFE = timedelta(days=7)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path)


def run_job(scenario: Scenario, *nodes: str, limit_seconds: int | None = None) -> int:
    """A job that runs on the nodes, on VMs that have just come."""
    job_id = scenario.slurm.submit(list(nodes), "a3u", time_limit_seconds=limit_seconds)
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    return job_id


def signals(scenario: Scenario) -> list[str]:
    return [call.text for call in scenario.slurm.calls if call.method == "signal_job"]


def pass_time(scenario: Scenario, by: timedelta) -> None:
    scenario.now += by
    scenario.slurm.now_utc = scenario.compute.state.now_utc = scenario.now


def test_all_nodes_of_a_job_share_one_reservation_until_their_vms_are_gone(
    scenario: Scenario,
) -> None:
    run_job(scenario, N0, N1)
    (made,) = scenario.slurm.reservations.values()
    assert set(made.nodes) == {N0, N1}
    assert made.start_time_utc == scenario.compute.state.instance(N0).termination_time_utc

    pass_time(scenario, LIFE + MINUTE)
    for name in (N0, N1):
        scenario.compute.state.vanish(name)
    scenario.settle()
    assert scenario.slurm.reservations == {}


def test_expired_node_gives_its_job_back_in_the_first_pass(scenario: Scenario) -> None:
    job_id = run_job(scenario, N0)
    pass_time(scenario, LIFE + MINUTE)
    scenario.compute.state.vanish(N0)
    scenario.restart()
    scenario.run()
    job = scenario.slurm.jobs[job_id]
    assert (job.state, job.restarts) == (JobState.PENDING, 1)
    scenario.slurm.pass_power_thread()
    scenario.slurm.slept([N0])
    scenario.settle()
    assert scenario.slurm.nodes[N0].state.has(NodeFlag.POWERED_DOWN)
    assert scenario.slurm.reservations == {}
    assert scenario.slurm.jobs[job_id].admin_comment == ""


def test_expired_static_node_is_asked_for_again(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, example_cluster(min_node_count=1))
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    old_vm = scenario.compute.state.instance(N0).instance_id
    pass_time(scenario, LIFE + MINUTE)
    scenario.compute.state.vanish(N0)
    scenario.run()
    scenario.slurm.pass_power_thread()
    scenario.slurm.slept([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    vm = scenario.compute.state.instance(N0)
    assert (vm.status, vm.instance_id == old_vm) == (InstanceStatus.RUNNING, False)
    (made,) = scenario.slurm.reservations.values()
    assert made.start_time_utc == vm.termination_time_utc


def test_job_is_signalled_once_over_passes_and_restarts(scenario: Scenario) -> None:
    job_id = run_job(scenario, N0)
    assert "before the job's time limit" in scenario.slurm.jobs[job_id].admin_comment
    assert signals(scenario) == []
    pass_time(scenario, LIFE - MINUTE)
    for _ in range(3):
        scenario.run()
        scenario.restart()
    assert signals(scenario) == ["URG"]
    assert "URG was sent" in scenario.slurm.jobs[job_id].admin_comment


def test_signal_whose_comment_could_not_be_written_is_not_lost(scenario: Scenario) -> None:
    job_id = run_job(scenario, N0)
    pass_time(scenario, LIFE - MINUTE)
    scenario.slurm.fail_at("signal_job", SlurmUnavailable("down"))
    scenario.run()
    assert "URG was sent" not in scenario.slurm.jobs[job_id].admin_comment
    scenario.run()
    assert signals(scenario) == ["URG", "URG"]
    assert "URG was sent" in scenario.slurm.jobs[job_id].admin_comment


def test_job_whose_comment_is_refused_for_long_is_signalled_once(scenario: Scenario) -> None:
    job_id = run_job(scenario, N0)
    pass_time(scenario, LIFE - MINUTE)
    for _ in range(3):
        scenario.slurm.fail_at("set_admin_comment", SlurmUnavailable("down"))
        scenario.run()
    assert "URG was sent" not in scenario.slurm.jobs[job_id].admin_comment
    scenario.run()
    assert "URG was sent" in scenario.slurm.jobs[job_id].admin_comment
    assert signals(scenario) == ["URG"]


def test_reservation_that_could_not_be_made_is_made_at_the_next_pass(scenario: Scenario) -> None:
    scenario.slurm.fail_at("create_reservation", SlurmUnavailable("down"))
    run_job(scenario, N0)
    assert len(scenario.slurm.reservations) == 1
    made = [call for call in scenario.slurm.calls if call.method == "create_reservation"]
    assert len(made) == 2


def test_clock_that_is_a_minute_ahead_takes_no_node_down(scenario: Scenario) -> None:
    job_id = run_job(scenario, N0)
    pass_time(scenario, LIFE + MINUTE)
    for _ in range(3):
        scenario.run()
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    assert scenario.vm_names() == [N0]
