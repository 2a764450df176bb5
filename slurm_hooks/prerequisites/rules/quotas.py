"""Whether the quotas of the region let all VMs of the cluster exist at once.

A limit below the static nodes is a failure, since those must always exist; one below all nodes only
means that later jobs wait. Flex-start and Spot VMs use the quotas of preemptible ones, VMs of a
reservation the one that the reservation took when it was made. Newer GPUs have one quota on demand,
with a dimension for their family, which regions do not list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from slurm_hooks.cluster.topology import Cluster, NodePool, ProvisioningModel
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.facts import ProjectFacts, Quota, QuotaName, Unread
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.rules.findings import Subject
from slurm_hooks.prerequisites.rules.machines import service_accelerator

ACTIVE_RESIZE_REQUESTS = QuotaName("ACTIVE_RESIZE_REQUESTS")
INSTANCES = QuotaName("INSTANCES")
GPUS_ALL_REGIONS = QuotaName("GPUS_ALL_REGIONS")
GPUS_PER_GPU_FAMILY = "GPUS_PER_GPU_FAMILY"
USUAL_ACTIVE_REQUESTS = 100
EVERYWHERE = ""
"""In place of a region: the quotas of the whole project."""
_UNTOLD = "neither the region nor Cloud Quotas tells it"
_PREEMPTIBLE = (ProvisioningModel.FLEX_START, ProvisioningModel.SPOT)
GPU_FAMILIES = {
    "nvidia-tesla-a100": "NVIDIA_A100",
    "nvidia-a100-80gb": "NVIDIA_A100_80GB",
    "nvidia-h100-80gb": "NVIDIA_H100",
    "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA",
    "nvidia-h200-141gb": "NVIDIA_H200",
    "nvidia-b200": "NVIDIA_B200",
    "nvidia-gb200": "NVIDIA_GB200",
    "nvidia-l4": "NVIDIA_L4",
    "nvidia-tesla-t4": "NVIDIA_T4",
    "nvidia-tesla-v100": "NVIDIA_V100",
    "nvidia-tesla-p100": "NVIDIA_P100",
    "nvidia-tesla-p4": "NVIDIA_P4",
}
"""What quotas call each accelerator type. Source: the service's page on GPU quotas, 2026-11."""
_OF_ONE_QUOTA = ("NVIDIA_H100", "NVIDIA_H100_MEGA", "NVIDIA_H200", "NVIDIA_B200", "NVIDIA_GB200")


def gpu_quota(pool: NodePool) -> QuotaName | None:
    """The quota that the GPUs of a pool's nodes use; None without GPUs, or for unknown ones."""
    family = GPU_FAMILIES.get(service_accelerator(pool.accelerator_type))
    if family is None:
        return None
    if pool.provisioning_model in _PREEMPTIBLE:
        return QuotaName(f"PREEMPTIBLE_{family}_GPUS")
    if family in _OF_ONE_QUOTA:
        return QuotaName(GPUS_PER_GPU_FAMILY, family)
    return QuotaName(f"{family}_GPUS")


@dataclass(slots=True)
class Needs:
    """How much of each metric the static nodes and all nodes of a region use."""

    least: Counter[QuotaName] = field(default_factory=Counter)
    most: Counter[QuotaName] = field(default_factory=Counter)

    def add(self, quota: QuotaName, for_each: int, pool: NodePool) -> None:
        """Count a pool's nodes."""
        self.least[quota] += for_each * pool.min_node_count
        self.most[quota] += for_each * pool.max_node_count


def needs_by_region(cluster: Cluster) -> Mapping[str, Needs]:
    """What the cluster's pools use of each region's quotas."""
    found: dict[str, Needs] = {}
    for pool in cluster.pools.values():
        needs = found.setdefault(pool.region, Needs())
        if pool.provisioning_model is ProvisioningModel.RESERVATION:
            continue
        needs.add(INSTANCES, 1, pool)
        gpus = gpu_quota(pool)
        if gpus is not None:
            needs.add(gpus, pool.accelerator_count, pool)
    return found


def quotas_by_region(cluster: Cluster) -> Mapping[str, tuple[QuotaName, ...]]:
    """Every quota that is looked at, by region, and by EVERYWHERE."""
    found: dict[str, tuple[QuotaName, ...]] = {
        region: (*needs.most, *((ACTIVE_RESIZE_REQUESTS,) if _asks(cluster, region) else ()))
        for region, needs in needs_by_region(cluster).items()
    }
    return {**found, EVERYWHERE: (GPUS_ALL_REGIONS,)}


def check_quotas(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Every quota that the cluster's VMs and requests use."""
    for region, needs in needs_by_region(cluster).items():
        quotas = facts.quotas.get(region)
        if quotas is None or isinstance(quotas, Unread):
            why = quotas or Unread("the region does not exist")
            yield Subject("quota", region).unread(why)
            continue
        for name in needs.most:
            yield _enough(name, region, needs, quotas.get(name), facts.project)
        if _asks(cluster, region):
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


def _asks(cluster: Cluster, region: str) -> bool:
    """Whether nodes of a region come by resize requests."""
    return any(
        pool.region == region and pool.provisioning_model is ProvisioningModel.FLEX_START
        for pool in cluster.pools.values()
    )


def _enough(
    name: QuotaName, region: str, needs: Needs, quota: Quota | None, project: str
) -> Finding:
    subject = Subject("quota", f"{name} in {region}" if region else str(name))
    least, most = needs.least[name], needs.most[name]
    fix = commands.raise_quota(project, region, name, most)
    if quota is None:
        return subject.unknown(_UNTOLD, fix)
    detail = f"limit {quota.limit:g}, all nodes together use {most}"
    if quota.is_unlimited:
        return subject.passes("without limit")
    if quota.limit < least or (quota.limit == 0 and most):
        return subject.fails(f"{detail}, the static ones {least}", fix)
    if quota.limit < most:
        return subject.warns(f"{detail}: the last of them wait", fix)
    return subject.passes(detail)


def _requests(region: str, quota: Quota | None, project: str) -> Finding:
    subject = Subject("quota", f"{ACTIVE_RESIZE_REQUESTS} in {region}")
    fix = commands.raise_quota(project, region, ACTIVE_RESIZE_REQUESTS, USUAL_ACTIVE_REQUESTS)
    if quota is None:
        return subject.unknown(_UNTOLD, fix)
    if quota.is_unlimited:
        return subject.passes("without limit")
    detail = f"limit {quota.limit:g}, {quota.usage:g} in use"
    if quota.limit < 1:
        return subject.fails(f"{detail}: no Flex-start VM can be asked for", fix)
    if quota.usage >= quota.limit:
        return subject.warns(f"{detail}: new requests wait for others", fix)
    return subject.passes(detail)
