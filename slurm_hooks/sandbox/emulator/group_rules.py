"""What a managed instance group must say, and how the service shows what was left out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from slurm_hooks.sandbox.emulator.places import Places, Scope, ScopeKind, region_of
from slurm_hooks.sandbox.emulator.problems import Findings, invalid_field, required
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.resource_names import check_name

MAX_BASE_NAME = 58
MAX_TARGET_SIZE = 1000
_UNSUPPORTED = ("statefulPolicy", "allInstancesConfig", "instanceFlexibilityPolicy", "targetPools")


def check_body(body: Json) -> None:
    """Check the body of an insert. Raises ApiError 400."""
    for name in ("name", "targetSize"):
        if name not in body:
            raise required(f"resource.{name}")
    findings = Findings()
    check_name(body["name"], "resource.name", findings)
    if not 0 <= body["targetSize"] <= MAX_TARGET_SIZE:
        findings.add("resource.targetSize", body["targetSize"], "Must be from 0 to 1000.")
    check_changeable(body, findings)
    findings.check()


def check_changeable(body: Json, findings: Findings) -> None:
    """Check what insert and patch have in common."""
    base = body.get("baseInstanceName")
    if base is not None:
        check_name(base, "resource.baseInstanceName", findings)
        if len(base) > MAX_BASE_NAME:
            findings.add("resource.baseInstanceName", base, "At most 58 characters are allowed.")
    if len(body.get("versions", [])) > 1:
        findings.add("resource.versions", len(body["versions"]), "The emulator takes one version.")
    for name in _UNSUPPORTED:
        if body.get(name):
            findings.add(f"resource.{name}", "", "Not supported by the emulator.")


def template_link(body: Json) -> str:
    """The template that a body names. Raises ApiError 400 when there is none, or two."""
    links = {version.get("instanceTemplate", "") for version in body.get("versions", [])}
    links |= {body["instanceTemplate"]} if "instanceTemplate" in body else set()
    links.discard("")
    if not links:
        raise required("resource.instanceTemplate")
    if len(links) > 1:
        raise invalid_field("resource.instanceTemplate", "", "It differs from that of versions.")
    return str(links.pop())


def zones_of(body: Json, scope: Scope, places: Places) -> tuple[str, ...]:
    """The zones of a group. Raises ApiError 400 for a bad distribution policy."""
    if scope.kind is ScopeKind.ZONE:
        if "distributionPolicy" in body:
            name = "resource.distributionPolicy"
            raise invalid_field(name, "", "Only regional groups have one.")
        return (scope.name,)
    if "distributionPolicy" not in body:
        return places.zones_by_region[scope.name][:3]
    policy = body["distributionPolicy"]
    if not policy:
        name = "resource.distributionPolicy"
        raise invalid_field(name, "", "Distribution policy cannot be empty.")
    zones = tuple(item.get("zone", "").rpartition("/")[2] for item in policy.get("zones", []))
    for zone in zones:
        if region_of(zone) != scope.name or zone not in places.zones:
            raise invalid_field("resource.distributionPolicy.zones", zone, "Unknown zone.")
    return zones or places.zones_by_region[scope.name][:3]


def completed(body: Json, scope: Scope) -> Json:
    """The body with the policies that the service shows when they were left out."""
    full = deepcopy(body)
    full.setdefault("listManagedInstancesResults", "PAGELESS")
    full.setdefault("standbyPolicy", {}).setdefault("mode", "MANUAL")
    lifecycle = full.setdefault("instanceLifecyclePolicy", {})
    lifecycle.setdefault("forceUpdateOnRepair", "NO")
    lifecycle.setdefault("defaultActionOnFailure", "REPAIR")
    _complete_update_policy(full.setdefault("updatePolicy", {}), scope)
    return full


def _complete_update_policy(policy: dict[str, Any], scope: Scope) -> None:
    policy.setdefault("type", "OPPORTUNISTIC")
    policy.setdefault("minimalAction", "REPLACE")
    policy.setdefault("replacementMethod", "SUBSTITUTE")
    amount = 1
    if scope.kind is ScopeKind.REGION:
        policy.setdefault("instanceRedistributionType", "PROACTIVE")
        amount = 3
    for name in ("maxSurge", "maxUnavailable"):
        limit = policy.setdefault(name, {"fixed": amount})
        if "fixed" in limit:
            limit["calculated"] = limit["fixed"]
