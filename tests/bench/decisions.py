"""CPU time of decisions for 10,000 nodes: settled, and with many or big jobs that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from rich.table import Table

from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.end_of_life import ends_of_life
from slurm_hooks.reconcile.snapshot import JobShare, ResumeCall
from slurm_hooks.slurm.model import BaseState, Job, JobState, Reservation
from tests.bench.measure import cpu_seconds
from tests.unit.reconcile.builders import NOW, World, example_cluster, job, node, off, starting, vm

NODES = 10_000
RUNS = 5
SHORT_LIMIT_SECONDS = 3600


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
    called = (call_of(small),)
    waking = [starting(name) for name in names]
    busy = [node(name, base=BaseState.ALLOCATED) for name in names]
    return {
        "powered down": World([off(name) for name in names], cluster=cluster),
        "powered down, without addresses": World(
            [replace(off(name), address=name) for name in names], cluster=cluster
        ),
        "running": World(busy, running, vms=[vm(name) for name in names], cluster=cluster),
        "running, all ends of life known": _with_known_ends(World(busy, running, cluster=cluster)),
        "10 jobs of 1,000 to be asked for": World(waking, big, cluster=cluster),
        "10,000 jobs, of which 100 have a place": World(waking, small, cluster=cluster),
        "the same, all in one call of ResumeProgram": World(
            waking, small, cluster=cluster, calls=called
        ),
    }


def call_of(jobs: Sequence[Job]) -> ResumeCall:
    """One call of ResumeProgram for all nodes of these jobs."""
    shares = tuple(JobShare(job.job_id, job.nodes) for job in jobs)
    return ResumeCall("call-1", NOW, tuple(n for job in jobs for n in job.nodes), shares)


def _with_known_ends(world: World) -> World:
    """Every VM ends at a time of its own, and Slurm has the reservations for that."""
    end_by_node = {
        node.name: NOW + timedelta(days=2, seconds=7 * number)
        for number, node in enumerate(world.nodes)
    }
    vms = [replace(vm(name), termination_time_utc=end) for name, end in end_by_node.items()]
    jobs = [
        replace(job, start_time_utc=NOW, time_limit_seconds=SHORT_LIMIT_SECONDS)
        for job in world.jobs
    ]
    ends = ends_of_life(end_by_node.items())
    reservations = [Reservation(end.name, end.nodes, end.time_utc) for end in ends]
    return replace(world, vms=vms, jobs=jobs, reservations=reservations)
