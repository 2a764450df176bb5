"""What we ask Compute Engine for: names, marks and contents of templates, groups and requests.

Names are derived, so that asking twice is asking once. A template generation is a digest of the
template's contents and the pool's zones: a changed pool gets a new generation, since templates are
immutable. A request of a job is named after the job and its restart count, which Slurm raises with
every requeue, so each start of a job has requests of its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence

from slurm_hooks.cluster.topology import Cluster, NodePool, ProvisioningModel
from slurm_hooks.compute.model import (
    GroupReference,
    GroupSpecification,
    RequestReference,
    RequestSpecification,
    ReservationSpecification,
    Scope,
    ScopeKind,
    TemplateSpecification,
    WorkloadPolicySpecification,
)
from slurm_hooks.compute.ownership import Mark, encode, hash_of_nodes, labels_of
from slurm_hooks.reconcile.node_metadata import metadata_of
from slurm_hooks.slurm.model import Job

DEFAULT_SERVICE_ACCOUNT = "default"
"""Compute Engine's name for the project's own account, which VMs have where none is said."""
GENERATION_LENGTH = 8
NODES_HASH_LENGTH = 6
LONGEST_POOL_PART = 50
LONGEST_POOL_PART_WITH_JOB = 32
"""Of a name that ends with a generation and an ordinal, or also with a job and its restarts;
Compute Engine takes 63 characters."""
SHORTEST_RUN_SECONDS = 600
"""The least that Compute Engine takes as a request's run duration."""


def pool_scope(pool: NodePool) -> Scope:
    """Where a pool's groups live: its zone, or its region when it has several zones."""
    if len(pool.zones) == 1:
        return Scope(ScopeKind.ZONE, pool.zones[0])
    return Scope(ScopeKind.REGION, pool.region)


def template_of(cluster: Cluster, pool: NodePool) -> TemplateSpecification:
    """The instance template of a pool; its name ends with the generation."""
    ours = labels_of(Mark(cluster.cluster_id, pool.pool_id))
    unnamed = TemplateSpecification(
        name="",
        machine_type=pool.machine_type,
        provisioning_model=pool.provisioning_model.value,
        source_image=pool.source_image,
        network=cluster.network,
        subnetwork=cluster.subnetwork,
        run_duration_seconds=pool.run_duration_seconds,
        boot_disk_type=pool.boot_disk_type,
        boot_disk_size_gb=pool.boot_disk_size_gb,
        public_ip=pool.public_ip,
        service_account=cluster.service_account or DEFAULT_SERVICE_ACCOUNT,
        accelerator_count=pool.accelerator_count,
        labels=tuple(sorted({**dict(pool.labels), **ours}.items())),
        metadata=metadata_of(cluster, pool),
        reservation=_reservation(pool),
        confidential_instance_type=pool.confidential_instance_type or "",
    )
    # a template has no zone, but VMs of another zone are not those that are wanted
    generation = _digest(repr((dataclasses.astuple(unnamed), pool.zones)), GENERATION_LENGTH)
    stem = _pool_part(cluster, pool, LONGEST_POOL_PART)
    return dataclasses.replace(unnamed, name=f"{stem}-{generation}")


def _reservation(pool: NodePool) -> ReservationSpecification | None:
    reservations = pool.reservations
    if reservations is None:
        return None
    return ReservationSpecification(
        reservations.affinity.value, reservations.key, reservations.values, reservations.bound
    )


def generation_of(template: TemplateSpecification) -> str:
    """The generation at the end of a template's name."""
    return template.name.rpartition("-")[2]


def group_of(cluster: Cluster, pool: NodePool) -> GroupSpecification:
    """The first managed instance group of a pool's present generation, named as its template."""
    template = template_of(cluster, pool)
    scope = pool_scope(pool)
    return GroupSpecification(
        reference=GroupReference(scope, template.name),
        template=template.name,
        description=encode(
            Mark(
                cluster.cluster_id,
                pool.pool_id,
                generation=generation_of(template),
                provisioning_model="" if uses_requests(pool) else pool.provisioning_model.value,
            )
        ),
        zones=pool.zones if scope.kind is ScopeKind.REGION else (),
    )


