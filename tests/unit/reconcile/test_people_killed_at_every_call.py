"""People who act while the controller works, and a controller that dies at every single call: what
a person took out of service stays so, and all else comes to the same end as undisturbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import JobState, NodeFlag
from slurm_hooks.slurm.versions import SlurmVersion
from tests.fakes.slurm import SLURM_24_11, SLURM_26_05
from tests.unit.reconcile.builders import CLUSTER, N0, N1
from tests.unit.reconcile.deaths import (
    STRIDE_OF_A_FIRST_LOOK,
    WAYS_TO_DIE,
    Story,
    assert_death_at_any_call_changes_nothing,
)
from tests.unit.reconcile.life import LONGER_THAN_EVERY_GRACE, Life, lives

pytestmark = pytest.mark.slow
"""A death at each call of many stories takes minutes: one of them is quick enough for all runs."""

FAN = "fan is loud"


def run_job(life: Life, *names: str) -> int:
    """A job that runs on fresh VMs."""
    job_id = start_job(life, *names)
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    return job_id


def start_job(life: Life, *names: str) -> int:
    """A job whose request waits."""
    job_id = life.slurm.submit(list(names))
    life.deliver_calls()
    life.rest()
    return job_id


def is_drained_by_a_person(life: Life, name: str) -> bool:
    node = life.slurm.nodes[name]
    return node.state.has(NodeFlag.DRAIN) and node.reason == FAN


def node_is_drained_under_its_job_and_given_back(life: Life) -> None:
    job_id = run_job(life, N0, N1)
    life.person_updates(N1, NodeUpdate.DRAIN, FAN)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    life.slurm.complete(job_id)
    life.slurm.suspend([N0])
    life.rest()
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.rest()
    assert is_drained_by_a_person(life, N1)
    assert life.vm_names() == [N1]
    life.person_updates(N1, NodeUpdate.RESUME, "")
    life.live()
    life.slurm.suspend([N1])
    life.rest()
    assert life.vm_names() == []


def vm_of_a_drained_node_goes_under_its_job(life: Life) -> None:
    job_id = run_job(life, N0)
    life.person_updates(N0, NodeUpdate.DRAIN, FAN)
    life.compute.state.vanish(N0)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    assert is_drained_by_a_person(life, N0)


def node_is_drained_while_its_request_waits(life: Life) -> None:
    job_id = start_job(life, N0, N1)
    life.person_updates(N1, NodeUpdate.DRAIN, FAN)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    assert not life.waiting()
    assert is_drained_by_a_person(life, N1)
    life.slurm.allocate(job_id, [N0])
    life.deliver_calls()
    life.rest()
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING


def idle_node_is_powered_down(life: Life) -> None:
    job_id = run_job(life, N0)
    life.slurm.complete(job_id)
    life.person_updates(N0, NodeUpdate.POWER_DOWN, "")
    life.rest()
    assert life.vm_names() == []


def node_is_powered_down_by_force_under_its_job(life: Life) -> None:
    job_id = run_job(life, N0)
    life.person_updates(N0, NodeUpdate.POWER_DOWN_FORCE, FAN)
    state = life.slurm.nodes[N0].state
    life.slurm.set_state(N0, state.base, *(state.flags - {NodeFlag.COMPLETING}), reason=FAN)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    assert life.vm_names() == []


def node_is_powered_up_and_down(life: Life) -> None:
    life.person_updates(N0, NodeUpdate.POWER_UP, "")
    life.rest()
    life.grant_all()
    life.rest()
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.rest()
    assert life.vm_names() == [N0]
    life.person_updates(N0, NodeUpdate.POWER_DOWN, "")
    life.rest()
    assert life.vm_names() == []


def node_without_vm_is_drained_and_given_back(life: Life) -> None:
    """RESUME of a node that is off leaves it where Slurm gives it to no job: we free it."""
    life.person_updates(N0, NodeUpdate.DRAIN, FAN)
    life.rest()
    assert is_drained_by_a_person(life, N0)
    life.person_updates(N0, NodeUpdate.RESUME, "")
    life.rest()
    assert not life.slurm.nodes[N0].state.has(NodeFlag.NOT_RESPONDING)
    run_job(life, N0)


def vm_is_deleted_under_its_job(life: Life) -> None:
    job_id = run_job(life, N0, N1)
    life.compute.state.set_status(N0, InstanceStatus.STOPPING)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    life.slurm.suspend([N1])
    life.rest()
    assert life.vm_names() == []


def job_is_cancelled_while_its_vms_boot(life: Life) -> None:
    job_id = start_job(life, N0, N1)
    life.grant_all()
    life.tick()
    life.slurm.cancel(job_id)
    life.rest()
    assert not any(node.state.has(NodeFlag.POWERING_UP) for node in life.slurm.nodes.values())
    life.slurm.suspend([N0, N1])
    life.rest()
    assert life.vm_names() == []


def job_is_cancelled_and_its_vms_come_all_the_same(life: Life) -> None:
    """The service creates the VMs although it has taken the cancellation."""
    job_id = start_job(life, N0, N1)
    (reference,) = life.waiting()
    life.slurm.cancel(job_id)
    life.one_pass()
    if life.waiting():
        life.grant_all()
    else:
        for name in (N0, N1):
            life.compute.state.add_instance(reference.group, name, InstanceStatus.STAGING)
            life.compute.state.change_target_size(reference.group, 1)
    life.rest()
    is_up = [n for n, v in life.slurm.nodes.items() if not v.state.has(NodeFlag.POWERED_DOWN)]
    life.slurm.suspend(is_up)
    life.rest()
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.rest()
    assert life.vm_names() == []


STORIES: tuple[Story, ...] = (
    node_is_drained_under_its_job_and_given_back,
    vm_of_a_drained_node_goes_under_its_job,
    node_is_drained_while_its_request_waits,
    idle_node_is_powered_down,
    node_is_powered_down_by_force_under_its_job,
    node_is_powered_up_and_down,
    node_without_vm_is_drained_and_given_back,
    vm_is_deleted_under_its_job,
    job_is_cancelled_while_its_vms_boot,
    job_is_cancelled_and_its_vms_come_all_the_same,
)

every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)


@every_story
def test_death_at_some_calls_leads_to_the_same_end(tmp_path: Path, story: Story) -> None:
    make = lives(tmp_path, CLUSTER, operations_take_time=True)
    stride = STRIDE_OF_A_FIRST_LOOK
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=True, stride=stride)


@pytest.mark.slow
@every_story
@pytest.mark.parametrize(("after_the_call", "operations_take_time"), WAYS_TO_DIE)
def test_death_at_any_call_leads_to_the_same_end(
    tmp_path: Path, story: Story, after_the_call: bool, operations_take_time: bool
) -> None:
    make = lives(tmp_path, CLUSTER, operations_take_time)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call)


@pytest.mark.slow
@every_story
@pytest.mark.thorough
@pytest.mark.parametrize("version", [SLURM_24_11, SLURM_26_05], ids=str)
def test_it_does_with_later_versions_of_slurm(
    tmp_path: Path, story: Story, version: SlurmVersion
) -> None:
    make = lives(tmp_path, CLUSTER, True, version)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=True)
