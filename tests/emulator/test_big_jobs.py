"""Jobs beyond one group's size, with the real client before the emulator."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import ComputeSnapshot
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.reconcile.passes import Passes
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.scontrol import ScontrolClient
from tests.bench.recorded_slurm import RecordedSlurm
from tests.emulator_process import EmulatorProcess
from tests.unit.reconcile.builders import example_cluster

pytestmark = pytest.mark.slow

NODES = 1500
SECONDS = 120


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorProcess]:
    with EmulatorProcess() as started:
        yield started


def passes_over(cluster: Cluster, emulator: EmulatorProcess, spool: Path) -> Passes:
    """A controller whose Slurm shows one job that waits for all nodes of the pool."""
    slurm = RecordedSlurm(list(cluster.node_names("a3u")), NODES)
    return Passes(
        cluster,
        ScontrolClient(spool / "slurm.conf", runner=slurm),
        GoogleComputeClient(cluster.project, emulator.url, "anonymous"),
        CallsDirectory(spool, expand),
        ConsolesDirectory(spool / "consoles"),
        lambda: datetime.now(UTC),
    )


def run_until(passes: Passes, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        passes.run()


@pytest.mark.parametrize("compact_placement", [False, True])
def test_job_of_1500_nodes_gets_its_vms_in_two_groups(
    emulator: EmulatorProcess, tmp_path: Path, compact_placement: bool
) -> None:
    cluster = example_cluster(max_node_count=NODES)
    pool = replace(cluster.pools["a3u"], compact_placement=compact_placement)
    cluster_id = "compact" if compact_placement else "plain"
    cluster = replace(cluster, cluster_id=cluster_id, pools={"a3u": pool})
    passes = passes_over(cluster, emulator, tmp_path)
    reader = GoogleComputeClient(cluster.project, emulator.url, "anonymous")

    def read() -> ComputeSnapshot:
        return reader.read(cluster_id)

    run_until(passes, lambda: len(read().instances) == NODES)
    snapshot = read()
    per_group = Counter(vm.group for vm in snapshot.instances.values())
    assert sorted(per_group.values()) == [500, 1000]
    assert sorted(len(r.instances) for r in snapshot.requests.values()) == [500, 1000]
    first, second = sorted(reference.name for reference in snapshot.groups)
    assert second == f"{first}-2"
