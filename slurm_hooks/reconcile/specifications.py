"""What we ask Compute Engine for: names, marks and contents of templates, groups and requests.

Names are derived, so that asking twice is asking once. A template generation is a digest of the
template's contents: a changed pool gets a new generation, since templates are immutable. A
request of a job is named after the job and its restart count, which Slurm raises with every
requeue, so each start of a job has requests of its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Sequence

from slurm_hooks.cluster.topology import Cluster, NodePool, ProvisioningModel
from slurm_hooks.compute.model import (
    GroupReference,
    GroupSpecification,
    RequestReference,
    RequestSpecification,
    Scope,
    ScopeKind,
    TemplateSpecification,
)
from slurm_hooks.compute.ownership import Mark, encode, hash_of_nodes, labels_of
from slurm_hooks.slurm.model import Job

GENERATION_LENGTH = 8
NODES_HASH_LENGTH = 6


def pool_scope(pool: NodePool) -> Scope:
    """Where a pool's groups live: its zone, or its region when it has several zones."""
    if len(pool.zones) == 1:
        return Scope(ScopeKind.ZONE, pool.zones[0])
    return Scope(ScopeKind.REGION, pool.region)


def template_of(cluster: Cluster, pool: NodePool) -> TemplateSpecification:
    """The instance template of a pool; its name ends with the generation."""
    metadata = (("startup-script", pool.startup_script),) if pool.startup_script else ()
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
        service_account=cluster.service_account,
        accelerator_count=pool.accelerator_count,
        labels=tuple(sorted({**dict(pool.labels), **ours}.items())),
        metadata=metadata,
    )
    generation = _digest(repr(dataclasses.astuple(unnamed)), GENERATION_LENGTH)
    return dataclasses.replace(unnamed, name=f"{cluster.cluster_id}-{pool.pool_id}-{generation}")


def generation_of(template: TemplateSpecification) -> str:
    """The generation at the end of a template's name."""
    return template.name.rpartition("-")[2]


def group_of(cluster: Cluster, pool: NodePool) -> GroupSpecification:
    """The managed instance group of a pool's present generation, named as its template."""
    template = template_of(cluster, pool)
    scope = pool_scope(pool)
    return GroupSpecification(
        reference=GroupReference(scope, template.name),
        template=template.name,
        description=encode(
            Mark(cluster.cluster_id, pool.pool_id, generation=generation_of(template))
        ),
        zones=pool.zones if scope.kind is ScopeKind.REGION else (),
    )


def request_of(
    cluster: Cluster,
    pool: NodePool,
    group: GroupReference,
    nodes: Sequence[str],
    job: Job | None,
    taken_names: Collection[str],
) -> RequestSpecification:
    """The resize request for exactly these nodes, of a job or of nobody.

    `taken_names` are the requests that the group already has: a name is never used twice.
    """
    digest = _digest("\n".join(sorted(nodes)), NODES_HASH_LENGTH)
    stem = f"job-{job.job_id}-{job.restarts}-{digest}" if job else f"node-{digest}"
    number = next(n for n in range(len(taken_names) + 1) if f"{stem}-{n}" not in taken_names)
    mark = Mark(
        cluster.cluster_id,
        pool.pool_id,
        job_id=job.job_id if job else None,
        restarts=job.restarts if job else None,
        nodes_hash=hash_of_nodes(nodes),
    )
    duration = pool.run_duration_seconds
    return RequestSpecification(
        reference=RequestReference(group, f"{stem}-{number}"),
        instances=tuple(nodes),
        description=encode(mark),
        run_duration_seconds=duration,
    )


def is_served(pool: NodePool) -> bool:
    """Whether this version starts the pool's nodes: Flex-start pools inside Slurm."""
    return pool.provisioning_model is ProvisioningModel.FLEX_START and not pool.is_login


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
