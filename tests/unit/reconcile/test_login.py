"""Login nodes: as many as the cluster file says, outside Slurm, made anew when they are gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import (
    ErrorDetail,
    GroupReference,
    Instance,
    InstanceStatus,
    MemberAction,
)
from slurm_hooks.compute.ownership import decode
from slurm_hooks.history import metrics
from slurm_hooks.reconcile.actions import NoticeKind, Plan
from slurm_hooks.reconcile.memory import FAILURE_STANDS
from slurm_hooks.reconcile.specifications import group_of
from tests.unit.reconcile.builders import example_cluster, node
from tests.unit.reconcile.life import LONGER_THAN_EVERY_GRACE, Life
from tests.unit.reconcile.scenario import Scenario

L0, L1, L2 = (f"flexvm-login-{index}" for index in range(3))
ZONE, OTHER_ZONE = "us-central1-a", "us-central1-b"
TWO = example_cluster(login_nodes=2)
STOCKOUT = ErrorDetail("ZONE_RESOURCE_POOL_EXHAUSTED", "no room")


def life_with(tmp_path: Path, login_nodes: int = 2) -> Life:
    return Life(tmp_path, example_cluster(login_nodes=login_nodes))


def created(life: Life) -> list[object]:
    """The names of each call that created VMs."""
    return [call.subject for call in life.compute.calls_of("create_instances")]


def group(life: Life) -> GroupReference:
    return group_of(life.cluster, life.cluster.pools["login"]).reference


def vm_id(life: Life, name: str) -> str:
    return life.compute.state.instance(name).instance_id


def last_plan(life: Life) -> Plan:
    plan = life.tick()
    assert plan is not None
    return plan


def lacks(plan: Plan) -> list[tuple[str, str]]:
    return [(n.detail, n.code) for n in plan.notices if n.kind is NoticeKind.LOGIN_NODES_LACK]


def test_login_nodes_come_with_the_cluster_in_one_call_and_are_no_nodes_of_slurm(
    tmp_path: Path,
) -> None:
    life = life_with(tmp_path)
    life.rest()
    assert life.vm_names() == [L0, L1]
    assert created(life) == [(L0, L1)]
    assert not {L0, L1} & set(life.slurm.nodes)
    mark = decode(life.compute.state.groups[group(life)].description)
    assert mark is not None
    assert (mark.pool, mark.provisioning_model) == ("login", "ON_DEMAND")
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.rest()
    assert life.vm_names() == [L0, L1], "reaped although there is no node in Slurm"
    assert len(created(life)) == 1


def test_first_login_nodes_wait_for_no_second_look(tmp_path: Path) -> None:
    life = life_with(tmp_path)
    for _ in range(6):
        life.one_pass()
        life.compute.state.finish_operations()
    assert created(life) == [(L0, L1)]


def test_that_the_first_login_nodes_are_still_to_come_is_no_news(tmp_path: Path) -> None:
    life = life_with(tmp_path)
    life.compute.operations_finish_at_once = False
    for _ in range(4):
        plan = life.one_pass()
        life.advance(LONGER_THAN_EVERY_GRACE)
        assert plan is not None
        assert lacks(plan) == []
        assert plan.login_lacking == {"login": 2}


@pytest.mark.parametrize(
    "status", [InstanceStatus.TERMINATED, InstanceStatus.SUSPENDED, InstanceStatus.STOPPED]
)
def test_login_node_that_has_stopped_is_made_anew(tmp_path: Path, status: InstanceStatus) -> None:
    life = life_with(tmp_path)
    life.rest()
    before = vm_id(life, L0), vm_id(life, L1)
    life.compute.state.set_status(L1, status)
    assert last_plan(life).actions == (), "at the first sighting"
    life.rest()
    assert life.vm_names() == [L0, L1]
    assert vm_id(life, L0) == before[0]
    assert vm_id(life, L1) != before[1]


def test_login_node_that_is_gone_is_made_anew_at_the_second_sighting(tmp_path: Path) -> None:
    life = life_with(tmp_path)
    life.rest()
    life.compute.state.vanish(L0)
    first = last_plan(life)
    assert first.actions == ()
    assert first.second_look_seconds == 10
    second = last_plan(life)
    assert [type(action).__name__ for action in second.actions] == ["CreateInstances"]
    assert lacks(second) == [(L0, "")]
    life.rest()
    assert life.vm_names() == [L0, L1]
    assert created(life) == [(L0, L1), (L0,)]


def test_member_that_lost_its_vm_is_taken_out_and_made_anew(tmp_path: Path) -> None:
    life = life_with(tmp_path)
    life.rest()
    life.compute.state.vanish(L0)
    life.compute.state.add_member(group(life), L0)
    key = group(life), L0
    member = life.compute.state.members[key]
    life.compute.state.members[key] = replace(member, action=MemberAction.NONE)
    life.rest()
    assert life.vm_names() == [L0, L1]
    assert life.compute.state.members == {}


@pytest.mark.parametrize("status", [InstanceStatus.STOPPING, InstanceStatus.UNKNOWN])
def test_vm_that_goes_or_is_not_understood_is_left_alone(
    tmp_path: Path, status: InstanceStatus
) -> None:
    life = life_with(tmp_path, 1)
    life.rest()
    life.compute.state.set_status(L0, status)
    for _ in range(3):
        plan = life.passes.run()
        assert plan.actions == ()
        life.advance(LONGER_THAN_EVERY_GRACE)


def test_surplus_goes_when_the_count_is_lowered(tmp_path: Path) -> None:
    life = life_with(tmp_path, 3)
    life.rest()
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.apply(TWO)
    life.rest()
    assert life.vm_names() == [L0, L1]
    assert life.compute.state.groups[group(life)].target_size == 2


def test_surplus_member_that_waits_for_its_vm_goes_and_others_stay(tmp_path: Path) -> None:
    life = life_with(tmp_path, 3)
    life.compute.state.refusal = STOCKOUT
    life.rest()
    life.apply(TWO)
    life.rest()
    assert sorted(name for _, name in life.compute.state.members) == [L0, L1]


def test_what_a_login_node_lacks_is_told_and_counted_until_it_comes(tmp_path: Path) -> None:
    life = life_with(tmp_path, 1)
    life.compute.state.refusal = STOCKOUT
    life.rest()
    plan = last_plan(life)
    assert lacks(plan) == [(f"{L0}: {STOCKOUT.code} no room", STOCKOUT.code)]
    assert plan.login_lacking == {"login": 1}
    metrics.record_pass(plan, 0.1)
    assert metrics.LOGIN_LACKING.labels("login")._value.get() == 1
    assert created(life) == [(L0,)], "the group tries again by itself"
    life.compute.state.refusal = None
    life.rest()
    plan = last_plan(life)
    assert (lacks(plan), plan.login_lacking) == ([], {"login": 0})


def test_refused_call_is_told_and_made_again_after_a_while(tmp_path: Path) -> None:
    life = life_with(tmp_path, 1)
    refusal = ComputeError(ErrorKind.PERMISSION, "forbidden", "no compute.instances.create")
    while group(life) not in life.compute.state.groups:
        life.tick()
    life.compute.fail_next(refusal, "create_instances")
    life.tick()
    told = [n.detail for n in last_plan(life).notices if n.kind is NoticeKind.FAILURE]
    assert told == ["forbidden no compute.instances.create"]
    assert life.vm_names() == []
    life.advance(FAILURE_STANDS)
    life.rest()
    assert life.vm_names() == [L0]
    assert not any(node.comment for node in life.slurm.nodes.values()), "no pool of nodes failed"


def test_outdated_generation_stays_until_a_person_deletes_the_vm(tmp_path: Path) -> None:
    life = life_with(tmp_path, 2)
    life.rest()
    old, before = group(life), vm_id(life, L0)
    pool = replace(life.cluster.pools["login"], boot_disk_size_gb=200)
    life.apply(replace(life.cluster, pools={**life.cluster.pools, "login": pool}))
    life.advance(LONGER_THAN_EVERY_GRACE)
    life.rest()
    assert vm_id(life, L0) == before
    assert list(life.compute.state.groups) == [old]
    life.compute.state.set_status(L0, InstanceStatus.STOPPING)
    life.rest()
    assert life.compute.state.instance(L0).group == group(life) != old
    assert life.compute.state.instance(L1).group == old


def test_member_that_cannot_be_made_by_an_outdated_template_is_moved(tmp_path: Path) -> None:
    life = life_with(tmp_path, 1)
    life.compute.state.refusal = ErrorDetail("RESOURCE_NOT_FOUND", "image")
    life.rest()
    pool = replace(life.cluster.pools["login"], source_image="projects/p/global/images/family/g")
    life.apply(replace(life.cluster, pools={**life.cluster.pools, "login": pool}))
    life.compute.state.refusal = None
    life.tick()
    life.rest()
    assert life.vm_names() == [L0]
    assert life.compute.state.instance(L0).group == group(life)


def test_one_name_that_is_taken_keeps_no_other_login_node_away(tmp_path: Path) -> None:
    life = life_with(tmp_path)
    foreign = Instance(L1, "999", ZONE, InstanceStatus.TERMINATED)
    life.compute.state.instances[ZONE, L1] = foreign
    for _ in range(12):
        life.tick()
    assert life.compute.state.instance(L0).status is InstanceStatus.RUNNING
    assert life.compute.state.instances[ZONE, L1] == foreign


def test_two_vms_of_one_name_are_left_to_people(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, example_cluster(login_nodes=1))
    scenario.settle_with_vms()
    bad = InstanceStatus.TERMINATED
    twin = replace(scenario.compute.state.instance(L0), zone=OTHER_ZONE, instance_id="42")
    scenario.compute.state.instances[OTHER_ZONE, L0] = twin
    scenario.compute.state.instances[ZONE, L0] = replace(
        twin, zone=ZONE, status=bad, creation_time_utc=scenario.now - LONGER_THAN_EVERY_GRACE
    )
    for _ in range(3):
        scenario.now += LONGER_THAN_EVERY_GRACE
        assert scenario.run().actions == ()


def test_name_that_is_still_a_node_in_slurm_leaves_slurm_first(tmp_path: Path) -> None:
    life = life_with(tmp_path, 1)
    life.slurm.nodes[L0] = node(L0)
    plan = last_plan(life)
    assert "CreateInstances" not in {type(action).__name__ for action in plan.actions}
    assert plan.login_lacking == {"login": 0}


def test_very_many_login_nodes_that_are_bad_at_once_are_not_believed(tmp_path: Path) -> None:
    life = life_with(tmp_path, 30)
    life.rest()
    for index in range(30):
        life.compute.state.set_status(f"flexvm-login-{index}", InstanceStatus.TERMINATED)
    for _ in range(3):
        plan = last_plan(life)
    assert plan.kills_in_question == 30
    assert not life.compute.calls_of("delete_instances")
