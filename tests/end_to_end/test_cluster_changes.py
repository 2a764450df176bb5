"""Another cluster file while the cluster is at work: nobody tells the daemon, no job is harmed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import (
    GONE_SECONDS,
    POOL,
    UP_SECONDS,
    Fleet,
    example_document,
    short_times,
)
from tests.end_to_end.lifecycle import N0, N1, ZONE

pytestmark = pytest.mark.slow

LOGIN = "flexvm-login-0"
NEW_GENERATION = "slurm-hooks: new generation"
LEAVES = "slurm-hooks: leaves the cluster"


@pytest.fixture
def fleet(start_box: Callable[..., Box], tmp_path: Path) -> Fleet:
    """Two static nodes and a login node."""
    document = changed(example_document(login_nodes=1), scaling_spec=sizes(2, 2))
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return Fleet(start_box(cluster_file=file, options=short_times(FAST_LATENCY)))


def sizes(static: int, most: int) -> dict[str, int]:
    return {"min_node_count": static, "max_node_count": most}


def changed(document: dict[str, Any], **fields: object) -> dict[str, Any]:
    """The document with other fields of the compute pool."""
    pools = [{**p, **fields} if p["id"] == POOL else p for p in document["node_pools"]]
    return {**document, "node_pools": pools}


def apply(fleet: Fleet, **fields: object) -> None:
    """Put a changed cluster file in the place of the old one, and tell nobody."""
    file = fleet.box.layout.cluster_file
    new = file.with_suffix(".new")
    new.write_text(json.dumps(changed(json.loads(file.read_text()), **fields)), encoding="utf-8")
    new.rename(file)


def wait_for_reason(fleet: Fleet, node: str, reason: str) -> None:
    fleet.box.wait_until(
        f"{node} to be drained",
        lambda: "DRAIN" in fleet.node_flags(node) and fleet.reason(node) == reason,
        UP_SECONDS,
    )


def test_login_node_is_kept_generations_move_and_a_pool_shrinks_without_harm_to_jobs(
    fleet: Fleet,
) -> None:
    fleet.wait_until_up(N0, N1)
    fleet.box.wait_until(
        "the login node", lambda: fleet.vm_states().get(LOGIN) == "RUNNING", UP_SECONDS
    )
    first = fleet.vm_id(LOGIN)
    person = GoogleComputeClient(fleet.box.state.project, fleet.box.emulator_url, "anonymous")
    person.delete_instance(ZONE, LOGIN, "a person's wish")

    # A boot disk of another size: the idle node moves at once, the busy one after its job.
    busy = fleet.submit(1, "-w", N1, more="until [ -e go ]; do sleep 0.2; done")
    fleet.wait_for_job(busy, "RUNNING")
    before = {node: fleet.vm_id(node) for node in (N0, N1)}
    apply(fleet, boot_disk={"boot_disk_type": "hyperdisk-balanced", "boot_disk_size_gb": 500})
    fleet.wait_until_up(N0, another_than=before[N0])
    wait_for_reason(fleet, N1, NEW_GENERATION)
    assert fleet.vm_id(N1) == before[N1]
    assert fleet.job_state(busy) == "RUNNING"
    fleet.let_go()
    fleet.wait_for_job(busy, "COMPLETED")
    fleet.wait_until_up(N1, another_than=before[N1])
    assert fleet.reason(N1) in ("", "none")
    assert "Restarts=0" in fleet.witness.job(busy).text

    fleet.box.wait_until(
        "the login node to come back",
        lambda: fleet.vm_id(LOGIN) not in ("", first),
        UP_SECONDS,
    )

    # One node less, under a job: the job ends in peace, and nothing of the node is left.
    (fleet.box.layout.jobs / "go").unlink()
    last = fleet.submit(1, "-w", N1, more="until [ -e go ]; do sleep 0.2; done")
    fleet.wait_for_job(last, "RUNNING")
    apply(fleet, scaling_spec=sizes(1, 1))
    wait_for_reason(fleet, N1, LEAVES)
    fleet.wait_for_passes()
    assert fleet.job_state(last) == "RUNNING"
    apply(fleet, scaling_spec=sizes(1, 2))
    fleet.box.wait_until(
        "the drain to be lifted under the job",
        lambda: "DRAIN" not in fleet.node_flags(N1),
        UP_SECONDS,
    )
    assert fleet.job_state(last) == "RUNNING"
    apply(fleet, scaling_spec=sizes(1, 1))
    wait_for_reason(fleet, N1, LEAVES)
    fleet.let_go()
    fleet.wait_for_job(last, "COMPLETED")
    fleet.box.wait_until(
        f"{N1} to be off for good",
        lambda: fleet.is_off(N1) and fleet.reason(N1) == LEAVES,
        GONE_SECONDS,
    )
    assert set(fleet.vm_states()) == {LOGIN, N0}
    assert fleet.is_up(N0)
    assert "Restarts=0" in fleet.witness.job(last).text

    # The file names it again.
    apply(fleet, scaling_spec=sizes(2, 2))
    fleet.wait_until_up(N1)
