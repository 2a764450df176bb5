"""The JSON of VMs, zones, regions, machine types and the project."""

from __future__ import annotations

from typing import Any

from slurm_hooks.sandbox.emulator import machine_types
from slurm_hooks.sandbox.emulator.http.shapes import link, without_unset
from slurm_hooks.sandbox.emulator.identifiers import fingerprint, timestamp
from slurm_hooks.sandbox.emulator.machine_types import MachineType
from slurm_hooks.sandbox.emulator.places import region_of
from slurm_hooks.sandbox.emulator.records import Instance, InstanceStatus, Json
from slurm_hooks.sandbox.emulator.world import World

EPOCH = "1969-12-31T16:00:00.000-08:00"
_NO_CPU = (InstanceStatus.PENDING, InstanceStatus.TERMINATED)


def instance(world: World, item: Instance) -> Json:
    """A VM."""
    properties = item.properties
    body = {
        "kind": "compute#instance",
        "id": str(item.instance_id),
        "creationTimestamp": timestamp(item.created_utc),
        "name": item.name,
        "description": properties.get("description"),
        "tags": _tags(properties.get("tags", {})),
        "machineType": link(world, f"zones/{item.zone}/machineTypes/{item.machine_type}"),
        "status": str(item.status),
        "statusMessage": item.status_message or None,
        "zone": link(world, f"zones/{item.zone}"),
        "canIpForward": properties.get("canIpForward"),
        "networkInterfaces": _interfaces(world, item),
        "disks": _disks(world, item),
        "metadata": metadata(item),
        "serviceAccounts": properties.get("serviceAccounts"),
        "selfLink": link(world, item.path),
        "scheduling": item.scheduling,
        "cpuPlatform": "Unknown CPU Platform" if item.status in _NO_CPU else "Emulated CPU",
        "labels": item.labels or None,
        "labelFingerprint": label_fingerprint(item),
        "guestAccelerators": _accelerators(world, item),
        "reservationAffinity": properties.get("reservationAffinity"),
        "startRestricted": False,
        "deletionProtection": False,
        "shieldedInstanceConfig": {
            "enableSecureBoot": False,
            "enableVtpm": True,
            "enableIntegrityMonitoring": True,
        },
        "shieldedInstanceIntegrityPolicy": {"updateAutoLearnPolicy": True},
        "fingerprint": fingerprint([item.instance_id, item.labels, item.boots]),
        "lastStartTimestamp": timestamp(item.last_start_utc) if item.last_start_utc else None,
        "lastStopTimestamp": timestamp(item.last_stop_utc) if item.last_stop_utc else None,
        "resourceStatus": _resource_status(item),
        "satisfiesPzi": True,
    }
    return without_unset(body)


def label_fingerprint(item: Instance) -> str:
    """What setLabels must be given."""
    return fingerprint(item.labels)


def metadata(item: Instance) -> Json:
    """The metadata of a VM with its fingerprint."""
    body: Json = {"kind": "compute#metadata", "fingerprint": fingerprint(item.metadata)}
    if item.metadata:
        body["items"] = item.metadata
    return body


def _tags(tags: dict[str, Any]) -> Json:
    body: Json = {"items": tags["items"]} if tags.get("items") else {}
    return body | {"fingerprint": fingerprint(tags.get("items", []))}


def _interfaces(world: World, item: Instance) -> list[Json]:
    shown = []
    for index, interface in enumerate(item.properties.get("networkInterfaces", [])):
        subnetwork = f"regions/{region_of(item.zone)}/subnetworks/default"
        one = {"subnetwork": link(world, subnetwork), **interface}
        one["networkIP"] = item.network_ip if index == 0 else f"10.{index}.0.2"
        one["fingerprint"] = fingerprint([item.instance_id, index])
        one.setdefault("stackType", "IPV4_ONLY")
        has_address = item.status in (InstanceStatus.RUNNING, InstanceStatus.STOPPING)
        if one.get("accessConfigs") and has_address:
            address = f"203.0.113.{int(item.network_ip.rpartition('.')[2])}"
            one["accessConfigs"] = [{**access, "natIP": address} for access in one["accessConfigs"]]
        shown.append(one)
    return shown


