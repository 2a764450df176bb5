"""Regional quotas: limits, use, and what a VM uses.

Flex-start and Spot VMs use the PREEMPTIBLE_ metrics. The service may let a Flex-start VM use the
standard ones too; the emulator does not, which is the stricter reading.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from slurm_hooks.sandbox.emulator import machine_types

ACTIVE_RESIZE_REQUESTS = "ACTIVE_RESIZE_REQUESTS"
_PREEMPTIBLE_MODELS = ("SPOT", "FLEX_START")
_PLENTY = 100_000.0

DEFAULT_LIMITS: dict[str, float] = {
    ACTIVE_RESIZE_REQUESTS: 100.0,
    "INSTANCES": 24_000.0,
    "INSTANCE_GROUP_MANAGERS": 1_000.0,
    "CPUS": 10_000_000.0,
    "PREEMPTIBLE_CPUS": 10_000_000.0,
} | {
    prefix + metric: _PLENTY
    for metric in machine_types.GPU_METRICS.values()
    for prefix in ("", "PREEMPTIBLE_")
}


FAMILY_METRICS = frozenset(
    f"NVIDIA_{family}_GPUS" for family in ("H100", "H100_MEGA", "H200", "B200", "GB200")
)
"""On demand these are one quota with a dimension for the family."""
UNLISTED_METRICS = (
    FAMILY_METRICS
    | {f"PREEMPTIBLE_{metric}" for metric in FAMILY_METRICS}
    | {ACTIVE_RESIZE_REQUESTS}
) - {"PREEMPTIBLE_NVIDIA_H100_GPUS"}
"""What v1 has no name for in the quotas of a region: Cloud Quotas alone tells them."""

GPUS_ALL_REGIONS = "GPUS_ALL_REGIONS"
PROJECT_LIMITS = {"INSTANCE_TEMPLATES": 3000.0, GPUS_ALL_REGIONS: _PLENTY}
"""Those of the whole project, which stand here with an empty region."""


@dataclass(frozen=True, slots=True)
class ExceededQuota:
    """A quota that does not allow more."""

    metric: str
    limit: float
    region: str


@dataclass(slots=True)
class QuotaTable:
    """Limits and use by (region, metric)."""

    limits: dict[tuple[str, str], float] = field(default_factory=dict)
    used: Counter[tuple[str, str]] = field(default_factory=Counter)

    def limit(self, region: str, metric: str) -> float:
        """The limit of a metric; 0 for one that nobody has."""
        return self.limits.get((region, metric), DEFAULT_LIMITS.get(metric, 0.0))

    def exceeded_by(self, region: str, needs: Counter[str]) -> ExceededQuota | None:
        """The first quota that `needs` would break; None when all fit."""
        for metric, amount in sorted(needs.items()):
            limit = self.limit(region, metric)
            if self.used[region, metric] + amount > limit:
                return ExceededQuota(metric, limit, region)
        return None

    def take(self, region: str, needs: Counter[str]) -> None:
        """Note use."""
        for metric, amount in needs.items():
            self.used[region, metric] += amount

    def give_back(self, region: str, needs: Counter[str]) -> None:
        """Note that use has ended."""
        for metric, amount in needs.items():
            self.used[region, metric] -= amount

    def listed(self, region: str) -> list[dict[str, Any]]:
        """The `quotas` member of a region."""
        set_here = {metric for place, metric in self.limits if place == region}
        metrics = (set(DEFAULT_LIMITS) | set_here) - UNLISTED_METRICS
        return [self._shown(region, metric, DEFAULT_LIMITS) for metric in sorted(metrics)]

    def listed_of_project(self) -> list[dict[str, Any]]:
        """The `quotas` member of the project. GPUs of all regions are not counted here."""
        return [self._shown("", metric, PROJECT_LIMITS) for metric in sorted(PROJECT_LIMITS)]

    def _shown(self, region: str, metric: str, defaults: dict[str, float]) -> dict[str, Any]:
        limit = self.limits.get((region, metric), defaults.get(metric, 0.0))
        return {"metric": metric, "limit": limit, "usage": float(self.used[region, metric])}


def needs_of(properties: dict[str, Any], count: int = 1) -> Counter[str]:
    """What `count` VMs of these properties use."""
    model = properties.get("scheduling", {}).get("provisioningModel", "STANDARD")
    prefix = "PREEMPTIBLE_" if model in _PREEMPTIBLE_MODELS else ""
    needs: Counter[str] = Counter({"INSTANCES": count})
    machine = machine_types.find(str(properties["machineType"]).rpartition("/")[2])
    if machine is None:
        return needs
    needs[f"{prefix}CPUS"] += machine.guest_cpus * count
    gpus = [(machine.accelerator_type, machine.accelerator_count)]
    gpus += [
        (str(item.get("acceleratorType", "")).rpartition("/")[2], item.get("acceleratorCount", 0))
        for item in properties.get("guestAccelerators", [])
        if not machine.accelerator_type
    ]
    for accelerator, number in gpus:
        metric = machine_types.GPU_METRICS.get(accelerator)
        if metric is not None:
            needs[prefix + metric] += number * count
    return needs
