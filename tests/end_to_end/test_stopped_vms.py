"""VMs that stop under jobs: their guests power off, or their hosts fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from slurm_hooks.reconcile.sightings import BELIEVED_AFTER
from tests.end_to_end.fleet import Fleet
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

LOST_SECONDS = BELIEVED_AFTER.total_seconds() + 10
"""The VM stops in order first; then it must be seen for long, by passes of a second each, on a
machine that is busy."""
RUNS_TWICE = """\
if [ -n "$SLURM_RESTART_COUNT" ]; then echo "again after $SLURM_RESTART_COUNT"; exit 0; fi
sleep 600
"""


def test_jobs_on_vms_that_stop_are_queued_again_and_run_on_new_ones(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(0)
    control = fleet.box.control
    ends = {N0: control.shut_down_guest, N1: control.host_error}
    jobs = {node: fleet.submit(1, "-w", node, more=RUNS_TWICE) for node in ends}
    for job_id in jobs.values():
        fleet.wait_for_job(job_id, "RUNNING")
    old_vms = {node: fleet.vm_id(node) for node in ends}
    for node, end in ends.items():
        end(node)
    for job_id in jobs.values():
        fleet.wait_for_job(job_id, "PENDING", LOST_SECONDS)
    for node, job_id in jobs.items():
        fleet.wait_for_job(job_id, "COMPLETED")
        assert "again after 1" in fleet.witness.job_output(job_id)
        assert fleet.vm_id(node) != old_vms[node]
    fleet.wait_until_off(N0, N1)
