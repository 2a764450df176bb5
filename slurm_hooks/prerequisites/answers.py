"""From the JSON of Google's services to facts. A member that is missing is one that is unset."""

from __future__ import annotations

from typing import Any

from slurm_hooks.cluster.resource_names import partial_url
from slurm_hooks.prerequisites.facts import (
    FileSystem,
    Image,
    MachineType,
    Network,
    Policy,
    PolicyBinding,
    ProjectIdentity,
    Quota,
    QuotaName,
    Reservation,
    SecretVersion,
    Subnetwork,
)

Json = dict[str, Any]


def identity_from(body: Json) -> ProjectIdentity:
    """A project of Resource Manager, which names itself by its number."""
    number = str(body.get("name", "")).rpartition("/")[2]
    return ProjectIdentity(number, str(body.get("parent", "")))


def policy_from(body: Json) -> Policy:
    """An allow policy."""
    return tuple(
        PolicyBinding(
            str(entry.get("role", "")),
            tuple(str(member) for member in entry.get("members", [])),
            str(entry.get("condition", {}).get("expression", "")),
        )
        for entry in body.get("bindings", [])
    )


def network_from(body: Json) -> Network:
    """A VPC network."""
    return Network(is_automatic=bool(body.get("autoCreateSubnetworks", False)))


def subnetwork_from(body: Json) -> Subnetwork:
    """A subnetwork."""
    return Subnetwork(partial_url(str(body.get("network", ""))))


def image_from(body: Json) -> Image:
    """An image."""
    state = str(body.get("deprecated", {}).get("state", ""))
    return Image(str(body.get("architecture", "")), "" if state == "ACTIVE" else state)


def machine_type_from(body: Json) -> MachineType:
    """A machine type."""
    return MachineType(str(body.get("architecture", "")))


def quota_from(body: Json, region: str, gpu_family: str) -> Quota | None:
    """The limit of a quota of Cloud Quotas in a region; the first entry that fits is the nearest.

    None when no entry is about the region and family.
    """
    wanted = {"region": region, "gpu_family": gpu_family}
    for entry in body.get("dimensionsInfos", []):
        dimensions = entry.get("dimensions", {})
        places = entry.get("applicableLocations", [])
        fits = all(wanted.get(key) == value for key, value in dimensions.items())
        if fits and (not region or not places or region in places):
            return Quota(float(entry.get("details", {}).get("value", 0)))
    return None


def quotas_from(body: Json) -> dict[QuotaName, Quota]:
    """The quotas of a region or a project."""
    return {
        QuotaName(str(entry["metric"])): Quota(
            float(entry.get("limit", 0)), float(entry.get("usage", 0))
        )
        for entry in body.get("quotas", [])
        if "metric" in entry
    }


def reservation_from(body: Json) -> Reservation:
    """A reservation; its counts are strings there."""
    specific = body.get("specificReservation", {})
    machine_type = str(specific.get("instanceProperties", {}).get("machineType", ""))
    return Reservation(
        machine_type=machine_type.rpartition("/")[2],
        count=int(specific.get("count", 0)),
        in_use=int(specific.get("inUseCount", 0)),
        status=str(body.get("status", "")),
        specific=bool(body.get("specificReservationRequired", False)),
    )


def filestore_from(body: Json) -> FileSystem:
    """A Filestore instance, which is in one network."""
    networks = body.get("networks") or [{}]
    return FileSystem(str(networks[0].get("network", "")), str(body.get("state", "")))


def lustre_from(body: Json) -> FileSystem:
    """A Lustre instance."""
    return FileSystem(str(body.get("network", "")), str(body.get("state", "")))


def secret_version_from(body: Json) -> SecretVersion:
    """A version of a secret."""
    return SecretVersion(str(body.get("state", "")))
