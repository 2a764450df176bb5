"""What people decide about nodes, partitions and reservations is respected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.end_to_end.fleet import N2, Fleet, write_cluster
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

REASON = "fan is loud"


def node_text(fleet: Fleet, node: str) -> str:
    """All that Slurm shows of a node but what changes by itself."""
    text = fleet.slurm("scontrol", "-o", "show", "node", node).replace("+NOT_RESPONDING", "")
    return " ".join(
        word for word in text.split() if not word.startswith(("CPULoad=", "FreeMem=", "LastBusy"))
    )


def test_nodes_powered_by_hand_come_and_go(start_fleet: Callable[..., Fleet]) -> None:
    fleet = start_fleet(0)
    fleet.update(N2, "power_up")
    fleet.wait_until_up(N2)
    fleet.wait_until_off(N2)

    fleet.update(f"{N0},{N1}", "power_up")
    fleet.wait_until_up(N0, N1)
    with fleet.interactive(N1, "sleep", "600") as job:
        fleet.box.wait_until("the job", lambda: "ALLOCATED" in fleet.node_flags(N1), 30)
        fleet.update(N0, "power_down")
        fleet.update(N1, "power_down_force", "by hand")
        fleet.wait_until_off(N0, N1)
        job.wait(30)
    fleet.wait_for_passes()
    assert fleet.vm_states() == {}


def test_nodes_that_a_person_took_out_of_service_stay_so(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(2)
    fleet.wait_until_up(N0, N1)
    with fleet.interactive(N0, "sleep", "600") as job:
        fleet.box.wait_until("the job", lambda: "ALLOCATED" in fleet.node_flags(N0), 30)
        changes = fleet.changes()
        fleet.update(N0, "drain", REASON)
        fleet.update(N1, "fail", REASON)
        fleet.update(N2, "drain", REASON)
        fleet.wait_for_passes()
        assert job.poll() is None
        assert fleet.changes() == changes
        fleet.box.control.vanish_instance(N0)
        fleet.box.control.vanish_instance(N1)
        fleet.box.wait_until("the job to be given back", lambda: job.poll() is not None, 60)
    fleet.wait_for_passes()
    for node, word in ((N0, "DRAIN"), (N1, "FAIL"), (N2, "DRAIN")):
        assert word in fleet.node_flags(node)
        assert fleet.reason(node) == REASON
    assert fleet.vm_states() == {}

    for node in (N0, N1):
        fleet.update(node, "resume")
    fleet.wait_until_up(N0, N1)

    fleet.update(N0, "down", REASON)
    vm = fleet.vm_id(N0)
    fleet.box.wait_until("its drain", lambda: "DRAIN" in fleet.node_flags(N0), 30)
    fleet.wait_for_passes()
    # Slurm itself ends a DOWN when slurmd registers again; the drain is what lasts.
    assert "DRAIN" in fleet.node_flags(N0)
    assert fleet.reason(N0) == REASON
    assert fleet.vm_id(N0) == vm


def test_maintenance_and_closed_partitions_start_no_loop(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(2)
    fleet.wait_until_up(N0, N1)
    fleet.slurm(
        "scontrol", "create", "reservation=by_hand", "starttime=now", "duration=60",
        "users=root", "flags=maint,ignore_jobs", f"nodes={N0},{N2}",
    )  # fmt: skip
    fleet.box.wait_until("the reservation", lambda: "MAINTENANCE" in fleet.node_flags(N0), 20)
    vms = {node: fleet.vm_id(node) for node in (N0, N1)}
    changes = fleet.changes()
    fleet.wait_for_passes()
    assert fleet.changes() == changes
    assert {node: fleet.vm_id(node) for node in (N0, N1)} == vms
    fleet.box.control.vanish_instance(N0)
    fleet.wait_until_up(N0, another_than=vms[N0])
    changes = fleet.changes()
    fleet.wait_for_passes()
    assert fleet.changes() == changes
    fleet.slurm("scontrol", "delete", "reservation=by_hand")

    fleet.slurm("scontrol", "update", "partitionname=a3u", "state=inactive")
    fleet.wait_for_passes()
    assert fleet.changes() == changes
    fleet.box.control.vanish_instance(N1)
    fleet.wait_until_off(N1)
    fleet.wait_for_passes()
    assert fleet.is_off(N1)
    fleet.slurm("scontrol", "update", "partitionname=a3u", "state=up")
    fleet.wait_until_up(N1, another_than=vms[N1])


def test_foreign_and_rebooting_nodes_are_not_touched_and_a_dry_run_changes_nothing(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(2)
    fleet.add_foreign_nodes()
    fleet.wait_until_up(N0, N1)
    # A program that only says that it will: the node stays between reboot and registration.
    fleet.configure("RebootProgram=/bin/true")
    vm, changes = fleet.vm_id(N1), fleet.changes()
    fleet.slurm("scontrol", "reboot", "nextstate=resume", "reason=new kernel", N1)
    fleet.box.wait_until(
        "the reboot to be on its way", lambda: "REBOOT_ISSUED" in fleet.node_flags(N1), 20
    )
    fleet.update("other-a3u-0", "power_up")
    fleet.box.wait_until(
        "Slurm to have asked for the foreign node",
        lambda: "POWERING_UP" in fleet.node_flags("other-a3u-0"),
        20,
    )
    fleet.wait_for_passes()
    assert "POWERING_UP" in fleet.node_flags("other-a3u-0")
    assert set(fleet.vm_states()) == {N0, N1}
    assert fleet.vm_id(N1) == vm
    assert fleet.changes() == changes

    fleet.box.daemon.kill()
    write_cluster(fleet.box.layout.cluster_file, static=3, nodes=3, policy={})
    fleet.box.control.vanish_instance(N0)
    nodes = {node: node_text(fleet, node) for node in (N0, N1, N2, "other-a3u-0")}
    fleet.box.control.clear_calls()
    answer = fleet.box.run(("slurm-hooksd", "--dry-run"))
    assert answer.returncode == 0, answer.stderr
    assert f"would update node {N2}: POWER_UP" in answer.stdout
    assert "1 nodes: set down, then power down, once the VM is missing for long" in answer.stdout
    assert {call.method for call in fleet.box.control.calls()} == {"GET"}
    assert {node: node_text(fleet, node) for node in nodes} == nodes
