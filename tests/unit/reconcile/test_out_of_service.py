"""What a person takes out of service while it is down, wakes or reboots stays so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.compute.model import InstanceStatus, RequestState
from slurm_hooks.health.model import Verdict
from slurm_hooks.reconcile.actions import CancelRequest, UpdateNode
from slurm_hooks.reconcile.comments import node_reason
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.reasons import set_aside_reason
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag
from slurm_hooks.slurm.versions import SlurmVersion
from tests.fakes.slurm import SLURM_22_05, SLURM_24_11, SLURM_26_05, FakeSlurm
from tests.unit.reconcile.builders import (
    N0,
    World,
    example_cluster,
    job,
    long_seen,
    node,
    off,
    request,
    stopping,
    vm,
)
from tests.unit.reconcile.condemned import GPUS_MISSING, reason
from tests.unit.reconcile.life import MOST_TICKS, Life

REASON = "fan is loud"
MISSING_BEFORE = long_seen(missing=[N0])
DOWN_BY_HAND = node(N0, base=BaseState.DOWN, reason=REASON)
WAKING = node(N0, NodeFlag.POWERING_UP, NodeFlag.NOT_RESPONDING, NodeFlag.DRAIN, reason=REASON)
REBOOTING = node(N0, NodeFlag.REBOOT_ISSUED, base=BaseState.DOWN, reason="kernel : reboot issued")


OFF = (NodeFlag.POWERED_DOWN,)


def changes(world: World) -> list[tuple[tuple[NodeUpdate, ...], str]]:
    """What is asked of Slurm for the node, each with the reason."""
    updates = [action for action in world.plan().actions if isinstance(action, UpdateNode)]
    return [(update.updates, node_reason(update)) for update in updates]


@pytest.mark.parametrize("status", [None, InstanceStatus.RUNNING])
@pytest.mark.parametrize(
    "down",
    [
        DOWN_BY_HAND,
        node(N0, NodeFlag.NOT_RESPONDING, base=BaseState.DOWN, reason=REASON),
        node(N0, NodeFlag.POWERING_UP, base=BaseState.DOWN, reason=REASON),
    ],
)
def test_a_node_set_down_by_hand_is_drained_too_for_the_same_reason(
    down: Node, status: InstanceStatus | None
) -> None:
    world = World([down], vms=[vm(N0, status)] if status else [])
    assert changes(world) == [((NodeUpdate.DRAIN,), REASON)]


@pytest.mark.parametrize(
    "words", ["Not responding to IPMI", "Kill task failed twice, alice looks", "Low CPUs (alice)"]
)
def test_a_person_who_begins_with_slurms_words_is_a_person(words: str) -> None:
    world = World([node(N0, base=BaseState.DOWN, reason=words)], vms=[vm(N0)])
    assert changes(world) == [((NodeUpdate.DRAIN,), words)]


@pytest.mark.parametrize(
    "not_by_hand",
    [
        node(N0, base=BaseState.DOWN, reason="Low TmpDisk (Node:1 < Config:2)"),
        node(N0, base=BaseState.DOWN, reason="Node unexpectedly rebooted"),
        node(N0, NodeFlag.INVALID_REG, base=BaseState.DOWN, reason="odd"),
        node(N0, base=BaseState.DOWN, reason=""),
        REBOOTING,
    ],
)
def test_a_node_that_nobody_set_down_is_not_drained(not_by_hand: Node) -> None:
    assert changes(World([not_by_hand], vms=[vm(N0)])) == []


def test_a_node_drained_while_it_wakes_loses_its_request_first() -> None:
    world = World([WAKING], requests=[request("r", N0)], memory=MISSING_BEFORE)
    assert [type(action) for action in world.plan().actions] == [CancelRequest]


@pytest.mark.parametrize("status", [InstanceStatus.STAGING, InstanceStatus.RUNNING])
def test_a_node_drained_while_its_vm_boots_is_left_to_register(status: InstanceStatus) -> None:
    assert World([WAKING], vms=[vm(N0, status)], memory=MISSING_BEFORE).plan().actions == ()


@pytest.mark.parametrize("status", [None, InstanceStatus.TERMINATED])
def test_a_node_drained_while_it_wakes_in_vain_is_set_aside_at_the_second_sighting(
    status: InstanceStatus | None,
) -> None:
    world = World([WAKING], vms=[vm(N0, status)] if status else [])
    assert changes(world) == []
    expected = [((NodeUpdate.POWER_DOWN_FORCE,), set_aside_reason(REASON))]
    assert changes(replace(world, memory=MISSING_BEFORE)) == expected


def test_a_waking_node_drained_just_before_its_request_failed_keeps_the_persons_reason() -> None:
    allocated = replace(WAKING, state=replace(WAKING.state, base=BaseState.ALLOCATED))
    failed = request("r", N0, state=RequestState.FAILED, job_id=7, error="QUOTA")
    world = World([allocated], [job(7, N0)], requests=[failed], memory=MISSING_BEFORE)
    assert changes(world) == []


@pytest.mark.parametrize("going", [off(N0), stopping(N0)])
def test_a_node_set_aside_is_drained_again_and_never_powered_up(going: Node) -> None:
    aside = replace(going, reason=set_aside_reason(REASON))
    world = World([aside], cluster=example_cluster(min_node_count=4))
    assert changes(world) == [((NodeUpdate.DRAIN,), REASON)]
    assert world.plan().steps[N0] is Step.LEAVE


@pytest.mark.parametrize("update", [NodeUpdate.DRAIN, NodeUpdate.DOWN])
@pytest.mark.parametrize("static", [0, 1])
def test_a_static_or_dynamic_node_taken_out_while_it_wakes_ends_off_and_drained(
    tmp_path: Path, update: NodeUpdate, static: int
) -> None:
    life = Life(tmp_path, example_cluster(min_node_count=static), FakeSlurm())
    life.slurm.update_nodes([N0], NodeUpdate.POWER_UP)
    life.slurm.pass_power_thread()
    life.run()
    life.person_updates(N0, update, REASON)
    life.compute.state.now_utc = life.now
    life.rest()
    state = life.slurm.nodes[N0].state
    assert state.has(NodeFlag.DRAIN)
    assert life.slurm.nodes[N0].reason == REASON
    assert life.slurm.nodes[N0].state.base is BaseState.IDLE
    assert not state.has(NodeFlag.POWERING_UP, NodeFlag.POWER_DOWN)


@pytest.mark.parametrize("version", [SLURM_22_05, SLURM_24_11, SLURM_26_05])
@pytest.mark.parametrize("is_drained_again", [False, True])
def test_a_static_node_taken_out_while_it_wakes_comes_back_when_a_person_gives_it_back(
    tmp_path: Path, version: SlurmVersion, is_drained_again: bool
) -> None:
    life = Life(tmp_path, example_cluster(min_node_count=1), FakeSlurm(version=version))
    life.tick()
    life.tick()
    life.person_updates(N0, NodeUpdate.DOWN, REASON)
    for _ in range(MOST_TICKS):
        if life.slurm.nodes[N0].reason == set_aside_reason(REASON):
            break
        life.tick()
    assert life.slurm.nodes[N0].reason == set_aside_reason(REASON)
    if is_drained_again:
        life.rest()
        assert life.slurm.nodes[N0].state.has(NodeFlag.DRAIN)
    life.person_updates(N0, NodeUpdate.DOWN, REASON)
    life.person_updates(N0, NodeUpdate.IDLE, REASON)
    life.rest()
    life.grant_all()
    life.rest()
    state = life.slurm.nodes[N0].state
    assert not state.has(NodeFlag.DRAIN, NodeFlag.POWERED_DOWN, NodeFlag.POWERING_UP)
    assert life.vm_names() == [N0]


@pytest.mark.parametrize(
    "timed_out",
    [
        node(N0, *OFF, base=BaseState.DOWN, reason=f"{REASON} : ResumeTimeout reached"),
        node(N0, *OFF, NodeFlag.FAIL, base=BaseState.DOWN, reason="ResumeTimeout reached"),
    ],
)
def test_what_a_person_took_out_is_not_brought_back_after_resume_timeout(timed_out: Node) -> None:
    assert changes(World([timed_out])) == []


def test_a_node_whose_vm_vanished_in_its_reboot_is_recycled_at_the_second_sighting() -> None:
    assert changes(World([REBOOTING])) == []
    ((updates, _),) = changes(World([REBOOTING], memory=MISSING_BEFORE))
    assert updates == (NodeUpdate.DOWN, NodeUpdate.POWER_DOWN)


@pytest.mark.parametrize("status", [InstanceStatus.RUNNING, InstanceStatus.STOPPING])
def test_a_reboot_is_left_alone_while_the_vm_lives(status: InstanceStatus) -> None:
    assert World([REBOOTING], vms=[vm(N0, status)], memory=MISSING_BEFORE).plan().actions == ()


def test_a_drain_that_a_reboot_ends_itself_does_not_keep_a_node_whose_vm_vanished() -> None:
    drained = replace(
        REBOOTING, state=replace(REBOOTING.state, flags=REBOOTING.state.flags | {NodeFlag.DRAIN})
    )
    assert changes(World([drained], memory=MISSING_BEFORE)) == []
    asap = replace(drained, resumes_after_reboot=True)
    ours = replace(drained, reason=f"{reason(Verdict.REBOOT)} : reboot issued")
    slurms = replace(drained, reason=f"{GPUS_MISSING} : reboot issued")
    for one in (asap, ours, slurms):
        ((updates, _),) = changes(World([one], memory=MISSING_BEFORE))
        assert updates == (NodeUpdate.DOWN, NodeUpdate.POWER_DOWN)


@pytest.mark.parametrize(("count", "recycled"), [(10, 10), (11, 0)])
def test_many_rebooting_nodes_without_vms_are_more_likely_a_short_list(
    count: int, recycled: int
) -> None:
    names = [f"flexvm-a3u-{index}" for index in range(count)]
    world = World(
        [replace(REBOOTING, name=name) for name in names],
        memory=long_seen(missing=names),
        cluster=example_cluster(max_node_count=count),
    )
    assert len(changes(world)) == recycled


def test_a_node_that_did_not_come_back_of_its_reboot_is_replaced() -> None:
    lost = node(N0, base=BaseState.DOWN, reason="kernel : reboot timed out")
    ((updates, _),) = changes(World([lost], vms=[vm(N0)]))
    assert updates == (NodeUpdate.POWER_DOWN,)
