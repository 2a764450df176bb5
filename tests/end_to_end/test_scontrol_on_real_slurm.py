"""The scontrol client against real daemons of whatever Slurm is installed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from slurm_hooks.slurm.client import (
    NodeUpdate,
    ReservationSpecification,
    SlurmRefused,
    SlurmUnavailable,
)
from slurm_hooks.slurm.model import BaseState, Job, JobState, Node, NodeFlag
from slurm_hooks.slurm.scontrol import ScontrolClient
from slurm_hooks.slurm.versions import SlurmVersion
from tests.slurm_daemons import BIN_DIRECTORY, PrivateSlurm, installed_version, require_slurm
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ODD_TEXT = '"q" a=b State=IDLE [x] Comment=forged [u@2026-01-01T00:00:00] é; $(id) \\'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateSlurm]:
    require_slurm()
    started = PrivateSlurm(tmp_path_factory.mktemp("slurm"))
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture
def client(cluster: PrivateSlurm) -> ScontrolClient:
    return ScontrolClient(cluster.conf, BIN_DIRECTORY)


def node(client: ScontrolClient, name: str) -> Node:
    return client.read_nodes([name])[name]


def job(client: ScontrolClient, job_id: int) -> Job:
    return client.read().jobs[job_id]


def wait_for_flag(client: ScontrolClient, name: str, flag: NodeFlag) -> None:
    wait_until(f"{name} is {flag}", lambda: node(client, name).state.has(flag), 30)


def wait_for_registration(client: ScontrolClient, cluster: PrivateSlurm, name: str) -> None:
    """Have the node up, whichever test came before."""
    if node(client, name).state.has(NodeFlag.POWERED_DOWN):
        client.update_nodes([name], NodeUpdate.POWER_UP)
        wait_for_flag(client, name, NodeFlag.POWERING_UP)
        awake_since = datetime.now(UTC)
        wait_until(
            "a later second", lambda: datetime.now(UTC) - awake_since > timedelta(seconds=2), 10
        )
        cluster.start_slurmd(name)
    wait_until(
        f"{name} registers",
        lambda: not node(client, name).state.has(NodeFlag.POWERING_UP, NodeFlag.NOT_RESPONDING),
        30,
    )


def test_fresh_cluster_is_read_whole(client: ScontrolClient, cluster: PrivateSlurm) -> None:
    snapshot = client.read()
    assert list(snapshot.nodes) == cluster.node_names
    assert snapshot.partitions["cpu"].nodes == tuple(cluster.node_names)
    assert snapshot.unreadable == ()
    assert client.version() == installed_version()
    controller = client.responding_controller()
    assert controller is not None
    assert controller.role == "primary"


def test_job_wakes_its_nodes_and_runs_when_they_register(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    names = cluster.node_names[:2]
    job_id = cluster.submit("-w", ",".join(names), "-N2", "--time=90")
    wait_for_flag(client, names[0], NodeFlag.POWERING_UP)
    waiting = job(client, job_id)
    assert waiting.state is JobState.CONFIGURING
    assert waiting.nodes == tuple(names)
    assert waiting.time_limit_seconds == 90 * 60
    assert (waiting.batch, waiting.requeue, waiting.restarts) == (True, True, 0)
    assert waiting.start_time_utc is not None
    assert abs(waiting.start_time_utc - datetime.now(UTC)) < timedelta(minutes=1)

    client.set_admin_comment(job_id, ODD_TEXT)
    assert job(client, job_id).admin_comment == ODD_TEXT
    client.set_admin_comment(job_id, "")
    assert job(client, job_id).admin_comment == ""

    # slurmctld ignores a registration whose boot time, in whole seconds, is before the wake-up.
    awake_since = datetime.now(UTC)
    wait_until("a later second", lambda: datetime.now(UTC) - awake_since > timedelta(seconds=2), 10)
    for name in names:
        cluster.start_slurmd(name)
    # slurmctld looks for the nodes of configuring jobs every 30 seconds only.
    wait_until("the job runs", lambda: job(client, job_id).state is JobState.RUNNING, 60)
    up = node(client, names[0])
    assert not up.state.has(NodeFlag.POWERING_UP, NodeFlag.NOT_RESPONDING)
    assert up.boot_time_utc is not None
    assert abs(up.boot_time_utc - datetime.now(UTC)) < timedelta(minutes=2)


def test_job_whose_node_is_forced_down_is_requeued(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    name = cluster.node_names[2]
    job_id = cluster.submit("-w", name)
    wait_for_flag(client, name, NodeFlag.POWERING_UP)
    client.update_nodes([name], NodeUpdate.POWER_DOWN_FORCE, "STOCKOUT: none left")
    requeued = job(client, job_id)
    assert (requeued.state, requeued.nodes, requeued.restarts) == (JobState.PENDING, (), 1)
    assert node(client, name).reason == "STOCKOUT: none left"
    cluster.command("scancel", str(job_id))
    assert not job(client, job_id).is_active
    wait_for_flag(client, name, NodeFlag.POWERED_DOWN)


def test_node_is_powered_up_and_down_by_hand(client: ScontrolClient, cluster: PrivateSlurm) -> None:
    name = cluster.node_names[3]
    client.update_nodes([name], NodeUpdate.POWER_UP)
    wait_for_flag(client, name, NodeFlag.POWERING_UP)
    client.update_nodes([name], NodeUpdate.POWER_DOWN_FORCE)
    wait_for_flag(client, name, NodeFlag.POWERED_DOWN)
    assert node(client, name).state.base is BaseState.IDLE


def test_odd_reason_comes_back_whole_and_idle_takes_the_node_back(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    name = cluster.node_names[3]
    client.update_nodes([name], NodeUpdate.DRAIN, ODD_TEXT)
    drained = node(client, name)
    assert drained.reason == ODD_TEXT
    assert drained.state.has(NodeFlag.DRAIN)
    client.update_nodes([name], NodeUpdate.IDLE)
    assert not node(client, name).state.has(NodeFlag.DRAIN, NodeFlag.NOT_RESPONDING)


def test_node_drained_on_its_way_off_stays_drained_and_comment_and_job_follow(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    name = cluster.node_names[3]
    client.set_node_comment(name, ODD_TEXT)
    client.update_nodes([name], NodeUpdate.POWER_UP, "costs a comment")
    if installed_version() < SlurmVersion(23, 2, 0):
        client.set_node_comment(name, ODD_TEXT)
        assert node(client, name).reason == ""
    wait_for_flag(client, name, NodeFlag.POWERING_UP)
    client.update_nodes([name], NodeUpdate.POWER_DOWN_FORCE)
    wait_for_flag(client, name, NodeFlag.POWERING_DOWN)
    client.update_nodes([name], NodeUpdate.DRAIN, "slurm-hooks: pool held")
    wait_for_flag(client, name, NodeFlag.POWERED_DOWN)
    held = node(client, name)
    assert held.state.has(NodeFlag.DRAIN)
    assert (held.comment, held.reason) == (ODD_TEXT, "slurm-hooks: pool held")
    job_id = cluster.submit("-w", name)
    client.update_nodes([name], NodeUpdate.IDLE)
    wait_for_flag(client, name, NodeFlag.POWERING_UP)
    cluster.command("scancel", str(job_id))
    client.update_nodes([name], NodeUpdate.POWER_DOWN_FORCE)
    wait_for_flag(client, name, NodeFlag.POWERED_DOWN)
    client.set_node_comment(name, "")
    assert node(client, name).comment == ""


def test_reservation_is_read_in_utc(client: ScontrolClient, cluster: PrivateSlurm) -> None:
    before = datetime.now(UTC)
    answer = cluster.command(
        "scontrol",
        "create",
        "reservation",
        "reservationname=slurm-hooks-end",
        "starttime=now+1hour",
        "duration=10",
        f"nodes={cluster.node_names[3]}",
        "flags=maint,ignore_jobs",
        "user=root",
    )
    assert answer.returncode == 0, answer.stderr
    reservation = client.read().reservations["slurm-hooks-end"]
    assert reservation.nodes == (cluster.node_names[3],)
    assert {"MAINT", "IGNORE_JOBS"} <= reservation.flags
    assert reservation.start_time_utc is not None
    assert reservation.end_time_utc is not None
    assert abs(reservation.start_time_utc - before - timedelta(hours=1)) < timedelta(minutes=1)
    assert reservation.end_time_utc - reservation.start_time_utc == timedelta(minutes=10)


def test_reservation_is_made_once_and_deleted_once(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    nodes = tuple(cluster.node_names[1:3])
    client.create_reservation(ReservationSpecification("ours-1", nodes, start, 630))
    client.create_reservation(ReservationSpecification("ours-1", nodes[:1], start, 60))
    made = client.read().reservations["ours-1"]
    assert (made.nodes, made.start_time_utc) == (nodes, start)
    assert made.end_time_utc == start + timedelta(minutes=11)
    assert {"MAINT", "IGNORE_JOBS"} <= made.flags

    client.delete_reservation("ours-1")
    client.delete_reservation("ours-1")
    assert "ours-1" not in client.read().reservations


def test_reservation_of_the_past_begins_now_under_a_running_job(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    name = cluster.node_names[1]
    before = datetime.now(UTC)
    client.create_reservation(
        ReservationSpecification("ours-past", (name,), before - timedelta(hours=3), 600)
    )
    start = client.read().reservations["ours-past"].start_time_utc
    assert start is not None
    assert abs(start - before) < timedelta(minutes=1)
    client.delete_reservation("ours-past")


def test_signal_reaches_batch_script_and_step(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    name = cluster.node_names[2]
    script = cluster.directory / "trap.sh"
    script.write_text("""#!/bin/bash
