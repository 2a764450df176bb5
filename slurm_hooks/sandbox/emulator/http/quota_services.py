"""Cloud Quotas: limits by quota id, those too that regions do not list.

Newer GPUs on demand share one quota with a dimension for their family; as preemptible ones each has
its own.
"""

from __future__ import annotations

from slurm_hooks.sandbox.emulator.http.service_dispatch import (
    ServiceCall,
    ServiceError,
    ServiceRoute,
)
from slurm_hooks.sandbox.emulator.project import CLOUD_QUOTAS
from slurm_hooks.sandbox.emulator.quotas import DEFAULT_LIMITS, FAMILY_METRICS, PROJECT_LIMITS
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.world import World

_SERVICE = "services/compute.googleapis.com"
_BY_FAMILY = "GPUS-PER-GPU-FAMILY-per-project-region"


def _value(world: World, region: str, metric: str) -> Json:
    limit = world.quotas.limits.get((region, metric))
    if limit is None:
        limit = (DEFAULT_LIMITS | PROJECT_LIMITS)[metric]
    return {"value": str(int(limit))}


def _regional(world: World, metric: str) -> list[Json]:
    return [
        {
            "dimensions": {"region": region},
            "details": _value(world, region, metric),
            "applicableLocations": [region],
        }
        for region in world.places.regions
    ]


def _by_family(world: World) -> list[Json]:
    return [
        {**one, "dimensions": {"gpu_family": metric.removesuffix("_GPUS"), **one["dimensions"]}}
        for metric in sorted(FAMILY_METRICS)
        for one in _regional(world, metric)
    ]


def _dimensions_infos(world: World, quota_id: str) -> list[Json]:
    """What a quota id allows and where. Raises ServiceError 404 for one that there is not."""
    if quota_id == _BY_FAMILY:
        return _by_family(world)
    metric = quota_id.partition("-per-project")[0].replace("-", "_")
    if quota_id.endswith("-per-project-region") and metric in set(DEFAULT_LIMITS) - FAMILY_METRICS:
        return _regional(world, metric)
    if quota_id.endswith("-per-project") and metric in PROJECT_LIMITS:
        return [{"details": _value(world, "", metric), "applicableLocations": ["global"]}]
    raise ServiceError(404, f"The quota {quota_id} was not found.")


def _quota_info(world: World, call: ServiceCall) -> Json:
    project = f"projects/{world.identifiers.project_number}"
    call.require(world, "cloudquotas.quotas.get", project)
    quota_id = call.names["quota"]
    infos = _dimensions_infos(world, quota_id)
    metric = quota_id.partition("-per-project")[0].replace("-", "_").lower()
    return {
        "name": f"{project}/locations/global/{_SERVICE}/quotaInfos/{quota_id}",
        "quotaId": quota_id,
        "metric": f"compute.googleapis.com/{metric}",
        "service": "compute.googleapis.com",
        "isPrecise": True,
        "containerType": "PROJECT",
        "dimensions": sorted({key for info in infos for key in info.get("dimensions", {})}),
        "dimensionsInfos": infos,
    }


QUOTA_SERVICES = (
    ServiceRoute(
        CLOUD_QUOTAS,
        "GET",
        f"/v1/projects/{{project}}/locations/global/{_SERVICE}/quotaInfos/{{quota}}",
        _quota_info,
    ),
)
