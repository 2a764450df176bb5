"""Static nodes always exist, dynamic ones only for a job, whatever ends their VMs."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from slurm_hooks.reconcile.sightings import BELIEVED_AFTER
from tests.end_to_end.fleet import N2, UNTIL_TOLD, Fleet, write_cluster
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

LOST_SECONDS = BELIEVED_AFTER.total_seconds() + 6
"""Until it is believed, and passes of a second each, on a machine that does other things too."""

SLURMD_TIMEOUT_SECONDS = 9

SURVIVOR = """\
if [ -n "$SLURM_RESTART_COUNT" ]; then echo "again after $SLURM_RESTART_COUNT"; exit 0; fi
sleep 600
"""


def test_static_node_comes_back_from_every_end_and_dynamic_ones_stay_away(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(1)
    fleet.wait_until_up(N0)
    assert fleet.is_off(N1)
    assert fleet.is_off(N2)

    fleet.update(N1, "power_up")
    fleet.wait_until_up(N1)
    job_id = fleet.submit(1, "-w", N0, more=SURVIVOR)
    fleet.wait_for_job(job_id, "RUNNING")
    first = fleet.vm_id(N0)
    for node in (N0, N1):
        fleet.box.control.vanish_instance(node)
    fleet.box.wait_until(
        "the job to be queued again",
        lambda: fleet.job_state(job_id) == "PENDING",
        LOST_SECONDS,
    )
    fleet.wait_until_up(N0, another_than=first)
    fleet.wait_for_job(job_id, "COMPLETED")
    assert "again after 1" in fleet.witness.job_output(job_id)

    for end in (fleet.box.control.host_error, fleet.box.control.terminate_instance):
        before = fleet.vm_id(N0)
        end(N0)
        fleet.wait_until_up(N0, another_than=before)
    assert fleet.is_off(N1)

    before = fleet.vm_id(N0)
    fleet.update(N2, "power_up")
    fleet.wait_until_up(N2)
    fleet.wait_until_off(N2)
    assert fleet.vm_id(N0) == before, "a static node that idled longer was suspended too"


def test_dead_slurmd_on_a_living_vm_is_replaced_but_not_where_a_person_set_the_node_down(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(2)
    fleet.wait_until_up(N0, N1)
    fleet.configure(f"SlurmdTimeout={SLURMD_TIMEOUT_SECONDS}")
    vms = {node: fleet.vm_id(node) for node in (N0, N1)}
    for node in (N0, N1):
        fleet.box.control.kill_guest(node)
    # Only now: with ReturnToService=2 a slurmd that registers again would end it.
    fleet.update(N1, "down", "fan is loud")
    fleet.box.wait_until(
        "Slurm to give the node up and us to replace it",
        lambda: fleet.vm_id(N0) not in ("", vms[N0]),
        3 * SLURMD_TIMEOUT_SECONDS + 30,
    )
    fleet.wait_until_up(N0)
    consoles = fleet.box.layout.hooks_spool / "consoles"
    assert (consoles / f"{N0}-{vms[N0]}.txt").exists()
    assert fleet.vm_id(N1) == vms[N1]
    assert "DOWN" in fleet.node_flags(N1)
    assert fleet.reason(N1) == "fan is loud"


def test_min_node_count_is_raised_and_lowered_without_harm_to_a_job(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(0)

    def set_static(count: int) -> None:
        write_cluster(fleet.box.layout.cluster_file, static=count, nodes=3, policy={})
        process = fleet.box.daemon.state.process
        assert process is not None
        assert process.send_signal(signal.SIGHUP)

    set_static(2)
    fleet.wait_until_up(N0, N1)
    assert fleet.is_off(N2)
    with fleet.interactive(N1, *UNTIL_TOLD) as job:
        fleet.box.wait_until("the job", lambda: "ALLOCATED" in fleet.node_flags(N1), 30)
        used = fleet.vm_id(N1)
        set_static(0)
        fleet.wait_until_off(N0)
        assert job.poll() is None
        assert fleet.vm_id(N1) == used
        fleet.let_go()
        assert job.wait(20) == 0
    fleet.wait_until_off(N1)
    fleet.wait_for_passes()
    assert fleet.vm_states() == {}