trap 'echo told; exit 0' USR1
echo ready
while :; do sleep 1; done
""")
    wait_for_registration(client, cluster, name)
    answer = cluster.command("sbatch", "--parsable", "-w", name, "--output=trap.out", str(script))
    job_id = int(answer.stdout)
    output = cluster.directory / "trap.out"
    wait_until("the job runs", lambda: output.exists() and "ready" in output.read_text(), 60)
    client.signal_job(job_id, "USR1")
    wait_until("the trap ran", lambda: "told" in output.read_text(), 20)
    wait_until("the job ends", lambda: job(client, job_id).state is JobState.COMPLETED, 20)
    client.signal_job(job_id, "USR1")
    client.signal_job(999_999, "USR1")


def comments(client: ScontrolClient, job_ids: list[int]) -> list[str]:
    jobs = client.read().jobs
    return [jobs[job_id].admin_comment for job_id in job_ids]


def test_each_task_of_an_array_is_told_alone(client: ScontrolClient, cluster: PrivateSlurm) -> None:
    array_id = cluster.submit("--hold", "--array=1-3")
    for task in (1, 2, 3):
        # A held array is one record; what is asked of a single task makes a record for it.
        cluster.command("scontrol", "update", f"jobid={array_id}_{task}", "comment=split")
    last = job(client, array_id)
    assert last.part == "_3"
    client.set_admin_comment(array_id, "last", last.part)
    others = [array_id + 1, array_id + 2]
    assert comments(client, [array_id, *others]) == ["last", "", ""]
    client.set_admin_comment(others[0], "first")
    assert comments(client, [array_id, *others]) == ["last", "first", ""]


def test_each_component_of_a_heterogeneous_job_is_told_alone(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    leader = cluster.submit("--hold", ":", "--hold")
    part = job(client, leader).part
    client.set_admin_comment(leader, "first", part)
    client.set_admin_comment(leader + 1, "second")
    assert comments(client, [leader, leader + 1]) == ["first", "second"]


def test_job_name_that_imitates_another_job_changes_nothing(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    victim = cluster.submit("--hold")
    name = f"x\nJobId={victim} JobName=y UserId=u(7) JobState=CANCELLED"
    imitator = cluster.submit("--hold", "-J", name)
    jobs = client.read().jobs
    assert jobs[victim].state is JobState.PENDING
    assert jobs[imitator].name == name


def test_requests_that_slurmctld_refuses(client: ScontrolClient, cluster: PrivateSlurm) -> None:
    with pytest.raises(SlurmRefused, match="Invalid node name"):
        client.update_nodes(["demo-cpu-99"], NodeUpdate.DOWN, "x")
    with pytest.raises(SlurmRefused, match="Invalid node state"):
        client.update_nodes([cluster.node_names[3]], NodeUpdate.RESUME)
    with pytest.raises(SlurmRefused, match="Invalid job id"):
        client.set_admin_comment(999_999, "x")
    later = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(SlurmRefused, match="Invalid node name"):
        client.create_reservation(ReservationSpecification("ours", ("demo-cpu-99",), later, 60))


def test_no_controller_is_unavailable(cluster: PrivateSlurm, tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    port = next(line for line in cluster.conf.read_text().splitlines() if "SlurmctldPort" in line)
    conf.write_text(cluster.conf.read_text().replace(port, "SlurmctldPort=1"))
    client = ScontrolClient(conf, BIN_DIRECTORY, write_timeout_seconds=2)
    with pytest.raises(SlurmUnavailable):
        client.read()
    with pytest.raises(SlurmUnavailable):
        client.update_nodes([cluster.node_names[3]], NodeUpdate.DOWN, "x")
    assert client.responding_controller() is None


WELL = "slurm-hooks: OK health_run passed inst=71 boot=4567abcd ctx=background"
ILL = "slurm-hooks: REBOOT gpu_lost gpu 3 inst=71 boot=0123abcd ctx=prolog job=7 restarts=0"


def is_rebooting(client: ScontrolClient, name: str) -> bool:
    return node(client, name).state.has(NodeFlag.REBOOT_ISSUED)


def test_node_of_ours_is_rebooted_once_it_is_free_and_comes_back_drained(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    name = cluster.node_names[3]
    wait_for_registration(client, cluster, name)
    client.update_nodes([name], NodeUpdate.DRAIN, ILL)
    drained = node(client, name)
    assert drained.reason == ILL
    assert drained.reason_time_utc is not None
    assert abs(drained.reason_time_utc - datetime.now(UTC)) < timedelta(minutes=1)

    client.reboot_nodes([name], ILL)
    wait_until("the reboot is issued", lambda: is_rebooting(client, name), 20)
    assert node(client, name).reason == f"{ILL} : reboot issued"

    awake_since = datetime.now(UTC)
    wait_until("a later second", lambda: datetime.now(UTC) - awake_since > timedelta(seconds=2), 10)
    cluster.restart_slurmd(name)
    wait_until("it is back", lambda: not is_rebooting(client, name), 30)
    back = node(client, name)
    assert (back.state.base, back.reason) == (BaseState.IDLE, f"{ILL} : reboot issued")
    assert back.state.has(NodeFlag.DRAIN)
    assert back.boot_time_utc is not None
    assert back.boot_time_utc > awake_since

    client.update_nodes([name], None, WELL)
    client.update_nodes([name], NodeUpdate.RESUME)
    assert not node(client, name).state.has(NodeFlag.DRAIN)


def test_power_down_ends_a_reboot_that_does_not_come_back(
    client: ScontrolClient, cluster: PrivateSlurm
) -> None:
    name = cluster.node_names[3]
    wait_for_registration(client, cluster, name)
    client.update_nodes([name], NodeUpdate.DRAIN, ILL)
    client.reboot_nodes([name], ILL)
    wait_until("the reboot is issued", lambda: is_rebooting(client, name), 20)
    client.update_nodes([name], NodeUpdate.POWER_DOWN)
    wait_for_flag(client, name, NodeFlag.POWERED_DOWN)
    assert not node(client, name).state.has(NodeFlag.DRAIN, NodeFlag.REBOOT_ISSUED)
