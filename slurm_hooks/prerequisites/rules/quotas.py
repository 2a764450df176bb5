"""Whether the quotas of the region let all VMs of the cluster exist at once.

A limit below the static nodes is a failure, since those must always exist; one below all nodes only
means that later jobs wait. Flex-start and Spot VMs use the quotas of preemptible ones, VMs of a
reservation the one that the reservation took when it was made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from slurm_hooks.cluster.topology import Cluster, NodePool, ProvisioningModel
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.facts import ProjectFacts, Quota, Unread
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.rules.findings import Subject
from slurm_hooks.prerequisites.rules.machines import service_accelerator

ACTIVE_RESIZE_REQUESTS = "ACTIVE_RESIZE_REQUESTS"
USUAL_ACTIVE_REQUESTS = 100
GPUS_ALL_REGIONS = "GPUS_ALL_REGIONS"
EVERYWHERE = ""
"""In place of a region: the quotas of the whole project."""
_PREEMPTIBLE = (ProvisioningModel.FLEX_START, ProvisioningModel.SPOT)
GPU_METRICS = {
    "nvidia-tesla-a100": "NVIDIA_A100_GPUS",
    "nvidia-a100-80gb": "NVIDIA_A100_80GB_GPUS",
    "nvidia-h100-80gb": "NVIDIA_H100_GPUS",
    "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA_GPUS",
    "nvidia-h200-141gb": "NVIDIA_H200_GPUS",
    "nvidia-b200": "NVIDIA_B200_GPUS",
    "nvidia-gb200": "NVIDIA_GB200_GPUS",
    "nvidia-l4": "NVIDIA_L4_GPUS",
    "nvidia-tesla-t4": "NVIDIA_T4_GPUS",
    "nvidia-tesla-v100": "NVIDIA_V100_GPUS",
    "nvidia-tesla-p100": "NVIDIA_P100_GPUS",
    "nvidia-tesla-p4": "NVIDIA_P4_GPUS",
}
"""The quota metric of each accelerator type. Source: the service's page on GPU quotas, 2026-11."""


@dataclass(slots=True)
class Needs:
    """How much of each metric the static nodes and all nodes of a region use."""

    least: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)

    def add(self, metric: str, for_each: int, pool: NodePool) -> None:
        """Count a pool's nodes."""
        self.least[metric] += for_each * pool.min_node_count
        self.most[metric] += for_each * pool.max_node_count


def needs_by_region(cluster: Cluster) -> Mapping[str, Needs]:
    """What the cluster's pools use of each region's quotas."""
    found: dict[str, Needs] = {}
    for pool in cluster.pools.values():
        needs = found.setdefault(pool.region, Needs())
        if pool.provisioning_model is ProvisioningModel.RESERVATION:
            continue
        needs.add("INSTANCES", 1, pool)
        metric = GPU_METRICS.get(service_accelerator(pool.accelerator_type))
        if metric:
            prefix = "PREEMPTIBLE_" if pool.provisioning_model in _PREEMPTIBLE else ""
            needs.add(prefix + metric, pool.accelerator_count, pool)
    return found


def check_quotas(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Every quota that the cluster's VMs and requests use."""
    for region, needs in needs_by_region(cluster).items():
        quotas = facts.quotas.get(region)
        if quotas is None or isinstance(quotas, Unread):
            why = quotas or Unread("the region does not exist")
            yield Subject("quota", region).unread(why)
            continue
        for metric in needs.most:
            yield _enough(metric, region, needs, quotas.get(metric), facts.project)
        if any(p.provisioning_model is ProvisioningModel.FLEX_START for p in _in(cluster, region)):
            yield _requests(region, quotas.get(ACTIVE_RESIZE_REQUESTS), facts.project)

    yield from _all_gpus(cluster, facts)


def _all_gpus(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """The GPUs of all regions together. A project that does not list this quota has none."""
    quotas = facts.quotas.get(EVERYWHERE)
    quota = quotas.get(GPUS_ALL_REGIONS) if isinstance(quotas, Mapping) else None
    needs = Needs()
    for pool in cluster.pools.values():
        if pool.accelerator_count and pool.provisioning_model is not ProvisioningModel.RESERVATION:
            needs.add(GPUS_ALL_REGIONS, pool.accelerator_count, pool)
    if quota is not None and needs.most:
        yield _enough(GPUS_ALL_REGIONS, EVERYWHERE, needs, quota, facts.project)


def _in(cluster: Cluster, region: str) -> Iterator[NodePool]:
    return (pool for pool in cluster.pools.values() if pool.region == region)


def _enough(metric: str, region: str, needs: Needs, quota: Quota | None, project: str) -> Finding:
    subject = Subject("quota", f"{metric} in {region}" if region else metric)
    least, most = needs.least[metric], needs.most[metric]
    fix = commands.raise_quota(project, region, metric, most)
    if quota is None:
        return subject.unknown("the region does not list this quota", fix)
    detail = f"limit {quota.limit:g}, all nodes together use {most}"
    if quota.limit < least or (quota.limit == 0 and most):
        return subject.fails(f"{detail}, the static ones {least}", fix)
    if quota.limit < most:
        return subject.warns(f"{detail}: the last of them wait", fix)
    return subject.passes(detail)


def _requests(region: str, quota: Quota | None, project: str) -> Finding:
    subject = Subject("quota", f"{ACTIVE_RESIZE_REQUESTS} in {region}")
    fix = commands.raise_quota(project, region, ACTIVE_RESIZE_REQUESTS, USUAL_ACTIVE_REQUESTS)
    if quota is None:
        return subject.unknown("the region does not list this quota", fix)
    detail = f"limit {quota.limit:g}, {quota.usage:g} in use"
    if quota.limit < 1:
        return subject.fails(f"{detail}: no Flex-start VM can be asked for", fix)
    if quota.usage >= quota.limit:
        return subject.warns(f"{detail}: new requests wait for others", fix)
    return subject.passes(detail)
