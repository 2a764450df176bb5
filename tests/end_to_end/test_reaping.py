"""VMs that nothing needs are reaped by the daemon and by hand; what is not ours stays."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from slurm_hooks.compute.ownership import Mark, labels_of
from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import POOL, Fleet, short_times, write_cluster
from tests.end_to_end.lifecycle import MACHINE_TYPE, ZONE
from tests.flex_start import FLEX_START

pytestmark = pytest.mark.slow

OURS = labels_of(Mark("flexvm", "a3u"))
FOREIGN = "flexvm-a3u-7"
REAPED_SECONDS = 60


def insert_vm(fleet: Fleet, name: str, labels: Mapping[str, str]) -> None:
    """Make a VM in no group, over the API as anybody may."""
    body = {
        "name": name,
        "machineType": f"zones/{ZONE}/machineTypes/{MACHINE_TYPE}",
        "labels": labels,
        **FLEX_START,
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {"sourceImage": "projects/p/global/images/family/f"},
            }
        ],
        "networkInterfaces": [{"network": "global/networks/default"}],
    }
    project = fleet.box.state.project
    request = urllib.request.Request(
        f"{fleet.box.emulator_url}/compute/v1/projects/{project}/zones/{ZONE}/instances",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200
    fleet.box.wait_until(f"{name} to exist", lambda: name in fleet.vm_states(), 20)


def sync(fleet: Fleet, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `slurm-hooks sync` on the controller."""
    return fleet.box.run([sys.executable, "-m", "slurm_hooks.cli.main", "sync", *arguments])


def wait_until_gone(fleet: Fleet, *names: str) -> None:
    """Wait until the VMs are no more."""
    fleet.box.wait_until(
        f"{', '.join(names)} to be reaped",
        lambda: fleet.vm_states().keys().isdisjoint(names),
        REAPED_SECONDS,
    )


def test_daemon_reaps_a_vm_of_ours_without_node_and_leaves_a_foreign_one(
    start_fleet: Callable[..., Fleet],
) -> None:
    fleet = start_fleet(0, reap_grace_seconds=2, most_kills_a_pass=1, most_kills_percent=0)
    insert_vm(fleet, FOREIGN, {})
    insert_vm(fleet, "stray", OURS)
    wait_until_gone(fleet, "stray")
    fleet.wait_for_passes()
    assert set(fleet.vm_states()) == {FOREIGN}

    fleet.box.daemon.kill()
    insert_vm(fleet, "one", OURS)
    insert_vm(fleet, "two", OURS)
    fleet.box.daemon.start()
    fleet.box.wait_until(
        "the daemon to say that it kills none",
        lambda: len(fleet.log_lines("too many kills for one pass")) > 0,
        30,
    )
    fleet.wait_for_passes()
    assert len(fleet.log_lines("too many kills for one pass")) == 1
    assert set(fleet.vm_states()) == {FOREIGN, "one", "two"}
    shown = sync(fleet, "--dry-run")
    assert shown.returncode == 1
    assert "held back delete instance one" in shown.stdout
    confirmed = sync(fleet, "--force-kills", "--yes")
    assert confirmed.returncode == 0, confirmed.stderr
    wait_until_gone(fleet, "one", "two")
    assert set(fleet.vm_states()) == {FOREIGN}


def test_sync_shows_then_reaps_where_no_daemon_runs(start_fleet: Callable[..., Fleet]) -> None:
    fleet = start_fleet(0, reap_grace_seconds=1)
    fleet.box.daemon.kill()
    insert_vm(fleet, FOREIGN, {})
    insert_vm(fleet, "stray", OURS)
    fleet.box.wait_until(
        "the plan to have the VM",
        lambda: "delete instance stray" in sync(fleet, "--dry-run").stdout,
        30,
    )
    assert {FOREIGN, "stray"} == set(fleet.vm_states())

    unasked = sync(fleet)
    assert unasked.returncode == 2
    assert "stray" in fleet.vm_states()

    done = sync(fleet, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["fate"] == "STARTED"
    wait_until_gone(fleet, "stray")
    assert set(fleet.vm_states()) == {FOREIGN}
    assert sync(fleet, "--yes").returncode == 0

    fleet.box.daemon.start()
    woken = sync(fleet, "--yes")
    assert (woken.returncode, "woken" in woken.stdout) == (0, True)


def place_jobs(file: Path, compact: bool) -> None:
    """Have the pool of a cluster file place each job's VMs close together, or not any more."""
    document = json.loads(file.read_text(encoding="utf-8"))
    pool = next(pool for pool in document["node_pools"] if pool["id"] == POOL)
    pool["slurm_hooks"] = {"compact_placement": compact}
    file.write_text(json.dumps(document), encoding="utf-8")


def test_group_and_policy_of_a_compact_job_are_gone_when_the_pool_places_no_more_jobs(
    start_box: Callable[..., Box], tmp_path: Path
) -> None:
    policy = {"reap_grace_seconds": 2}
    file = write_cluster(tmp_path / "cluster.json", static=0, nodes=3, policy=policy)
    place_jobs(file, compact=True)
    fleet = Fleet(start_box(cluster_file=file, options=short_times(FAST_LATENCY)))
    project = fleet.witness.project
    job_id = fleet.submit(1, "-p", POOL)
    fleet.wait_for_job(job_id, "COMPLETED")
    (group,) = project.groups()
    assert (group.name.endswith(f"-j{job_id}-0"), group.workload_policy) == (
        True,
        *project.workload_policies(),
    )
    fleet.box.wait_until("its group to be reaped", lambda: project.groups() == [], REAPED_SECONDS)
    fleet.wait_for_passes()
    assert project.workload_policies() == [group.workload_policy], "the next job needs it"

    place_jobs(fleet.box.layout.cluster_file, compact=False)
    fleet.box.daemon.kill()
    shown = sync(fleet, "--dry-run")
    assert f"delete workload policy regions/us-central1/{group.workload_policy}" in shown.stdout
    fleet.box.daemon.start()
    fleet.box.wait_until(
        "the policy to be reaped", lambda: project.workload_policies() == [], REAPED_SECONDS
    )
