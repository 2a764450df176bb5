"""Pools without resize requests: VMs that are created by name live and die like all others."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.reconcile.sightings import BELIEVED_AFTER
from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import Fleet, example_document, short_times
from tests.end_to_end.lifecycle import ZONE

pytestmark = pytest.mark.slow

MOST_PASSES = 2 + BELIEVED_AFTER // timedelta(seconds=1)
"""Passes are a second apart, and the VM must be seen to be gone for so long."""

SPOT_0, SPOT_1 = "flexvm-cheap-0", "flexvm-cheap-1"
FIXED_0, FIXED_1 = "flexvm-fixed-0", "flexvm-fixed-1"
SURVIVOR = """\
if [ -n "$SLURM_RESTART_COUNT" ]; then echo "again after $SLURM_RESTART_COUNT"; exit 0; fi
sleep 600
"""


def write_pools(path: Path, *, static: int) -> Path:
    """A Spot pool of two dynamic nodes and an on-demand pool of two, some of them static."""
    document = example_document()
    login, example = document["node_pools"]
    del example["flex_start_max_duration"]
    cheap = example | {"id": "cheap", "provisioning_model": "SPOT"}
    fixed = example | {
        "id": "fixed",
        "provisioning_model": "ON_DEMAND",
        "scaling_spec": {"min_node_count": static, "max_node_count": 2},
    }
    document["node_pools"] = [login, cheap, fixed]
    document["orchestrator_spec"]["slurm_spec"]["partitions"] = [
        {"id": pool, "node_pool_ids": [pool]} for pool in ("cheap", "fixed")
    ]
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def start_pools(start_box: Callable[..., Box], tmp_path: Path) -> Callable[..., Fleet]:
    """A box with these two pools, under short times."""

    def start(static: int = 0) -> Fleet:
        file = write_pools(tmp_path / "cluster.json", static=static)
        return Fleet(start_box(cluster_file=file, options=short_times(FAST_LATENCY)))

    return start


def created_by_name(fleet: Fleet) -> int:
    """How many calls have created VMs by name."""
    return sum(call.path.endswith("/createInstances") for call in fleet.box.control.calls())


def test_job_on_spot_vms_is_queued_again_when_one_is_preempted_and_runs_to_its_end(
    start_pools: Callable[..., Fleet],
) -> None:
    fleet = start_pools()
    job_id = fleet.submit(2, "-p", "cheap", more=SURVIVOR)
    fleet.wait_for_job(job_id, "RUNNING")
    assert created_by_name(fleet) == 1
    first = fleet.vm_id(SPOT_0)
    fleet.box.control.preempt_instance(SPOT_0)
    fleet.box.wait_until("the VM to go", lambda: fleet.vm_id(SPOT_0) != first, 30)
    passes = fleet.passes()
    fleet.box.wait_until("us to see it", lambda: bool(fleet.log_lines("VM gone")), 30)
    lines = fleet.log_lines(r"\bpass nodes=|VM gone")
    told = next(number for number, line in enumerate(lines) if "VM gone" in line)
    assert told <= passes + MOST_PASSES
    fleet.wait_for_job(job_id, "COMPLETED")
    assert "again after 1" in fleet.witness.job_output(job_id)
    assert fleet.vm_id(SPOT_0) not in ("", first)
    fleet.wait_until_off(SPOT_0, SPOT_1)
    fleet.wait_for_passes()
    assert fleet.vm_states() == {}
    assert [group.target_size for group in fleet.witness.project.groups()] == [0]
    assert fleet.inserts() == [], "a resize request was made"
    assert fleet.slurm("scontrol", "show", "reservation").startswith("No reservations")


def test_static_on_demand_node_is_refilled_from_every_end_and_an_idle_dynamic_one_goes(
    start_pools: Callable[..., Fleet],
) -> None:
    fleet = start_pools(static=1)
    fleet.wait_until_up(FIXED_0)
    job_id = fleet.submit(1, "-p", "fixed", "-w", FIXED_0, more=SURVIVOR)
    fleet.wait_for_job(job_id, "RUNNING")
    person = GoogleComputeClient(fleet.box.state.project, fleet.box.emulator_url, "anonymous")
    first = fleet.vm_id(FIXED_0)
    person.delete_instance(ZONE, FIXED_0, "a person's wish")
    fleet.wait_until_up(FIXED_0, another_than=first)
    fleet.wait_for_job(job_id, "COMPLETED")
    assert "again after 1" in fleet.witness.job_output(job_id)

    # The service may let go of the member of a lost VM, or keep it without one.
    fleet.box.control.set_behaviour(keepsLostMembers=True)
    for end in (fleet.box.control.host_error, fleet.box.control.vanish_instance):
        before = fleet.vm_id(FIXED_0)
        end(FIXED_0)
        fleet.wait_until_up(FIXED_0, another_than=before)

    before = fleet.vm_id(FIXED_0)
    fleet.update(FIXED_1, "power_up")
    fleet.wait_until_up(FIXED_1)
    fleet.wait_until_off(FIXED_1)
    assert fleet.vm_id(FIXED_0) == before, "the static node was suspended too"
    assert fleet.vm_states() == {FIXED_0: "RUNNING"}


def test_job_whose_spot_vms_cannot_all_be_had_goes_back_to_the_queue_and_leaves_none(
    start_pools: Callable[..., Fleet],
) -> None:
    fleet = start_pools()
    fleet.set_capacity(1)
    job_id = fleet.submit(2, "-p", "cheap")
    fleet.box.wait_until("the job to fail to start", lambda: "failed:" in fleet.comment(job_id), 60)
    fleet.slurm("scontrol", "hold", str(job_id))
    assert "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" in fleet.comment(job_id)
    assert fleet.job_state(job_id) == "PENDING"
    fleet.wait_until_off(SPOT_0, SPOT_1)
    assert [group.target_size for group in fleet.witness.project.groups()] == [0]
    fleet.set_capacity(None)
    fleet.slurm("scontrol", "release", str(job_id))
    fleet.wait_for_job(job_id, "COMPLETED")
    fleet.wait_until_off(SPOT_0, SPOT_1)
    assert fleet.vm_states() == {}
