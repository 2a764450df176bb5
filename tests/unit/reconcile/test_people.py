"""What a person has decided about a node stays, and no job is held by a node that died."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.reconcile.actions import (
    CancelRequest,
    DeleteInstance,
    KeepConsole,
    UpdateNode,
)
from slurm_hooks.reconcile.comments import node_reason
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, JobState, Node, NodeFlag, Partition
from tests.unit.reconcile.builders import (
    N0,
    World,
    example_cluster,
    job,
    long_seen,
    node,
    off,
    request,
    vm,
)
from tests.unit.reconcile.scenario import Scenario

MISSING_BEFORE = long_seen(missing=[N0])
OUT_OF_SERVICE = [
    node(N0, NodeFlag.DRAIN, reason="fan is loud"),
    node(N0, NodeFlag.FAIL, reason="fan is loud"),
    node(N0, NodeFlag.DRAIN, base=BaseState.DOWN, reason="fan is loud"),
    node(N0, NodeFlag.DRAIN, NodeFlag.NOT_RESPONDING, base=BaseState.DOWN, reason=""),
]


@pytest.mark.parametrize("out", OUT_OF_SERVICE)
@pytest.mark.parametrize("status", [None, *InstanceStatus])
def test_a_node_out_of_service_is_left_alone_whatever_its_vm_does(
    out: Node, status: InstanceStatus | None
) -> None:
    world = World([out], vms=[vm(N0, status)] if status else [], memory=MISSING_BEFORE)
    assert world.plan().actions == ()


def test_a_drained_node_whose_vm_vanished_gives_its_job_back_and_stays_drained() -> None:
    draining = node(N0, NodeFlag.DRAIN, base=BaseState.ALLOCATED, reason="fan is loud")
    world = World([draining], [job(7, N0, state=JobState.RUNNING)], memory=MISSING_BEFORE)
    (update,) = world.actions(UpdateNode)
    assert isinstance(update, UpdateNode)
    assert update.updates == (NodeUpdate.DOWN,)
    assert node_reason(update) == "fan is loud"


def test_a_drained_node_whose_vm_lives_keeps_its_job() -> None:
    draining = node(N0, NodeFlag.DRAIN, base=BaseState.ALLOCATED, reason="fan is loud")
    world = World([draining], [job(7, N0, state=JobState.RUNNING)], vms=[vm(N0)])
    assert world.plan().actions == ()


def test_a_request_for_a_node_that_was_drained_while_it_waited_is_given_up() -> None:
    waiting = node(N0, NodeFlag.POWERING_UP, NodeFlag.DRAIN, reason="fan is loud")
    world = World([waiting], requests=[request("job-7-0-x-0", N0, job_id=7)])
    assert [type(action) for action in world.plan().actions] == [CancelRequest]


def test_a_node_whose_slurmd_died_is_powered_down_and_its_console_kept() -> None:
    silent = node(N0, NodeFlag.NOT_RESPONDING, base=BaseState.DOWN, reason="Not responding")
    world = World([silent], vms=[vm(N0)])
    (update,) = world.actions(UpdateNode)
    assert isinstance(update, UpdateNode)
    assert update.updates == (NodeUpdate.POWER_DOWN,)
    assert len(world.actions(KeepConsole)) == 1
    assert world.actions(DeleteInstance) == []


@pytest.mark.parametrize("before", ["fan is loud", "slurm-hooks: out of order"])
def test_a_reason_from_before_does_not_make_silence_a_persons_order(before: str) -> None:
    """From 23.02 slurmctld adds its words to the reason that a node in service has."""
    silent = node(N0, base=BaseState.DOWN, reason=f"{before} : Not responding")
    (update,) = World([silent], vms=[vm(N0)]).actions(UpdateNode)
    assert isinstance(update, UpdateNode)
    assert update.updates == (NodeUpdate.POWER_DOWN,)


def test_a_persons_drain_stays_when_slurmd_falls_silent() -> None:
    silent = node(N0, NodeFlag.DRAIN, base=BaseState.DOWN, reason="fan is loud : Not responding")
    assert World([silent], vms=[vm(N0)]).plan().actions == ()


@pytest.mark.parametrize(("count", "recycled"), [(10, 10), (11, 0)])
def test_many_silent_nodes_at_once_are_more_likely_an_ill_network(
    count: int, recycled: int
) -> None:
    silent = node(N0, NodeFlag.NOT_RESPONDING, base=BaseState.DOWN, reason="Not responding")
    names = [f"flexvm-a3u-{index}" for index in range(count)]
    world = World(
        [replace(silent, name=name) for name in names],
        vms=[vm(name) for name in names],
        cluster=example_cluster(max_node_count=count),
    )
    assert len(world.actions(UpdateNode)) == recycled
    assert len(world.actions(KeepConsole)) == recycled


def test_a_silent_node_that_slurm_has_not_given_up_is_left_alone() -> None:
    silent = node(N0, NodeFlag.NOT_RESPONDING, base=BaseState.ALLOCATED)
    assert World([silent], vms=[vm(N0)]).plan().actions == ()


@pytest.mark.parametrize(
    "reason",
    [
        "Kill task failed",
        "Prolog/Epilog failure",
        "Job env setup error",
        "Could not unpack gres data",
        "CoreSpec differ",
    ],
)
def test_a_node_that_slurm_drained_itself_is_recycled_once_its_vm_is_gone(reason: str) -> None:
    failed = node(N0, NodeFlag.DRAIN, reason=reason)
    (update,) = World([failed], memory=MISSING_BEFORE).actions(UpdateNode)
    assert isinstance(update, UpdateNode)
    assert update.updates == (NodeUpdate.DOWN, NodeUpdate.POWER_DOWN)
    assert World([failed], vms=[vm(N0)]).plan().actions == ()


def test_a_drain_outlives_the_vm_and_the_job_runs_again_elsewhere(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path)
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    scenario.slurm.update_nodes([N0], NodeUpdate.DRAIN, "fan is loud")
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    scenario.compute.state.instances.clear()
    scenario.settle_with_vms()
    assert scenario.slurm.jobs[job_id].state is JobState.PENDING
    assert scenario.slurm.nodes[N0].reason == "fan is loud"
    assert scenario.slurm.nodes[N0].state.has(NodeFlag.DRAIN)
    assert scenario.vm_names() == []


@pytest.mark.parametrize(
    ("states", "powered_up"),
    [
        (("UP",), [N0]),
        (("DOWN",), []),
        (("INACTIVE", "DRAIN"), []),
        (("DOWN", "UP"), [N0]),
    ],
)
def test_a_static_node_is_powered_up_where_one_of_its_partitions_takes_jobs(
    states: tuple[str, ...], powered_up: list[str]
) -> None:
    partitions = [Partition(f"p{n}", state=state) for n, state in enumerate(states)]
    sleeping = replace(off(N0), partitions=tuple(partition.name for partition in partitions))
    world = World([sleeping], cluster=example_cluster(min_node_count=1), partitions=partitions)
    updates = [action for action in world.plan().actions if isinstance(action, UpdateNode)]
    assert [update.node for update in updates] == powered_up
