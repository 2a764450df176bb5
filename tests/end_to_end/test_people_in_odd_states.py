"""What people decide holds in odd moments, too: while nodes wake, reboot, or are closed off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import N2, UNTIL_TOLD, Fleet, short_times, write_cluster
from tests.end_to_end.lifecycle import COME_SECONDS, N0, N1

pytestmark = pytest.mark.slow

REASON = "fan is loud"
SLOW_BOOT = {**FAST_LATENCY, "stagingSeconds": 10}


@pytest.fixture
def slow_fleet(start_box: Callable[..., Box], tmp_path: Path) -> Fleet:
    """Three dynamic nodes whose VMs take a while to boot, so that a person can be quicker."""
    file = write_cluster(tmp_path / "cluster.json", static=0, nodes=3, policy={})
    return Fleet(start_box(cluster_file=file, options=short_times(SLOW_BOOT)))


def wait_for_flags(fleet: Fleet, node: str, *words: str, without: tuple[str, ...] = ()) -> None:
    fleet.box.wait_until(
        f"{node} to be {'+'.join(words)}",
        lambda: set(words) <= fleet.node_flags(node) and not set(without) & fleet.node_flags(node),
        COME_SECONDS,
    )


def test_nodes_taken_out_of_service_while_they_wait_for_capacity_end_off_and_drained(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(0)
    fleet.set_capacity(0)
    fleet.update(f"{N0},{N1},{N2}", "power_up")
    for node in (N0, N1, N2):
        wait_for_flags(fleet, node, "POWERING_UP")
    fleet.box.wait_until(
        "the request", lambda: "ACCEPTED" in fleet.request_states().values(), COME_SECONDS
    )
    for node, state in ((N0, "drain"), (N1, "down"), (N2, "fail")):
        fleet.update(node, state, REASON)
    fleet.wait_until_off(N0, N1, N2)
    for node in (N0, N1, N2):
        wait_for_flags(fleet, node, "IDLE", "DRAIN", "POWERED_DOWN", without=("POWERING_DOWN",))
        assert fleet.reason(node) == REASON
    changes = fleet.changes()
    fleet.wait_for_passes()
    assert fleet.changes() == changes
    assert "ACCEPTED" not in fleet.request_states().values()


def test_nodes_taken_out_of_service_while_their_vms_boot_come_up_drained(
    slow_fleet: Fleet,
) -> None:
    fleet = slow_fleet
    fleet.update(f"{N0},{N1}", "power_up")
    fleet.box.wait_until("the VMs", lambda: set(fleet.vm_states()) == {N0, N1}, COME_SECONDS)
    fleet.update(N0, "drain", REASON)
    fleet.update(N1, "down", REASON)
    for node in (N0, N1):
        wait_for_flags(fleet, node, "IDLE", "DRAIN", without=("POWERING_UP", "NOT_RESPONDING"))
        assert fleet.reason(node) == REASON


def test_a_node_set_down_by_hand_stays_out_of_service_when_its_slurmd_registers_again(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(1)
    fleet.wait_until_up(N0)
    fleet.update(N0, "down", REASON)
    # An answer of its slurmd that was on the way may have ended DOWN already: the drain stays.
    wait_for_flags(fleet, N0, "DRAIN")
    fleet.slurm("scontrol", "reconfigure")
    wait_for_flags(fleet, N0, "IDLE", "DRAIN")
    assert fleet.reason(N0) == REASON
    fleet.update(N0, "resume")
    fleet.wait_until_up(N0)


def test_a_node_given_back_while_it_is_off_is_free_of_slurms_trap(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(0)
    fleet.update(N2, "drain", REASON)
    wait_for_flags(fleet, N2, "DRAIN", "POWERED_DOWN")
    fleet.box.daemon.kill()
    fleet.update(N2, "resume")
    assert "NOT_RESPONDING" in fleet.node_flags(N2)
    fleet.slurm("scontrol", "reconfigure")
    assert "NOT_RESPONDING" in fleet.node_flags(N2)
    fleet.box.daemon.start()
    wait_for_flags(fleet, N2, "IDLE", "POWERED_DOWN", without=("NOT_RESPONDING", "POWERING_DOWN"))
    job_id = fleet.submit(1, "-w", N2)
    fleet.wait_for_job(job_id, "COMPLETED")


def test_a_vm_that_vanishes_while_its_node_reboots_is_replaced(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(2)
    fleet.wait_until_up(N0, N1)
    # A program that only says that it will: the nodes stay between reboot and registration.
    fleet.configure("RebootProgram=/bin/true")
    vms = {node: fleet.vm_id(node) for node in (N0, N1)}
    fleet.slurm("scontrol", "reboot", "nextstate=resume", "reason=new kernel", N0)
    fleet.slurm("scontrol", "reboot", "asap", "reason=new kernel", N1)
    for node in (N0, N1):
        wait_for_flags(fleet, node, "REBOOT_ISSUED")
    changes = fleet.changes()
    fleet.wait_for_passes()
    assert fleet.changes() == changes
    assert {node: fleet.vm_id(node) for node in (N0, N1)} == vms
    for node in (N0, N1):
        fleet.box.control.vanish_instance(node)
    for node in (N0, N1):
        fleet.wait_until_up(node, another_than=vms[node])


@pytest.mark.parametrize("state", ["down", "inactive"])
def test_a_closed_partition_keeps_its_static_nodes_and_starts_no_job(
    start_fleet: Callable[..., Fleet], state: str
) -> None:
    fleet = start_fleet(2)
    fleet.wait_until_up(N0, N1)
    vms = {node: fleet.vm_id(node) for node in (N0, N1)}
    fleet.slurm("scontrol", "update", "partitionname=a3u", "state=down")
    job_id = fleet.submit(3)
    fleet.slurm("scontrol", "update", "partitionname=a3u", f"state={state}")
    changes = fleet.changes()
    fleet.wait_for_passes(5)
    assert fleet.job_state(job_id) == "PENDING"
    assert fleet.changes() == changes
    assert {node: fleet.vm_id(node) for node in (N0, N1)} == vms
    assert fleet.is_off(N2)
    fleet.slurm("scontrol", "update", "partitionname=a3u", "state=up")
    fleet.wait_for_job(job_id, "COMPLETED")
    assert {node: fleet.vm_id(node) for node in (N0, N1)} == vms


def test_nodes_serve_again_when_a_maintenance_reservation_ends(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(1)
    fleet.wait_until_up(N0)
    vm = fleet.vm_id(N0)
    fleet.slurm(
        "scontrol", "create", "reservation=by_hand", "starttime=now", "duration=1",
        "users=root", "flags=maint,ignore_jobs", f"nodes={N0},{N2}",
    )  # fmt: skip
    wait_for_flags(fleet, N0, "MAINTENANCE")
    jobs = [fleet.submit(1, "-w", node) for node in (N0, N2)]
    changes = fleet.changes()
    fleet.wait_for_passes()
    assert [fleet.job_state(job_id) for job_id in jobs] == ["PENDING", "PENDING"]
    assert fleet.changes() == changes
    for job_id in jobs:
        fleet.wait_for_job(job_id, "COMPLETED", 60 + COME_SECONDS)
    assert fleet.vm_id(N0) == vm


def test_power_down_asap_by_hand_waits_for_the_job_and_a_static_node_comes_back(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(1)
    fleet.wait_until_up(N0)
    vm = fleet.vm_id(N0)
    with fleet.interactive(N0, *UNTIL_TOLD) as job:
        wait_for_flags(fleet, N0, "ALLOCATED")
        fleet.update(N0, "power_down_asap")
        changes = fleet.changes()
        fleet.wait_for_passes()
        assert job.poll() is None
        assert fleet.changes() == changes
        fleet.let_go()
        assert job.wait(COME_SECONDS) == 0
    fleet.wait_until_up(N0, another_than=vm)
