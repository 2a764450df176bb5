"""What a plan costs the jobs: who holds nodes that leave or get new VMs, who names them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slurm_hooks.apply.changes import Changes
from slurm_hooks.cluster.topology import Cluster, parse_node_name
from slurm_hooks.slurm.model import Job, JobState, SlurmSnapshot


@dataclass(frozen=True, slots=True)
class JobOnNodes:
    """A job by its id as Slurm's commands take it, its user, and the nodes that are in question."""

    job: str
    user: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Uses:
    """Who uses some nodes: jobs that hold them, jobs that wait and name them, reservations."""

    nodes: tuple[str, ...] = ()
    holding: tuple[JobOnNodes, ...] = ()
    naming: tuple[JobOnNodes, ...] = ()
    reservations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Impact:
    """`leaving` are Slurm's nodes that the file does not name, `renewed` those with VMs to come.

    `is_known` is False where slurmctld could not be asked.
    """

    leaving: Uses = Uses()
    renewed: Uses = Uses()
    is_known: bool = True


def impact_of(
    changes: Changes, applied: Cluster | None, wanted: Cluster, slurm: SlurmSnapshot | None
) -> Impact:
    """The impact on the jobs that Slurm has now; None is a slurmctld that does not answer."""
    if slurm is None:
        gone = () if applied is None else _unnamed(_all_nodes(applied), wanted)
        return Impact(Uses(gone), Uses(changes.renewed_nodes), is_known=False)
    leaving = leaving_nodes(wanted, slurm)
    renewed = [name for name in changes.renewed_nodes if name in slurm.nodes]
    return Impact(uses_of(leaving, slurm), uses_of(renewed, slurm))


def leaving_nodes(wanted: Cluster, slurm: SlurmSnapshot) -> tuple[str, ...]:
    """Slurm's nodes of this cluster that its file does not name (any more)."""
    return _unnamed(slurm.nodes, wanted)


def slurm_node_names(cluster: Cluster) -> frozenset[str]:
    """The nodes that Slurm is to have of a cluster."""
    return frozenset(_all_nodes(cluster))


def ours_of(names: Iterable[str], cluster_id: str) -> frozenset[str]:
    """The names among these that are of a cluster."""
    return frozenset(
        name
        for name in names
        if (parts := parse_node_name(name)) is not None and parts.cluster == cluster_id
    )


def uses_of(nodes: Iterable[str], slurm: SlurmSnapshot) -> Uses:
    """Who uses these nodes."""
    wanted = tuple(nodes)
    asked = frozenset(wanted)
    active = [job for job in slurm.jobs.values() if job.is_active]
    # one that was queued again is still shown with the nodes that it had
    placed = [job for job in active if job.state is not JobState.PENDING]
    waiting = [job for job in active if job.state is JobState.PENDING]
    return Uses(
        nodes=wanted,
        holding=tuple(_on(job, job.nodes, asked) for job in placed if asked & {*job.nodes}),
        naming=tuple(
            _on(job, job.required_nodes, asked) for job in waiting if asked & {*job.required_nodes}
        ),
        reservations=tuple(
            name
            for name, reservation in slurm.reservations.items()
            if asked & {*reservation.nodes} and not name.startswith("slurm-hooks-")
        ),
    )


def _on(job: Job, nodes: Iterable[str], asked: frozenset[str]) -> JobOnNodes:
    return JobOnNodes(f"{job.job_id}{job.part}", job.user, tuple(n for n in nodes if n in asked))


def _unnamed(names: Iterable[str], wanted: Cluster) -> tuple[str, ...]:
    listed = tuple(names)
    unnamed = ours_of(listed, wanted.cluster_id) - slurm_node_names(wanted)
    return tuple(name for name in listed if name in unnamed)


def _all_nodes(cluster: Cluster) -> Iterable[str]:
    for pool in cluster.pools.values():
        if not pool.is_login:
            yield from cluster.node_names(pool.pool_id)