def group_of_job(cluster: Cluster, pool: NodePool, job: Job) -> GroupSpecification:
    """The first group of one start of a job whose VMs stand close together: its own, since
    Compute Engine places the VMs of a group."""
    present = group_of(cluster, pool)
    generation = present.template.rpartition("-")[2]
    stem = _pool_part(cluster, pool, LONGEST_POOL_PART_WITH_JOB)
    name = f"{stem}-{generation}-j{job.job_id}-{job.restarts}"
    mark = Mark(
        cluster.cluster_id,
        pool.pool_id,
        generation=generation,
        job_id=job.job_id,
        restarts=job.restarts,
    )
    return dataclasses.replace(
        present,
        reference=GroupReference(present.reference.scope, name),
        description=encode(mark),
        workload_policy=workload_policy_of(cluster, pool),
    )


def workload_policy_of(cluster: Cluster, pool: NodePool) -> WorkloadPolicySpecification:
    """The one policy that places the VMs of all jobs of a pool. It stays between them, since a
    job that came while it goes would be refused its group."""
    return WorkloadPolicySpecification(
        Scope(ScopeKind.REGION, pool.region),
        f"{_pool_part(cluster, pool, LONGEST_POOL_PART)}-compact",
        encode(Mark(cluster.cluster_id, pool.pool_id)),
    )


def with_ordinal(first: GroupSpecification, ordinal: int) -> GroupSpecification:
    """The second, third... group of the generation of a pool's first one: `GROUP-2`."""
    if ordinal == 1:
        return first
    reference = GroupReference(first.reference.scope, f"{first.reference.name}-{ordinal}")
    return dataclasses.replace(first, reference=reference)


def request_stem(nodes: Sequence[str], job: Job | None) -> str:
    """What the names of all requests of one start for exactly these nodes begin with.

    A number follows, since a name is never used twice.
    """
    digest = _digest("\n".join(sorted(nodes)), NODES_HASH_LENGTH)
    return f"job-{job.job_id}-{job.restarts}-{digest}" if job else f"node-{digest}"


def request_of(
    cluster: Cluster,
    pool: NodePool,
    reference: RequestReference,
    nodes: Sequence[str],
    job: Job | None,
    run_duration_seconds: int | None,
) -> RequestSpecification:
    """The resize request for exactly these nodes, of a job or of nobody."""
    mark = Mark(
        cluster.cluster_id,
        pool.pool_id,
        job_id=job.job_id if job else None,
        restarts=job.restarts if job else None,
        nodes_hash=hash_of_nodes(nodes),
    )
    return RequestSpecification(
        reference=reference,
        instances=tuple(nodes),
        description=encode(mark),
        run_duration_seconds=run_duration_seconds,
    )


def run_duration_of(pool: NodePool, jobs: Iterable[Job], margin_seconds: int) -> int | None:
    """How many seconds the VMs of these jobs live: the pool's time, or less where it follows them.

    Nobody's VMs, and those of a job without a time limit, get the pool's time.
    """
    longest, limits = pool.run_duration_seconds, [job.time_limit_seconds for job in jobs]
    known = [limit for limit in limits if limit is not None]
    if not pool.run_duration_follows_job or longest is None or not limits:
        return longest
    if len(known) < len(limits):
        return longest
    return min(longest, max(SHORTEST_RUN_SECONDS, max(known) + margin_seconds))


def present_generations(cluster: Cluster) -> frozenset[tuple[str, str]]:
    """Pool and template generation of every pool, as the cluster file has them now."""
    return frozenset(
        (pool.pool_id, generation_of(template_of(cluster, pool))) for pool in cluster.pools.values()
    )


def is_outdated(mark: Mark, present: frozenset[tuple[str, str]]) -> bool:
    """Whether a group with this mark is of a generation that its pool has left behind."""
    return mark.generation != "" and (mark.pool, mark.generation) not in present


def is_in_slurm(pool: NodePool) -> bool:
    """Whether the pool's VMs are nodes of Slurm, which asks for them; login nodes are not."""
    return not pool.is_login


def uses_requests(pool: NodePool) -> bool:
    """Whether the pool's VMs come by resize requests; the service offers them for Flex-start
    alone, and those of all other pools are created by name."""
    return pool.provisioning_model is ProvisioningModel.FLEX_START


def _pool_part(cluster: Cluster, pool: NodePool, length: int) -> str:
    """What a pool's names begin with. A cut one still differs from others' by the generation,
    which is a digest of both ids, too."""
    return f"{cluster.cluster_id}-{pool.pool_id}"[:length].rstrip("-")


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
