"""Condemned nodes repaired by a controller that dies at every single call: nodes come to the same
end as undisturbed, and the history has each repair once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.health.model import Verdict
from slurm_hooks.history.event import EventKind
from slurm_hooks.reconcile.repair_limits import REPAIRS
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.unit.reconcile.builders import CLUSTER, N0, N1, example_cluster
from tests.unit.reconcile.condemned import BOOT, LATER_BOOT, reason
from tests.unit.reconcile.deaths import (
    WAYS_TO_DIE,
    Story,
    assert_death_at_any_call_changes_nothing,
)
from tests.unit.reconcile.life import Life, lives

pytestmark = pytest.mark.slow
"""A death at each call of many stories takes minutes."""

FAN = "fan is loud"
LONGER_THAN_A_BOOT = timedelta(seconds=CLUSTER.policy.boot_timeout_seconds + 60)


def run_job(life: Life, *names: str) -> int:
    """A job that runs on fresh VMs."""
    job_id = life.slurm.submit(list(names))
    life.deliver_calls()
    life.rest()
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    return job_id


def condemn(life: Life, name: str, verdict: Verdict, boot: str = BOOT) -> str:
    """A health run drains the node for its present VM; the reason that it gives."""
    (vm,) = (vm for (_, of), vm in life.compute.state.instances.items() if of == name)
    text = reason(verdict, name, instance_id=vm.instance_id, boot=boot)
    life.slurm.nodes[name] = replace(
        life.slurm.nodes[name],
        state=replace(
            life.slurm.nodes[name].state,
            flags=life.slurm.nodes[name].state.flags | {NodeFlag.DRAIN},
        ),
        reason=text,
        reason_time_utc=life.now,
    )
    return text


def repairs_of(life: Life) -> Counter[EventKind]:
    events = life.history.recent(life.now - timedelta(days=7))
    return Counter(event.kind for event in events if event.kind in REPAIRS)


def is_drained(life: Life, name: str) -> bool:
    return life.slurm.nodes[name].state.has(NodeFlag.DRAIN)


def idle_node_is_replaced(life: Life) -> None:
    life.slurm.complete(run_job(life, N0))
    condemn(life, N0, Verdict.REPLACE)
    life.rest()
    assert life.vm_names() == []
    assert not is_drained(life, N0)
    assert repairs_of(life) == {EventKind.VM_DELETION: 1}
    run_job(life, N0)


def reboot_heals(life: Life) -> None:
    life.slurm.complete(run_job(life, N0))
    condemn(life, N0, Verdict.REBOOT)
    life.rest()
    assert not is_drained(life, N0)
    assert life.vm_names() == [N0]
    assert repairs_of(life) == {EventKind.VM_REBOOT: 1}


def reboot_does_not_heal(life: Life) -> None:
    life.slurm.complete(run_job(life, N0))
    life.reboots_heal = False
    condemn(life, N0, Verdict.REBOOT)
    life.rest()
    assert is_drained(life, N0)
    condemn(life, N0, Verdict.REBOOT, LATER_BOOT)
    life.rest()
    assert life.vm_names() == []
    assert repairs_of(life) == {EventKind.VM_REBOOT: 1, EventKind.VM_DELETION: 1}


def reboot_hangs(life: Life) -> None:
    life.slurm.complete(run_job(life, N0))
    life.reboots_hang = True
    condemn(life, N0, Verdict.REBOOT)
    life.rest()
    assert life.vm_names() == [N0]
    life.advance(LONGER_THAN_A_BOOT)
    life.rest()
    assert life.vm_names() == []
    assert repairs_of(life) == {EventKind.VM_REBOOT: 1, EventKind.VM_DELETION: 1}


def nobody_says_that_the_reboot_has_healed(life: Life) -> None:
    life.slurm.complete(run_job(life, N0))
    life.reboots_heal = False
    condemn(life, N0, Verdict.REBOOT)
    life.rest()
    assert life.vm_names() == [N0]
    assert is_drained(life, N0)
    life.advance(LONGER_THAN_A_BOOT)
    life.rest()
    assert life.vm_names() == []
    assert repairs_of(life) == {EventKind.VM_REBOOT: 1, EventKind.VM_DELETION: 1}


def node_is_replaced_when_its_job_is_over(life: Life) -> None:
    job_id = run_job(life, N0, N1)
    condemn(life, N1, Verdict.REPLACE)
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    life.slurm.complete(job_id)
    life.rest()
    assert life.vm_names() == [N0]


def person_takes_the_node_in_between(life: Life) -> None:
    life.slurm.complete(run_job(life, N0))
    condemn(life, N0, Verdict.REPLACE)
    life.person_updates(N0, NodeUpdate.DRAIN, FAN)
    life.rest()
    assert life.vm_names() == [N0]
    assert life.slurm.nodes[N0].reason == FAN
    assert repairs_of(life) == {}


def third_fault_of_a_node_waits_for_a_person(life: Life) -> None:
    for _ in range(2):
        life.slurm.complete(run_job(life, N0))
        condemn(life, N0, Verdict.REPLACE)
        life.rest()
        assert life.vm_names() == []
    life.slurm.complete(run_job(life, N0))
    condemn(life, N0, Verdict.REPLACE)
    life.rest()
    assert life.vm_names() == [N0]
    assert is_drained(life, N0)
    assert repairs_of(life) == {EventKind.VM_DELETION: 2}


def many_nodes_are_condemned_at_once(life: Life) -> None:
    names = [f"flexvm-a3u-{index}" for index in range(4)]
    life.slurm.complete(run_job(life, *names))
    for name in names[:3]:
        condemn(life, name, Verdict.REPLACE)
    life.rest()
    assert life.vm_names() == names
    assert [is_drained(life, name) for name in names] == [True, True, True, False]


SHORT: list[Story] = [
    reboot_heals,
    reboot_does_not_heal,
    reboot_hangs,
    nobody_says_that_the_reboot_has_healed,
    person_takes_the_node_in_between,
    many_nodes_are_condemned_at_once,
]
LONG: list[Story] = [
    idle_node_is_replaced,
    node_is_replaced_when_its_job_is_over,
]
STORIES = [
    *(pytest.param(story, id=story.__name__) for story in SHORT),
    *(pytest.param(story, id=story.__name__, marks=pytest.mark.slow) for story in LONG),
]


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize(("after_the_call", "operations_take_time"), WAYS_TO_DIE)
def test_condemned_nodes_come_to_the_same_end(
    tmp_path: Path, story: Story, after_the_call: bool, operations_take_time: bool
) -> None:
    make = lives(tmp_path, CLUSTER, operations_take_time)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after_the_call", "operations_take_time"),
    [
        pytest.param(*way.values, id=way.id, marks=pytest.mark.thorough if rank else ())
        for rank, way in enumerate(WAYS_TO_DIE)
    ],
)
def test_third_fault_comes_to_the_same_end(
    tmp_path: Path, after_the_call: bool, operations_take_time: bool
) -> None:
    make, story = (
        lives(tmp_path, CLUSTER, operations_take_time),
        third_fault_of_a_node_waits_for_a_person,
    )
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call)


def static_node_is_replaced_without_a_job(life: Life) -> None:
    life.rest()
    life.grant_all()
    life.rest()
    old = dict(life.compute.state.instances)
    condemn(life, N0, Verdict.REPLACE)
    life.rest()
    life.grant_all()
    life.rest()
    assert life.vm_names() == [N0]
    assert {vm.instance_id for vm in life.compute.state.instances.values()} != {
        vm.instance_id for vm in old.values()
    }
    assert not is_drained(life, N0)


@pytest.mark.slow
@pytest.mark.parametrize(("after_the_call", "operations_take_time"), WAYS_TO_DIE)
def test_static_node_comes_back_on_a_new_vm(
    tmp_path: Path, after_the_call: bool, operations_take_time: bool
) -> None:
    make = lives(tmp_path, example_cluster(min_node_count=1), operations_take_time)
    story = static_node_is_replaced_without_a_job
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call)
