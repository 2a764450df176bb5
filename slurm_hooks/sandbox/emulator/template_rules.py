"""What an instance template must say, and how the service shows what was left out.

Source: Compute Engine's reference and recorded templates. Where the service is lenient or its
answer is unknown, the emulator refuses.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from slurm_hooks.sandbox.emulator import machine_types
from slurm_hooks.sandbox.emulator.durations import (
    FLEX_START_SECONDS,
    SCHEDULING_SECONDS,
    seconds_of,
)
from slurm_hooks.sandbox.emulator.identifiers import LINK_PREFIX, fingerprint
from slurm_hooks.sandbox.emulator.problems import Findings, required
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.resource_names import Reference, check_name, parse_reference

_PROPERTIES = "resource.properties"
_IMAGE_COLLECTIONS = ("images", "imageFamilyViews")


def checked_properties(body: Json, project: str) -> Json:
    """The properties of a template body, checked and completed. Raises ApiError 400."""
    if "name" not in body:
        raise required("resource.name")
    if "properties" not in body:
        raise required("resource.properties")
    properties: Json = deepcopy(body["properties"])
    findings = Findings()
    check_name(body["name"], "resource.name", findings)
    check_machine_properties(properties, _PROPERTIES, findings)
    findings.check()
    complete(properties, project)
    return properties


def check_machine_properties(properties: Json, prefix: str, findings: Findings) -> None:
    """Check what templates and VMs have in common."""
    machine = _check_machine_type(properties, prefix, findings)
    _check_disks(properties.get("disks", []), f"{prefix}.disks", findings)
    _check_interfaces(properties, prefix, findings)
    has_gpu = bool(properties.get("guestAccelerators")) or bool(
        machine and machine.accelerator_type
    )
    _check_scheduling(properties, prefix, has_gpu, findings)
    _check_metadata(properties.get("metadata", {}), f"{prefix}.metadata", findings)


def _check_machine_type(
    properties: Json, prefix: str, findings: Findings
) -> machine_types.MachineType | None:
    name = properties.get("machineType", "")
    field = f"{prefix}.machineType"
    if not name:
        findings.add(field, "", "A machine type is required.")
        return None
    if "/" in name:
        findings.add(field, name, "A template takes the bare name of a machine type.")
        return None
    machine = machine_types.find(name)
    if machine is None:
        findings.add(field, name, "The machine type does not exist.")
    return machine


def _check_disks(disks: list[Json], prefix: str, findings: Findings) -> None:
    boots = [disk for disk in disks if disk.get("boot")]
    if len(boots) != 1:
        findings.add(prefix, len(boots), "Exactly one boot disk is required.")
    for index, disk in enumerate(disks):
        parameters = disk.get("initializeParams", {})
        field = f"{prefix}[{index}].initializeParams"
        disk_type = parameters.get("diskType", "")
        if "/" in disk_type:
            findings.add(f"{field}.diskType", disk_type, "A template takes a bare disk type.")
        image = parameters.get("sourceImage", "")
        if image and _image_reference(image) is None:
            findings.add(f"{field}.sourceImage", image, "The URL is malformed.")
        if disk.get("boot") and not (image or parameters.get("sourceSnapshot") or "source" in disk):
            findings.add(f"{field}.sourceImage", "", "A boot disk needs a source.")


def _image_reference(image: str) -> Reference | None:
    found = (parse_reference(image, collection) for collection in _IMAGE_COLLECTIONS)
    return next((reference for reference in found if reference is not None), None)


def _check_interfaces(properties: Json, prefix: str, findings: Findings) -> None:
    interfaces = properties.get("networkInterfaces", [])
    if not interfaces:
        findings.add(f"{prefix}.networkInterfaces", "", "At least one is required.")
    for index, interface in enumerate(interfaces):
        field = f"{prefix}.networkInterfaces[{index}]"
        for key, collection in (("network", "networks"), ("subnetwork", "subnetworks")):
            value = interface.get(key, "")
            if value and parse_reference(value, collection) is None:
                findings.add(f"{field}.{key}", value, "The URL is malformed.")
        if not any(interface.get(key) for key in ("network", "subnetwork", "networkAttachment")):
            findings.add(field, "", "A network or a subnetwork is required.")


def _check_scheduling(properties: Json, prefix: str, has_gpu: bool, findings: Findings) -> None:
    scheduling = properties.get("scheduling", {})
    field = f"{prefix}.scheduling"
    model = scheduling.get("provisioningModel", "STANDARD")
    if has_gpu and scheduling.get("onHostMaintenance", "MIGRATE") != "TERMINATE":
        findings.add(
            f"{field}.onHostMaintenance",
            scheduling.get("onHostMaintenance", ""),
            "Instances with GPUs must have TERMINATE.",
        )
    if model in ("SPOT", "FLEX_START") and scheduling.get("onHostMaintenance") == "MIGRATE":
        findings.add(f"{field}.onHostMaintenance", "MIGRATE", f"{model} needs TERMINATE.")
    if model == "SPOT" and scheduling.get("automaticRestart"):
        findings.add(f"{field}.automaticRestart", True, "SPOT cannot restart automatically.")
    if "maxRunDuration" in scheduling:
        limits = FLEX_START_SECONDS if model == "FLEX_START" else SCHEDULING_SECONDS
        seconds_of(scheduling["maxRunDuration"], f"{field}.maxRunDuration", limits, findings)
        if not scheduling.get("instanceTerminationAction"):
            name = f"{field}.instanceTerminationAction"
            findings.add(name, "", "Required together with maxRunDuration.")


def _check_metadata(metadata: Json, prefix: str, findings: Findings) -> None:
    seen: set[str] = set()
    for index, item in enumerate(metadata.get("items", [])):
        key = item.get("key", "")
        if not key or key in seen:
            findings.add(f"{prefix}.items[{index}].key", key, "Keys must be unique, not empty.")
        seen.add(key)


def complete(properties: Json, project: str) -> None:
    """Fill in what the service shows for members that were left out, and full URLs."""
    for index, disk in enumerate(properties.get("disks", [])):
        disk |= {"kind": "compute#attachedDisk", "index": index}
        disk.setdefault("type", "PERSISTENT")
        disk.setdefault("mode", "READ_WRITE")
        parameters = disk.get("initializeParams", {})
        image = parameters.get("sourceImage", "")
        reference = _image_reference(image)
        if reference is not None and "://" in image:
            parameters["sourceImage"] = reference.link(project)
    for index, interface in enumerate(properties.get("networkInterfaces", [])):
        _complete_interface(interface, index, project)
    _complete_scheduling(properties.setdefault("scheduling", {}))
    metadata = properties.setdefault("metadata", {})
    metadata |= {"kind": "compute#metadata", "fingerprint": fingerprint(metadata.get("items"))}


def _complete_interface(interface: dict[str, Any], index: int, project: str) -> None:
    interface |= {"kind": "compute#networkInterface", "name": f"nic{index}"}
    for key, collection in (("network", "networks"), ("subnetwork", "subnetworks")):
        reference = parse_reference(interface.get(key, ""), collection)
        if reference is not None:
            interface[key] = reference.link(project)
    if "network" not in interface:
        interface["network"] = f"{LINK_PREFIX}projects/{project}/global/networks/default"
    for access in interface.get("accessConfigs", []):
        access["kind"] = "compute#accessConfig"
        access.setdefault("name", "external-nat")
        access.setdefault("type", "ONE_TO_ONE_NAT")
        access.setdefault("networkTier", "PREMIUM")


def _complete_scheduling(scheduling: Json) -> None:
    scheduling.setdefault("provisioningModel", "STANDARD")
    ends = scheduling["provisioningModel"] in ("SPOT", "FLEX_START")
    scheduling.setdefault("onHostMaintenance", "TERMINATE" if ends else "MIGRATE")
    scheduling.setdefault("automaticRestart", not ends)
    scheduling.setdefault("preemptible", scheduling["provisioningModel"] == "SPOT")
