"""Every state of a cluster, its login nodes, and what is said to hold it up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_hooks.boot.console import BootState, BootStep
from slurm_hooks.compute.model import ErrorDetail, InstanceStatus, Member, MemberAction
from slurm_hooks.history.conditions import Condition
from slurm_hooks.history.event import EventKind
from slurm_hooks.reconcile.pool_record import PoolRecord, record_text
from slurm_hooks.reconcile.repairs import log_of
from slurm_hooks.reconcile.snapshot import System, Unavailable
from slurm_hooks.slurm.model import NodeFlag
from slurm_hooks.status.model import ClusterState, NodeState
from tests.unit.reconcile.builders import GROUP, N0, N1, NOW, World, off, starting, vm
from tests.unit.reconcile.condemned import drained, happened, reason
from tests.unit.status.standing import (
    DYNAMIC,
    LOGIN,
    STATIC,
    all_up,
    found,
    login_vm,
    one,
    status,
    up,
    with_login_group,
    with_member,
)

NO_SLURM = Unavailable(System.SLURM, "slurmctld is silent")
NO_COMPUTE = Unavailable(System.COMPUTE, "503 Service Unavailable")


def test_cluster_runs_when_all_that_must_exist_is_there() -> None:
    stands = status(all_up())
    assert (stands.state, stands.detail, stands.held_up_by) == (ClusterState.RUNNING, "", ())
    assert [node.name for node in stands.nodes] == [N0, N1, LOGIN]


def test_dynamic_nodes_that_are_off_or_wait_keep_no_cluster_from_running() -> None:
    world = World([off(N0), starting(N1)], vms=[login_vm()], cluster=DYNAMIC)
    names = {node.name: node for node in world.nodes}
    more = [off(f"flexvm-a3u-{index}") for index in (2, 3)]
    stands = status(replace(world, nodes=[*names.values(), *more]))
    assert stands.state is ClusterState.RUNNING
    assert stands.held_up_by == (f"{N1}: its VM is asked for",)


def test_cluster_is_provisioning_while_a_static_node_is_to_come() -> None:
    world = replace(all_up(), nodes=[up(N0), starting(N1)], vms=[vm(N0), vm(N1), login_vm()])
    stands = status(world)
    assert (stands.state, stands.detail) == (
        ClusterState.PROVISIONING,
        f"1 node still to come: {N1}",
    )


def test_cluster_is_provisioning_while_its_login_node_is_to_come() -> None:
    stands = status(replace(all_up(), vms=[vm(N0), vm(N1)]))
    assert stands.state is ClusterState.PROVISIONING
    assert stands.held_up_by == (f"{LOGIN}: its VM is asked for next",)


def test_cluster_that_slurm_does_not_know_at_all_is_provisioning() -> None:
    stands = status(replace(all_up(), nodes=[], vms=[]))
    assert stands.state is ClusterState.PROVISIONING
    assert "flexvm-a3u-[0-1]: slurm.conf does not name it yet" in stands.held_up_by


def test_cluster_is_updating_while_nodes_join_move_or_leave() -> None:
    joins = replace(all_up(), nodes=[up(N0)])
    leaves = replace(all_up(), nodes=[up(N0), up(N1), up("flexvm-a3u-7")])
    pool = replace(STATIC.pools["a3u"], boot_disk_size_gb=200)
    moves = replace(all_up(), cluster=replace(STATIC, pools={**STATIC.pools, "a3u": pool}))
    for world in (joins, leaves, moves):
        assert status(world).state is ClusterState.UPDATING
    assert status(joins).detail == f"1 node still to be updated: {N1}"


def test_static_node_that_cannot_come_is_an_error_of_the_cluster() -> None:
    ill = up(N1, NodeFlag.DRAIN, reason="Kill task failed")
    stands = status(replace(all_up(), nodes=[up(N0), ill]))
    assert stands.state is ClusterState.ERROR
    assert stands.detail.startswith(f"{N1}: takes no jobs: drained: Kill task failed")


def test_node_that_a_person_drained_is_no_error_of_the_cluster() -> None:
    stands = status(replace(all_up(), nodes=[up(N0), up(N1, NodeFlag.DRAIN, reason="mine")]))
    assert (stands.state, stands.held_up_by) == (ClusterState.RUNNING, ())


def test_node_under_repair_keeps_the_cluster_running() -> None:
    stands = status(replace(all_up(), nodes=[up(N1), drained(reason())]))
    assert (stands.state, stands.detail) == (ClusterState.RUNNING, f"{N0} under repair")


def test_cluster_that_is_deleted_is_stopping_whatever_else_holds() -> None:
    stands = status(all_up(), is_deleting=True, slurm=NO_SLURM)
    assert stands.state is ClusterState.STOPPING


def test_nodes_of_a_deleted_cluster_are_off_and_nothing_is_said_to_come() -> None:
    stands = status(replace(all_up(), vms=[vm(N0)]), is_deleting=True)
    assert (one(stands, N0).state, one(stands, N0).detail) == (
        NodeState.UPDATING,
        "it is deleted with the cluster",
    )
    gone = [one(stands, name) for name in (N1, LOGIN)]
    assert [(node.state, node.detail) for node in gone] == [(NodeState.OFF, "")] * 2
    assert stands.held_up_by == (f"{N0}: it is deleted with the cluster",)


def test_silent_slurmctld_is_an_error_and_the_missing_half_is_named() -> None:
    stands = status(all_up(), slurm=NO_SLURM)
    assert (stands.state, stands.unavailable) == (ClusterState.ERROR, (NO_SLURM,))
    assert stands.held_up_by[0] == "Slurm could not be read: slurmctld is silent"


def test_silent_compute_engine_is_named_and_nodes_in_slurm_still_count() -> None:
    stands = status(all_up(), compute=NO_COMPUTE)
    assert (one(stands, N0).state, one(stands, LOGIN).state) == (
        NodeState.RUNNING,
        NodeState.PREPARING,
    )
    assert stands.unavailable == (NO_COMPUTE,)
    assert stands.held_up_by[0] == "Compute Engine could not be read: 503 Service Unavailable"


def test_unreadable_history_and_a_missing_daemon_are_told() -> None:
    gone = Unavailable(System.HISTORY, "no such file")
    lines = status(all_up(), repairs=gone, daemon_runs=False).held_up_by
    assert lines[0] == "history could not be read: no such file"
    assert lines[1].startswith("slurm-hooksd does not run")
    assert status(all_up(), daemon_runs=None).held_up_by == ()


def test_held_pool_is_told_with_its_end_and_its_cause() -> None:
    until = NOW + timedelta(minutes=5)
    record = PoolRecord(3, NOW, holds=1, until_utc=until, cause="QUOTA_EXCEEDED: GPUS")
    keeper = replace(off(N0), comment=record_text(record))
    text = "pool a3u is held until 2026-05-01T12:05:00Z after 3 failures in a row: "
    assert f"{text}QUOTA_EXCEEDED: GPUS" in status(World([keeper])).held_up_by
    over = replace(record, until_utc=NOW)
    later = World([replace(keeper, comment=record_text(over))])
    assert not any("held" in line for line in status(later).held_up_by)


def test_stopped_repairs_are_told() -> None:
    stop = happened(EventKind.REPAIRS_STOPPED, name="")
    assert "the repairs of pool a3u are stopped since 2026-05-01T11:00:00Z" in (
        status(all_up(), repairs=log_of([stop])).held_up_by
    )


def low_memory(mebibytes: int) -> str:
    return f"Low RealMemory (reported:{mebibytes} < 100.00% of configured:1800000)"


def test_nodes_that_say_the_same_share_a_line_and_many_lines_are_counted() -> None:
    nodes = [
        up(f"flexvm-a3u-{index}", NodeFlag.DRAIN, reason=low_memory(index // 2))
        for index in range(30)
    ]
    cluster = replace(
        STATIC, pools={"a3u": replace(STATIC.pools["a3u"], min_node_count=0, max_node_count=30)}
    )
    world = World(nodes, vms=[vm(node.name) for node in nodes], cluster=cluster)
    lines = status(world).held_up_by
    assert lines[0].startswith("flexvm-a3u-[0-1]: ")
    assert (len(lines), lines[-1]) == (11, "5 more lines of nodes in state ERROR")


@pytest.mark.parametrize(
    ("word", "state", "detail"),
    [
        (InstanceStatus.STAGING, NodeState.PREPARING, "STAGING since 2026-05-01T11:50:00Z"),
        (InstanceStatus.RUNNING, NodeState.RUNNING, ""),
        (InstanceStatus.STOPPED, NodeState.REPAIRING, "STOPPED and made anew"),
        (InstanceStatus.STOPPING, NodeState.REPAIRING, "STOPPING and made anew"),
        (InstanceStatus.UNKNOWN, NodeState.ERROR, "in a state that we do not know"),
    ],
)
def test_login_node_stands_as_its_vm(word: InstanceStatus, state: NodeState, detail: str) -> None:
    found_state, found_detail = found(World(vms=[login_vm(word)], cluster=DYNAMIC), LOGIN)
    assert found_state is state
    assert detail in found_detail


@pytest.mark.parametrize(
    ("boot", "state", "detail"),
    [
        (BootState.DONE, NodeState.RUNNING, ""),
        (BootState.BEGINS, NodeState.PREPARING, "it boots: mount begins /home"),
        (BootState.FAILED, NodeState.ERROR, "its boot failed: mount failed /home"),
    ],
)
def test_login_node_stands_as_its_console_says(
    boot: BootState, state: NodeState, detail: str
) -> None:
    steps = {LOGIN: BootStep("mount", boot, "/home")}
    assert found(World(vms=[login_vm()], cluster=DYNAMIC), LOGIN, boot_steps=steps) == (
        state,
        detail,
    )


def test_login_node_whose_vm_cannot_be_created_says_why() -> None:
    member = Member(
        GROUP.reference, LOGIN, MemberAction.CREATING, ErrorDetail("QUOTA_EXCEEDED", "CPUS")
    )
    world = World(cluster=DYNAMIC)
    assert found(world, LOGIN, compute=with_member(world, member)) == (
        NodeState.PREPARING,
        "its VM is being created (QUOTA_EXCEEDED: CPUS)",
    )


def test_login_node_of_another_generation_says_how_to_renew_it() -> None:
    pool = replace(DYNAMIC.pools["login"], boot_disk_size_gb=200)
    changed = replace(DYNAMIC, pools={**DYNAMIC.pools, "login": pool})
    says = "of an outdated generation; delete its VM to renew it"
    for cluster, detail in ((DYNAMIC, ""), (changed, says)):
        world = World(vms=[login_vm()], cluster=cluster)
        stands = found(world, LOGIN, compute=with_login_group(world))
        assert stands == (NodeState.RUNNING, detail)


def test_what_the_daemon_alone_knows_is_told_while_it_runs() -> None:
    refused = Condition(
        "FAILURE", "refused, will be tried again", "insert group g", "QUOTA_EXCEEDED"
    )
    told_otherwise = Condition("AWAITS_CAPACITY", "nodes wait for capacity", "pool a3u")
    conditions = (refused, told_otherwise)
    assert status(all_up(), conditions=conditions, daemon_runs=True).held_up_by == (
        "insert group g: refused, will be tried again: QUOTA_EXCEEDED",
    )
    silent = status(all_up(), conditions=conditions, daemon_runs=False).held_up_by
    assert not any("refused" in line for line in silent)
