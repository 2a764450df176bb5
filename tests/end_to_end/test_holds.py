"""A pool that keeps failing is held, the next one takes its jobs, and refusals are told."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import Fleet, example_document, short_times
from tests.end_to_end.lifecycle import N0, N1

pytestmark = pytest.mark.slow

POOLS = ("a3u", "spare")
INSERT = r"/instanceGroupManagers/flexvm-({pool})-[^/]*/resizeRequests$"
FAILURES = 3
HOLD_SECONDS = 45
TOLD_SECONDS = 20
"""From the submission: a turn of the scheduler, ResumeProgram, two passes and the call."""
MISSING_PERMISSION = "Required 'compute.instanceGroupManagers.update' permission for 'projects/x'"


@pytest.fixture
def fleet(start_box: Callable[..., Box], tmp_path: Path) -> Fleet:
    """Two pools of four nodes in one partition: one that fails has more nodes to try."""
    document = example_document()
    first = next(pool for pool in document["node_pools"] if pool["id"] == "a3u")
    first["scaling_spec"] = {"min_node_count": 0, "max_node_count": 4}
    document["node_pools"].append({**first, "id": "spare"})
    document["orchestrator_spec"]["slurm_spec"]["partitions"] = [
        {"id": "a3u", "node_pool_ids": ["a3u", "spare"]}
    ]
    document["slurm_hooks"] = {
        "hold_after_failures": FAILURES,
        "hold_seconds": HOLD_SECONDS,
        "longest_hold_seconds": HOLD_SECONDS,
    }
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return Fleet(start_box(cluster_file=path, options=short_times(FAST_LATENCY)))


def refuse(
    fleet: Fleet, pools: tuple[str, ...], status: int, reason: str, message: str = ""
) -> None:
    fleet.box.control.clear_faults()
    fleet.box.control.add_fault(
        "POST",
        INSERT.format(pool="|".join(pools)),
        status=status,
        reason=reason,
        message=message,
        count=1000,
    )


def refused_pools(fleet: Fleet) -> list[str]:
    """The pool of each insert that was refused."""
    return [
        match[1]
        for call in fleet.box.control.calls()
        if call.status >= 400
        and (match := re.search(INSERT.format(pool="|".join(POOLS)), call.path.partition("?")[0]))
    ]


def is_held(fleet: Fleet, node: str) -> bool:
    return "DRAIN" in fleet.node_flags(node) and "pool held until" in fleet.reason(node)


def tells_of_failures(count: int, reason: str) -> bool:
    return re.search(rf"after {count} failures, the last at \S+: invalid", reason) is not None


def test_job_runs_on_the_next_pool_and_the_first_one_is_probed_after_its_hold(
    fleet: Fleet,
) -> None:
    refuse(fleet, POOLS, 400, "invalid", "no such machine")
    job_id = fleet.submit(1)
    fleet.box.wait_until("a first refusal", lambda: len(refused_pools(fleet)) == 1, 60)
    (pool,) = refused_pools(fleet)
    refuse(fleet, (pool,), 400, "invalid", "no such machine")
    first = [f"flexvm-{pool}-{index}" for index in range(4)]
    (other,) = set(POOLS) - {pool}
    fleet.box.wait_until(
        "the first pool to be held", lambda: all(is_held(fleet, node) for node in first), 120
    )
    assert refused_pools(fleet) == [pool] * FAILURES
    assert tells_of_failures(3, fleet.reason(first[0]))
    assert "no such machine" in fleet.reason(first[0])

    # In order for slurmctld, which may lose its last seconds otherwise.
    fleet.box.daemon.kill(signal.SIGKILL)
    fleet.box.slurmctld.kill(signal.SIGTERM)
    fleet.box.slurmctld.start()
    fleet.box.daemon.start()
    fleet.wait_for_job(job_id, "COMPLETED")
    assert f"0: flexvm-{other}-" in fleet.witness.job_output(job_id)
    assert refused_pools(fleet) == [pool] * FAILURES

    fleet.box.wait_until(
        "the first pool to be offered again",
        lambda: not any(is_held(fleet, node) for node in first),
        2 * HOLD_SECONDS,
    )
    following = fleet.submit(1, "-w", first[1])
    fleet.box.wait_until("the next failure to hold it", lambda: is_held(fleet, first[0]), 60)
    assert refused_pools(fleet) == [pool] * (FAILURES + 1)
    assert tells_of_failures(4, fleet.reason(first[0]))

    fleet.box.control.clear_faults()
    fleet.wait_for_job(following, "COMPLETED", 4 * HOLD_SECONDS)
    fleet.box.wait_until(
        "its success to be noted",
        lambda: "pool failed" not in fleet.slurm("scontrol", "-o", "show", "node", first[0]),
        10,
    )
    assert not any("DRAIN" in fleet.node_flags(node) for node in first)


def test_job_learns_in_seconds_what_to_grant_and_keeps_that_when_it_cannot_be_requeued(
    fleet: Fleet,
) -> None:
    refuse(fleet, ("a3u",), 403, "forbidden", MISSING_PERMISSION)
    requeued = fleet.submit(1, "-w", N0)
    ended = fleet.submit(1, "-w", N1, "--no-requeue")
    fleet.wait_for_job(ended, "NODE_FAIL", TOLD_SECONDS)
    fleet.wait_for_job(requeued, "PENDING", TOLD_SECONDS)
    for job_id, node in ((requeued, N0), (ended, N1)):
        assert f"forbidden: {MISSING_PERMISSION}" in fleet.comment(job_id)
        assert MISSING_PERMISSION in fleet.reason(node)
    fleet.box.control.clear_faults()
    fleet.wait_for_job(requeued, "COMPLETED")
