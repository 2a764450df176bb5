"""From a waiting job to the last deleted VM, on real Slurm daemons and the real client."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.lifecycle import COME_SECONDS, N0, N1, Lifecycle

pytestmark = pytest.mark.slow

CANCEL_SECONDS = 15
"""What a person who cancels a waiting job is promised: its request and nodes are free by then."""


@pytest.fixture
def cluster(start_box: Callable[..., Box]) -> Iterator[Lifecycle]:
    """A cluster whose zone has no capacity at first."""
    with start_box(capacity=0, suspend_time_seconds=10) as box:
        yield Lifecycle(box)


@pytest.fixture
def cluster_without_daemon(start_box: Callable[..., Box]) -> Iterator[Lifecycle]:
    """A cluster in which no slurm-hooksd runs."""
    with start_box(capacity=2, suspend_time_seconds=10, daemon=False) as box:
        yield Lifecycle(box)


def test_gang_job_waits_gets_both_nodes_at_once_runs_and_they_go(cluster: Lifecycle) -> None:
    job_id = cluster.submit(2)
    cluster.wait_for_requests(1)
    cluster.box.wait_until(
        "the owner to be told",
        lambda: "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" in cluster.comment(job_id),
        30,
    )
    assert "waiting for capacity for 2 x a3-ultragpu-8g in us-central1-a" in cluster.comment(job_id)

    cluster.set_capacity(1)
    cluster.box.wait_until(
        "another attempt to fail for want of one VM", lambda: cluster.vm_states() == {}, 10
    )
    cluster.set_capacity(2)
    cluster.wait_for_job(job_id, "COMPLETED")
    lines = cluster.witness.job_output(job_id).splitlines()
    assert sorted(lines) == [f"0: {N0} of job {job_id}", f"1: {N1} of job {job_id}"]
    assert len(cluster.inserts()) == 1

    cluster.wait_until_all_is_gone()
    project = cluster.witness.project
    assert [group.target_size for group in project.groups()] == [0]
    assert len(project.templates()) == 1


def test_two_jobs_of_one_resume_call_get_two_requests(cluster: Lifecycle) -> None:
    # Slurm starts both jobs of an array in one scheduling pass, so one call asks for both nodes.
    array = cluster.submit(1, "--array=0-1")
    cluster.wait_for_requests(2)
    assert cluster.resume_calls() == ["flexvm-a3u-[0-1]"]
    assert sorted(cluster.requested_nodes()) == [(N0,), (N1,)]
    cluster.set_capacity(2)
    cluster.box.wait_until(
        "both jobs to be COMPLETED",
        lambda: cluster.job_states(array) == ["COMPLETED", "COMPLETED"],
        COME_SECONDS,
    )
    assert len(cluster.inserts()) == 2


def test_job_cancelled_while_it_waits_frees_request_and_nodes(cluster: Lifecycle) -> None:
    job_id = cluster.submit(2)
    cluster.wait_for_requests(1)
    cluster.slurm("scancel", str(job_id))
    cluster.box.wait_until(
        "the request to be given up and the nodes to be free",
        lambda: (
            "ACCEPTED" not in cluster.request_states().values()
            and not any("POWERING_UP" in cluster.node_flags(node) for node in (N0, N1))
        ),
        CANCEL_SECONDS,
    )
    cluster.set_capacity(2)
    cluster.wait_until_all_is_gone()
    following = cluster.submit(2)
    cluster.wait_for_job(following, "COMPLETED")


def test_node_powered_down_while_its_vm_boots_loses_the_vm(cluster: Lifecycle) -> None:
    cluster.box.control.set_latency(stagingSeconds=30.0)
    cluster.set_capacity(2)
    job_id = cluster.submit(1, "--no-requeue")
    cluster.box.wait_until(
        "the VM to boot", lambda: set(cluster.vm_states().values()) == {"STAGING"}, 60
    )
    (node,) = cluster.vm_states()
    cluster.slurm(
        "scontrol", "update", f"nodename={node}", "state=power_down_force", "reason=by hand"
    )
    cluster.box.control.set_latency(stagingSeconds=0.2)
    cluster.wait_until_all_is_gone()
    assert cluster.job_state(job_id) == "NODE_FAIL"


def test_failed_request_requeues_the_job_with_the_reason(cluster: Lifecycle) -> None:
    job_id = cluster.submit(2)
    cluster.wait_for_requests(1)
    (name,) = cluster.request_states()
    cluster.box.control.fail_resize_request(name, "QUOTA_EXCEEDED", "GPUS in us-central1")
    cluster.box.wait_until(
        "the job to be told", lambda: "QUOTA_EXCEEDED" in cluster.comment(job_id), 15
    )
    cluster.wait_for_job(job_id, "PENDING", 15)
    cluster.set_capacity(2)
    cluster.wait_for_job(job_id, "COMPLETED", 120)


def test_killed_slurmctld_finds_its_waiting_job_and_request_again(cluster: Lifecycle) -> None:
    job_id = cluster.submit(2)
    cluster.wait_for_requests(1)
    cluster.box.slurmctld.kill(signal.SIGKILL)
    cluster.box.slurmctld.start()
    cluster.set_capacity(2)
    cluster.wait_for_job(job_id, "COMPLETED")
    assert len(cluster.inserts()) == 1


def test_daemon_killed_right_after_the_insert_leaves_exactly_one_request(
    cluster: Lifecycle,
) -> None:
    # Reads of operations hang, so the daemon is killed before it can learn anything of its insert.
    cluster.box.control.add_fault(
        "GET", r".*/operations/.*", kind="delay", delay_seconds=20.0, count=1000
    )
    cluster.box.control.clear_calls()
    job_id = cluster.submit(2)
    cluster.box.wait_until("the insert", lambda: len(cluster.request_states()) == 1, 90)
    cluster.box.daemon.kill(signal.SIGKILL)
    cluster.box.control.clear_faults()
    cluster.box.daemon.start()
    cluster.box.wait_until(
        "the new daemon to have looked", lambda: "waiting for" in cluster.comment(job_id), 30
    )
    assert len(cluster.request_states()) == 1
    cluster.set_capacity(2)
    cluster.wait_for_job(job_id, "COMPLETED")
    assert len(cluster.inserts()) == 1


def test_job_runs_and_nodes_go_when_no_daemon_runs_at_all(
    cluster_without_daemon: Lifecycle,
) -> None:
    job_id = cluster_without_daemon.submit(2)
    cluster_without_daemon.wait_for_job(job_id, "COMPLETED")
    cluster_without_daemon.wait_until_all_is_gone()
