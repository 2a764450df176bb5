"""slurmctld goes on answering when a large start ends before its nodes came.

Names of nodes that are off resolve here as little as on Compute Engine, and Debian's slurmctld
tries each of them for ten seconds: 30 nodes would be five minutes without an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from slurm_hooks.slurm.client import UNREACHABLE_ADDRESS
from tests.end_to_end.conftest import fleet_without_capacity
from tests.end_to_end.fleet import Fleet

pytestmark = pytest.mark.slow

NODES = 30
NAMES = [f"flexvm-a3u-{index}" for index in range(NODES)]
SECONDS = 60
"""A fifth of what the names would cost."""
ANSWER_SECONDS = 10.0


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Thirty nodes in their second life, when slurmctld has no address of them any more."""
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    with fleet_without_capacity(path, NODES) as fleet:
        start_and_cancel(fleet)
        yield fleet


def start_and_cancel(fleet: Fleet) -> None:
    job_id = fleet.submit(NODES)
    fleet.wait_for_requests(1)
    fleet.slurm("scancel", str(job_id))


def wait_until_off(fleet: Fleet) -> None:
    """Wait until all nodes are off; whoever asks has an answer in seconds, each time."""

    def are_off() -> bool:
        answer = fleet.box.run(("sinfo", "-h", "-o", "%D %T"), deadline_seconds=ANSWER_SECONDS)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.split() == [str(NODES), "idle~"]

    fleet.box.wait_until("all nodes to be off", are_off, SECONDS)


def addresses(fleet: Fleet) -> dict[str, str]:
    text = fleet.slurm("scontrol", "-o", "show", "nodes")
    return dict(re.findall(r"NodeName=(\S+) .*NodeAddr=(\S+)", text))


def wait_for_addresses(fleet: Fleet) -> None:
    fleet.box.wait_until(
        "all nodes to have an address",
        lambda: addresses(fleet) == dict.fromkeys(NAMES, UNREACHABLE_ADDRESS),
        SECONDS,
    )


def test_slurmctld_answers_while_a_start_of_nodes_that_have_slept_is_cancelled(
    fleet: Fleet,
) -> None:
    wait_until_off(fleet)
    wait_for_addresses(fleet)
    reason = fleet.reason(NAMES[0])
    assert reason.startswith("slurm-hooks: job ended")
    start_and_cancel(fleet)
    wait_until_off(fleet)


def test_slurmctld_answers_while_a_start_of_nodes_that_have_slept_fails(fleet: Fleet) -> None:
    wait_until_off(fleet)
    wait_for_addresses(fleet)
    job_id = fleet.submit(NODES, "--no-requeue")
    fleet.wait_for_requests(1)
    (name,) = fleet.active_requests()
    fleet.box.control.fail_resize_request(name, "QUOTA_EXCEEDED", "GPUS in us-central1")
    fleet.wait_for_job(job_id, "NODE_FAIL", SECONDS)
    wait_until_off(fleet)


def test_node_that_has_slept_takes_the_address_of_its_next_vm(fleet: Fleet) -> None:
    wait_until_off(fleet)
    wait_for_addresses(fleet)
    fleet.set_capacity(1)
    job_id = fleet.submit(1, "-w", NAMES[0])
    fleet.wait_for_job(job_id, "COMPLETED")
    assert f"0: {NAMES[0]}" in fleet.witness.job_output(job_id)