def _disks(world: World, item: Instance) -> list[Json]:
    shown = []
    for index, disk in enumerate(item.properties.get("disks", [])):
        parameters = disk.get("initializeParams", {})
        name = item.name if disk.get("boot") else f"{item.name}-{index}"
        one = {key: value for key, value in disk.items() if key != "initializeParams"}
        one["source"] = link(world, f"zones/{item.zone}/disks/{name}")
        one.setdefault("deviceName", f"persistent-disk-{index}")
        one.setdefault("interface", "SCSI")
        one["diskSizeGb"] = str(parameters.get("diskSizeGb", disk.get("diskSizeGb", "10")))
        one["architecture"] = "X86_64"
        shown.append(one)
    return shown


def _accelerators(world: World, item: Instance) -> list[Json] | None:
    machine = machine_types.find(item.machine_type)
    prefix = f"zones/{item.zone}/acceleratorTypes"
    if machine and machine.accelerator_type:
        pairs = [(machine.accelerator_type, machine.accelerator_count)]
    else:
        pairs = [
            (str(one.get("acceleratorType", "")).rpartition("/")[2], one.get("acceleratorCount", 0))
            for one in item.properties.get("guestAccelerators", [])
        ]
    if not pairs:
        return None
    return [
        {"acceleratorType": link(world, f"{prefix}/{name}"), "acceleratorCount": count}
        for name, count in pairs
    ]


def _resource_status(item: Instance) -> Json:
    scheduling: Json = {}
    if item.termination_time_utc:
        scheduling["terminationTimestamp"] = timestamp(item.termination_time_utc)
    host = fingerprint([item.zone, item.instance_id, item.hosts])
    return {"scheduling": scheduling, "physicalHost": f"/emulated-block/emulated-subblock/{host}"}


def zone(world: World, name: str) -> Json:
    """A zone."""
    return {
        "kind": "compute#zone",
        "id": str(stable_id(name)),
        "creationTimestamp": EPOCH,
        "name": name,
        "description": name,
        "status": "UP",
        "region": link(world, f"regions/{region_of(name)}"),
        "selfLink": link(world, f"zones/{name}"),
        "supportsPzs": True,
    }


def region(world: World, name: str) -> Json:
    """A region with its quotas."""
    return {
        "kind": "compute#region",
        "id": str(stable_id(name)),
        "creationTimestamp": EPOCH,
        "name": name,
        "description": name,
        "status": "UP",
        "zones": [link(world, f"zones/{one}") for one in world.places.zones_by_region[name]],
        "quotas": world.quotas.listed(name),
        "selfLink": link(world, f"regions/{name}"),
        "supportsPzs": True,
    }


def machine_type(world: World, zone_name: str, item: MachineType) -> Json:
    """A machine type of a zone."""
    body = {
        "kind": "compute#machineType",
        "id": str(stable_id(item.name)),
        "creationTimestamp": EPOCH,
        "name": item.name,
        "description": f"{item.guest_cpus} vCPUs, {item.memory_mb // 1024} GB RAM",
        "guestCpus": item.guest_cpus,
        "memoryMb": item.memory_mb,
        "imageSpaceGb": 0,
        "maximumPersistentDisks": 128,
        "maximumPersistentDisksSizeGb": "263168",
        "zone": zone_name,
        "selfLink": link(world, f"zones/{zone_name}/machineTypes/{item.name}"),
        "isSharedCpu": False,
        "architecture": item.architecture,
    }
    if item.accelerator_type:
        body["accelerators"] = [
            {
                "guestAcceleratorType": item.accelerator_type,
                "guestAcceleratorCount": item.accelerator_count,
            }
        ]
    return body


def project(world: World) -> Json:
    """The project."""
    identifiers = world.identifiers
    number = identifiers.project_number
    return {
        "kind": "compute#project",
        "id": str(number),
        "creationTimestamp": EPOCH,
        "name": identifiers.project,
        "commonInstanceMetadata": {"kind": "compute#metadata", "fingerprint": fingerprint([])},
        "quotas": world.quotas.listed_of_project(),
        "selfLink": link(world, "").rstrip("/"),
        "defaultServiceAccount": f"{number}-compute@developer.gserviceaccount.com",
        "xpnProjectStatus": "UNSPECIFIED_XPN_PROJECT_STATUS",
        "defaultNetworkTier": "PREMIUM",
        "vmDnsSetting": "ZONAL_ONLY",
    }


def stable_id(name: str) -> int:
    """An id that is always the same for a name."""
    return int.from_bytes(name.encode()[-7:].rjust(7, b"\1"), "big")
