"""CPU time of decisions for 10,000 nodes: settled, and with many or big jobs that wait."""

from __future__ import annotations

from dataclasses import replace

from rich.table import Table

from slurm_hooks.reconcile.decide import decide
from slurm_hooks.slurm.model import BaseState, JobState
from tests.bench.measure import cpu_seconds
from tests.unit.reconcile.builders import NOW, World, example_cluster, job, node, off, starting, vm

NODES = 10_000
RUNS = 5


def measure() -> Table:
    """One row a situation."""
    result = Table("decisions for 10,000 nodes", "CPU ms")
    for title, world in _worlds().items():
        snapshot, cluster = world.snapshot(), world.cluster
        seconds = cpu_seconds(lambda s=snapshot, c=cluster: decide(s, c, NOW), RUNS)  # type: ignore[misc]
        result.add_row(title, f"{seconds * 1000:.0f}")
    return result


def _worlds() -> dict[str, World]:
    cluster = example_cluster(max_node_count=NODES)
    names = list(cluster.node_names("a3u"))
    big = [job(n + 1, *names[n * 1000 : (n + 1) * 1000]) for n in range(NODES // 1000)]
    running = [replace(j, state=JobState.RUNNING) for j in big]
    small = [job(n + 1, name) for n, name in enumerate(names)]
    waking = [starting(name) for name in names]
    busy = [node(name, base=BaseState.ALLOCATED) for name in names]
    return {
        "powered down": World([off(name) for name in names], cluster=cluster),
        "running": World(busy, running, vms=[vm(name) for name in names], cluster=cluster),
        "10 jobs of 1,000 to be asked for": World(waking, big, cluster=cluster),
        "10,000 jobs, of which 100 have a place": World(waking, small, cluster=cluster),
    }
