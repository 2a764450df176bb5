"""VMs that go slowly, not at all, or all at once, on real Slurm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.end_to_end.fleet import UNTIL_TOLD, Fleet
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

N2 = "flexvm-a3u-2"
SLOW_SECONDS = 25.0
"""A deletion far slower than SuspendTimeout, which is 4 s here."""
SLURMD_TIMEOUT_SECONDS = 9


def test_deletion_slower_than_suspend_timeout_makes_the_next_job_wait(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(0)
    first = fleet.submit(1, "-w", N0)
    fleet.wait_for_job(first, "COMPLETED")
    old = fleet.vm_id(N0)
    fleet.box.control.set_latency(stoppingSeconds=SLOW_SECONDS)
    fleet.box.wait_until(
        "Slurm to take the node for off while its VM still goes away",
        lambda: (
            fleet.node_flags(N0) >= {"POWERED_DOWN"}
            and "POWERING_DOWN" not in fleet.node_flags(N0)
            and fleet.vm_states().get(N0) == "STOPPING"
        ),
        60,
    )
    second = fleet.submit(1, "-w", N0)
    fleet.box.wait_until("the owner to be told", lambda: "to go" in fleet.comment(second), 20)
    assert fleet.request_states() == {} or "ACCEPTED" not in fleet.request_states().values()
    assert fleet.vm_id(N0) == old
    fleet.wait_for_job(second, "COMPLETED")
    assert fleet.vm_id(N0) not in ("", old)
    assert len(fleet.inserts()) == 2


def test_refused_deletion_is_said_once_and_done_when_it_is_allowed(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(0, reap_grace_seconds=1)
    refused = "refused, will be tried again"
    job_id = fleet.submit(1, "-w", N0)
    fleet.wait_for_job(job_id, "COMPLETED")
    fleet.box.control.add_fault(
        "POST", r".*/deleteInstances.*", kind="http", status=403, reason="forbidden", count=1000
    )
    fleet.box.wait_until("the refusal", lambda: bool(fleet.log_lines(refused)), 60)
    fleet.wait_for_passes()
    assert N0 in fleet.vm_states()
    assert len(fleet.log_lines(refused)) == 1
    fleet.box.control.clear_faults()
    fleet.wait_until_off(N0)


def test_vms_that_really_vanish_at_once_are_lost_when_slurm_misses_them_too(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(3, most_kills_a_pass=2, most_kills_percent=0)
    nodes = (N0, N1, N2)
    fleet.wait_until_up(*nodes)
    fleet.configure(f"SlurmdTimeout={SLURMD_TIMEOUT_SECONDS}")
    before = fleet.vm_id(N0)
    with fleet.interactive(N0, *UNTIL_TOLD):
        for node in nodes:
            fleet.box.control.vanish_instance(node)
        fleet.box.wait_until(
            "the daemon to say that it takes none down",
            lambda: bool(fleet.log_lines("too many kills for one pass")),
            30,
        )
        fleet.wait_until_up(*nodes, another_than=before)
    assert len(fleet.log_lines("condition over condition=KILLS_HELD")) == 1
