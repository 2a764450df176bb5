"""The controller's clock runs a minute ahead of Slurm's and Compute Engine's, or behind: graces and
ends of life shift by no more than that, and nothing is lost for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.slurm.model import JobState
from tests.unit.reconcile.builders import CLUSTER, N0, N1
from tests.unit.reconcile.life import TICK, Life

MINUTE = timedelta(minutes=1)
GRACE = timedelta(seconds=CLUSTER.policy.reap_grace_seconds)
NOTICE = timedelta(seconds=CLUSTER.policy.end_of_life_notice_seconds)
TWO_PASSES = 2 * TICK


@pytest.fixture(params=[-MINUTE, MINUTE], ids=["behind", "ahead"])
def life(request: pytest.FixtureRequest, tmp_path: Path) -> Life:
    return Life(tmp_path, CLUSTER, skew=request.param)


def run_job(life: Life, *names: str, time_limit_seconds: int | None = 3600) -> int:
    job_id = life.slurm.submit(list(names), time_limit_seconds=time_limit_seconds)
    life.deliver_calls()
    life.rest()
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    return job_id


def signals(life: Life) -> list[str]:
    return [call.text for call in life.slurm.calls if call.method == "signal_job"]


def end_of(life: Life, name: str) -> timedelta:
    """How long the VM lives on."""
    end = life.compute.state.instance(name).termination_time_utc
    assert end is not None
    return end - life.now


def test_vm_without_a_node_goes_within_a_minute_of_its_grace(life: Life) -> None:
    run_job(life, N0)
    group = life.compute.state.instance(N0).group
    assert group is not None
    del life.slurm.nodes[N1]
    life.compute.state.add_instance(group, N1, InstanceStatus.RUNNING)
    made = life.now
    while N1 in life.vm_names():
        life.tick()
        assert life.now - made <= GRACE + MINUTE + 2 * TWO_PASSES
    assert life.now - made >= GRACE - MINUTE


def test_vm_of_a_node_that_is_off_goes_within_a_minute_of_its_grace(life: Life) -> None:
    run_job(life, N0)
    group = life.compute.state.instance(N0).group
    assert group is not None
    life.compute.state.add_instance(group, N1, InstanceStatus.RUNNING)
    made = life.now
    while N1 in life.vm_names():
        life.tick()
        assert life.now - made <= GRACE + MINUTE + 2 * TWO_PASSES
    assert life.now - made >= GRACE - MINUTE


def test_vm_made_in_the_controllers_future_is_left_alone(life: Life) -> None:
    """Whatever its age seems to be, its node wants it."""
    job_id = run_job(life, N0)
    vm = life.compute.state.instance(N0)
    later = replace(vm, creation_time_utc=life.now + 2 * MINUTE)
    life.compute.state.instances[vm.zone, N0] = later
    for _ in range(20):
        life.tick()
    assert life.vm_names() == [N0]
    assert life.slurm.jobs[job_id].state is JobState.RUNNING


def test_slurm_is_told_the_end_by_compute_engines_clock(life: Life) -> None:
    run_job(life, N0)
    (reservation,) = life.slurm.reservations.values()
    assert reservation.start_time_utc == life.compute.state.instance(N0).termination_time_utc


def test_job_is_signalled_once_within_a_minute_of_the_notice(life: Life) -> None:
    run_job(life, N0, time_limit_seconds=None)
    life.advance(end_of(life, N0) - NOTICE - 2 * MINUTE)
    while not signals(life):
        life.tick()
    assert NOTICE - MINUTE - TWO_PASSES <= end_of(life, N0) <= NOTICE + MINUTE
    for _ in range(10):
        life.tick()
    assert signals(life) == ["URG"]


def test_job_runs_on_to_the_very_end_of_its_vm(life: Life) -> None:
    """The end that the controller believes in has come, or is to come yet: the VM decides."""
    job_id = run_job(life, N0, time_limit_seconds=None)
    life.advance(end_of(life, N0) - 2 * MINUTE)
    while end_of(life, N0) > timedelta(0):
        life.tick()
        assert life.slurm.jobs[job_id].state is JobState.RUNNING
        assert len(life.slurm.reservations) == 1


def test_job_comes_back_within_two_passes_of_the_end(life: Life) -> None:
    job_id = run_job(life, N0, time_limit_seconds=None)
    life.advance(end_of(life, N0))
    life.compute.state.vanish(N0)
    life.tick()
    life.tick()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    life.rest()
    assert life.slurm.reservations == {}


def test_vm_that_goes_slowly_at_its_end_is_no_reason_to_forget_its_reservation(
    life: Life,
) -> None:
    job_id = run_job(life, N0, time_limit_seconds=None)
    life.advance(end_of(life, N0))
    life.compute.state.set_status(N0, InstanceStatus.STOPPING)
    life.one_pass()
    assert len(life.slurm.reservations) == 1
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    assert life.slurm.reservations == {}
    assert life.vm_names() == []
