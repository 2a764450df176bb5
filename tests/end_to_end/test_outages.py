"""While Slurm or Compute Engine does not answer nothing is killed and nothing is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from slurm_hooks.sandbox.box.box import Daemon
from tests.end_to_end.fleet import UNTIL_TOLD, Fleet
from tests.end_to_end.lifecycle import N0, N1
from tests.end_to_end.watch import Watch

pytestmark = pytest.mark.slow

MESSAGE_TIMEOUT_SECONDS = 3
"""How long Slurm's commands wait for a slurmctld that does not answer."""
MANY = 100_000


@contextmanager
def stopped(daemon: Daemon) -> Iterator[None]:
    """A daemon that exists and does nothing, as on a machine that swaps."""
    process = daemon.state.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def test_outages_of_slurm_and_compute_engine_cost_nothing_and_work_resumes(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(1)
    fleet.wait_until_up(N0)
    fleet.configure(f"MessageTimeout={MESSAGE_TIMEOUT_SECONDS}")
    vm, changes = fleet.vm_id(N0), fleet.changes()
    control = fleet.box.control
    with fleet.interactive(N0, *UNTIL_TOLD) as running:
        fleet.box.wait_until("the job", lambda: "ALLOCATED" in fleet.node_flags(N0), 30)

        slurm = Watch(fleet, "Slurm")
        with stopped(fleet.box.slurmctld):
            slurm.wait_until_noticed()
        slurm.wait_until_over()

        compute = Watch(fleet, "Compute")
        control.add_fault(count=MANY)
        with fleet.interactive(N1, "hostname") as waiting:
            compute.wait_until_noticed()
            control.clear_faults()
            compute.wait_until_over()
            assert waiting.wait(60) == 0

        compute = Watch(fleet, "Compute")
        control.add_fault(kind="drop", count=MANY)
        compute.wait_until_noticed()
        control.clear_faults()
        compute.wait_until_over()

        fleet.wait_for_passes()
        assert fleet.changes()[: len(changes)] == changes
        assert not [line for line in fleet.changes()[len(changes) :] if N0 in line]
        assert fleet.vm_id(N0) == vm
        fleet.let_go()
        assert running.wait(30) == 0


def test_a_request_that_meets_the_rate_limit_is_made_again(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(0)
    fleet.box.control.add_fault(
        "POST", r"/resizeRequests$", status=403, reason="rateLimitExceeded", count=1
    )
    with fleet.interactive(N0, "hostname") as job:
        assert job.wait(90) == 0
    assert len(fleet.inserts()) == 1
    assert [fault.hits for fault in fleet.box.control.faults()] == [1]
