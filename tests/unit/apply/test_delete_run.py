"""A deletion ends with nothing of ours left, whatever fails, and others keep theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.apply.inventory import inventory_lines, next_deletions, read_inventory
from slurm_hooks.apply.retired_nodes import DELETED_REASON
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import (
    GroupReference,
    Scope,
    ScopeKind,
)
from slurm_hooks.compute.ownership import Mark, encode
from slurm_hooks.reconcile import deleting
from slurm_hooks.reconcile.actions import CancelRequest, DeleteGroup
from slurm_hooks.reconcile.locks import Locked, sole_runner
from slurm_hooks.reconcile.specifications import (
    group_of,
)
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.unit.apply.deleted_world import CLUSTER, N0, N1, World

ONLY_OTHERS = {
    "groups": {"other"},
    "templates": {"other"},
    "policies": {"other"},
    "VMs": {"other-a3u-0"},
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_everything_of_ours_goes_and_all_else_stays(world: World) -> None:
    assert world.removal().carry_out() == ()
    assert world.names() == ONLY_OTHERS
    assert set(world.slurm.reservations) == {"maint"}
    for name in (N0, N1):
        node = world.slurm.nodes[name]
        assert node.state.has(NodeFlag.POWERED_DOWN)
        assert node.state.has(NodeFlag.DRAIN)
        assert node.reason == DELETED_REASON
    assert not world.slurm.nodes["other-a3u-0"].state.has(NodeFlag.DRAIN)
    assert deleting.is_marked(world.spool), "or static nodes would come back"


def test_second_deletion_finds_nothing_and_changes_nothing(world: World) -> None:
    world.removal().carry_out()
    before = len([call for call in world.compute.calls if call.request_id])
    assert world.removal().carry_out() == ()
    assert len([call for call in world.compute.calls if call.request_id]) == before


@pytest.mark.parametrize(
    "method",
    [
        "cancel_resize_request",
        "delete_group",
        "delete_template",
        "delete_workload_policy",
        "read",
        "get_operation",
    ],
)
def test_call_that_fails_for_once_is_made_again(world: World, method: str) -> None:
    world.compute.fail_next(ComputeError(ErrorKind.TRANSIENT, "503", ""), method)
    assert world.removal().carry_out() == ()
    assert world.names() == ONLY_OTHERS


def test_group_waits_until_its_requests_were_told_to_end(world: World) -> None:
    found = read_inventory(world.systems, "flexvm")
    first = list(next_deletions(found, frozenset()))
    assert [type(one) for one in first] == [CancelRequest]
    then = [type(one) for one in next_deletions(found, frozenset({first[0].subject}))]
    assert then == [DeleteGroup], "also where the request could not be cancelled"


def test_operations_that_fail_are_started_under_other_ids(world: World) -> None:
    for _ in range(4):
        world.compute.fail_next_operation("INTERNAL_ERROR", 500)
    assert world.removal().carry_out() == ()
    assert world.names() == ONLY_OTHERS


def test_refusal_that_lasts_ends_it_with_its_reason_and_the_rest_is_gone(world: World) -> None:
    error = ComputeError(ErrorKind.PERMISSION, "403", "compute.instanceTemplates.delete")
    for _ in range(200):
        world.compute.fail_next(error, "delete_template")
    left = world.removal().carry_out()
    assert any("compute.instanceTemplates.delete" in line for line in left)
    assert world.names()["groups"] == {"other"}
    world.compute.forget_faults()
    assert world.removal().carry_out() == ()
    assert world.names() == ONLY_OTHERS


class Killed(BaseException):
    """As by kill -9."""


def killed_at(world: World, call: int) -> Callable[..., object]:
    """The fake's door, which ends the process at that call."""
    enter, count = world.compute._enter, [0]

    def door(method: str, subject: object, request_id: str = "") -> None:
        count[0] += 1
        if count[0] == call:
            raise Killed
        enter(method, subject, request_id)

    return door


@pytest.mark.parametrize("call", range(1, 20))
def test_deletion_killed_at_any_call_goes_on_from_there(
    world: World, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(world.compute, "_enter", killed_at(world, call))
        try:
            world.removal().carry_out()
        except Killed:
            pass
        else:
            assert call > 15, "it made fewer calls than the test kills it at"
    assert world.removal().carry_out() == ()
    assert world.names() == ONLY_OTHERS


def test_job_that_came_since_the_question_is_not_harmed(world: World) -> None:
    job = world.slurm.submit([N0])
    world.slurm.register([N0])
    left = world.removal(seconds=10).carry_out()
    assert any(f"job {job} " in line for line in left)
    assert N0 in world.names()["VMs"]


def test_forced_deletion_requeues_the_job_and_keeps_it_off(world: World) -> None:
    job = world.slurm.submit([N0])
    assert world.removal(force=True).carry_out() == ()
    assert world.slurm.jobs[job].state is JobState.PENDING
    assert world.names() == ONLY_OTHERS


@pytest.mark.parametrize("is_up", [False, True])
def test_reason_of_a_person_stays(world: World, is_up: bool) -> None:
    if is_up:
        world.slurm.register([N0])
    world.slurm.update_nodes([N0], NodeUpdate.DRAIN, "fan is loud")
    world.removal().carry_out()
    assert world.slurm.nodes[N0].reason == "fan is loud"
    assert world.slurm.nodes[N1].reason == DELETED_REASON


def test_nothing_is_touched_before_the_pass_under_way_is_over(world: World) -> None:
    with sole_runner(world.spool), pytest.raises(Locked):
        world.removal().carry_out()
    assert not [call for call in world.compute.calls if call.method.startswith("delete")]


def test_pass_that_has_seen_the_mark_holds_nothing_up(world: World) -> None:
    pause = world.pause

    def daemon(seconds: float) -> None:
        deleting.obey(world.spool)
        pause(seconds)

    world.pause = daemon  # type: ignore[method-assign]  # the daemon's next pass
    with sole_runner(world.spool):
        assert world.removal().carry_out() == ()
    assert world.names() == ONLY_OTHERS


def test_inventory_is_told_by_kinds(world: World) -> None:
    text = "\n".join(inventory_lines(read_inventory(world.systems, "flexvm")))
    for what in (
        "resize requests that wait (1): r1",
        "groups (1): flexvm-a3u-",
        f"VMs (1): {N0}",
        "instance templates (1): flexvm-a3u-",
        "workload policies (1): flexvm-a3u-compact",
        "reservations in Slurm (1): slurm-hooks-eol-1",
    ):
        assert what in text


def test_group_with_a_mark_that_is_odd_is_not_ours(world: World) -> None:
    reference = GroupReference(Scope(ScopeKind.ZONE, "us-central1-a"), "flexvm-a3u-odd")
    own = group_of(CLUSTER, CLUSTER.pools["a3u"])
    odd = encode(Mark("flexvm", "a3u")).replace('"pool"', '"pol"')
    world.compute.insert_group(
        replace(own, reference=reference, description=odd, template=own.template), "odd"
    )
    world.removal(seconds=60).carry_out()
    assert reference in world.compute.state.groups
    assert deleting.is_marked(world.spool)
