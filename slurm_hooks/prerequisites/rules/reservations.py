"""The reservations that pools name."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.facts import Answer, ProjectFacts, Reservation, Unread
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.rules.findings import Subject

LOOK_ROLE = "roles/compute.viewer"
_READY = "READY"


def reservation_of(value: str) -> str:
    """The reservation of a path that may name a block of it."""
    project, zone = commands.part(value, "projects"), commands.part(value, "zones")
    return f"projects/{project}/zones/{zone}/reservations/{commands.reservation_name(value)}"


def reservations_of(pool: NodePool) -> tuple[str, ...]:
    """The reservations that a pool names, each once."""
    values = pool.reservations.values if pool.reservations else ()
    return tuple(dict.fromkeys(reservation_of(value) for value in values))


def check_reservations(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Each exists, is for the pool's machine type, and together they are large enough."""
    for pool in cluster.pools.values():
        names = reservations_of(pool)
        share = -(-pool.max_node_count // len(names)) if names else 0
        for name in names:
            answer = facts.reservations.get(name)
            yield _one(Subject("reservation", name), answer, pool, share, facts)
        if names:
            yield from _size(names, pool, facts)


def _one(
    subject: Subject, answer: Answer[Reservation], pool: NodePool, share: int, facts: ProjectFacts
) -> Finding:
    if isinstance(answer, Unread):
        owner = commands.part(subject.name, "projects")
        return subject.unread(answer, commands.grant(owner, facts.caller, LOOK_ROLE))
    if answer is None:
        fix = commands.create_reservation(subject.name, pool.machine_type, share)
        return subject.fails("does not exist", fix)
    if answer.machine_type != pool.machine_type:
        return subject.fails(f"is for {answer.machine_type}, pool {pool.pool_id} is not")
    if not answer.specific:
        return subject.fails("is open to all VMs, so none can name it: make one that is not")
    if answer.status != _READY:
        return subject.warns(f"is {answer.status}")
    return subject.passes(f"{answer.count} VMs, {answer.in_use} in use")


def _size(names: tuple[str, ...], pool: NodePool, facts: ProjectFacts) -> Iterator[Finding]:
    """VMs in use may be the pool's own, so the size alone counts."""
    found = [facts.reservations.get(name) for name in names]
    known = [one for one in found if isinstance(one, Reservation)]
    count = sum(one.count for one in known)
    if len(known) < len(found) or count >= pool.max_node_count:
        return
    wanted = known[0].count + pool.max_node_count - count
    fix = commands.resize_reservation(names[0], wanted)
    subject = Subject("reservation size", f"pool {pool.pool_id}")
    detail = f"{count} VMs are reserved, the pool has up to {pool.max_node_count} nodes"
    if count < pool.min_node_count:
        yield subject.fails(f"{detail}, {pool.min_node_count} of them static", fix)
    else:
        yield subject.warns(detail, fix)
