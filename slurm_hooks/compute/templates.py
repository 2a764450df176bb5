"""Instance templates: what each provisioning model must say.

A FLEX_START template names how long its VMs live, deletes them at the end, uses no reservation
and is neither migrated nor restarted. A SPOT template deletes its VMs when they are preempted. VMs
of a RESERVATION template come out of its reservations: STANDARD ones, or RESERVATION_BOUND ones,
which are deleted at the end of theirs. A confidential VM is never migrated, since not every kind of
encryption can be. No VM restarts by itself after a host error, whatever its model: its job has gone
back to the queue, and its node gets a new VM. `machineType` and `diskType` are bare names: a link
gives an internal error of the service.
"""

from __future__ import annotations

from typing import Any

from slurm_hooks.compute.model import ScopeKind, Template, TemplateSpecification
from slurm_hooks.compute.names import refuse, require_name, time_utc

SERVICES = {
    ScopeKind.GLOBAL: "InstanceTemplatesClient",
    ScopeKind.REGION: "RegionInstanceTemplatesClient",
}

SHORTEST_LIFE_SECONDS = 30
LONGEST_LIFE_SECONDS = 604_800
ACCESS_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)

_SERVICE_MODELS = {
    "FLEX_START": "FLEX_START",
    "ON_DEMAND": "STANDARD",
    "RESERVATION": "STANDARD",  # RESERVATION_BOUND where the VMs are bound to it
    "SPOT": "SPOT",
}


def template_body(specification: TemplateSpecification) -> dict[str, Any]:
    """The InstanceTemplate to insert. Raises CONFIG for what the service would refuse."""
    properties: dict[str, Any] = {
        "machine_type": require_name(specification.machine_type),
        "scheduling": _scheduling(specification),
        "reservation_affinity": _reservation(specification),
        "disks": [_boot_disk(specification)],
        "network_interfaces": [_network_interface(specification)],
        "labels": dict(specification.labels),
        "metadata": _items([{"key": k, "value": v} for k, v in specification.metadata]),
        "tags": _items(list(specification.tags)),
        "service_accounts": _service_accounts(specification),
        "guest_accelerators": _guest_accelerators(specification),
        "confidential_instance_config": _confidential(specification),
    }
    given = {key: value for key, value in properties.items() if value not in ({}, [])}
    return {"name": require_name(specification.name), "properties": given}


def template_from(message: Any) -> Template:
    """A template from its protobuf message."""
    return Template(
        name=message.name,
        labels=dict(message.properties.labels),
        creation_time_utc=time_utc(message.creation_timestamp),
    )


def _items(items: list[Any]) -> dict[str, Any]:
    return {"items": items} if items else {}


def _scheduling(specification: TemplateSpecification) -> dict[str, Any]:
    model = specification.provisioning_model
    if model not in _SERVICE_MODELS:
        raise refuse(f"{model!r} is no provisioning model: {', '.join(_SERVICE_MODELS)}")
    if model == "FLEX_START" and specification.run_duration_seconds is None:
        raise refuse("a FLEX_START template needs a run duration")
    is_bound = _is_bound(specification)
    stays_put = model in ("ON_DEMAND", "RESERVATION") and not is_bound
    migrates = (
        stays_put
        and not specification.accelerator_count
        and not specification.confidential_instance_type
    )
    scheduling: dict[str, Any] = {
        "provisioning_model": "RESERVATION_BOUND" if is_bound else _SERVICE_MODELS[model],
        "automatic_restart": False,
        "on_host_maintenance": "MIGRATE" if migrates else "TERMINATE",
    }
    return scheduling | _end_of_life(specification)


def _end_of_life(specification: TemplateSpecification) -> dict[str, Any]:
    seconds = specification.run_duration_seconds
    ends = {"instance_termination_action": "DELETE"}
    if seconds is None:
        is_ended = specification.provisioning_model == "SPOT" or _is_bound(specification)
        return ends if is_ended else {}
    if not SHORTEST_LIFE_SECONDS <= seconds <= LONGEST_LIFE_SECONDS:
        raise refuse(
            f"a run duration of {seconds} s is not between {SHORTEST_LIFE_SECONDS} s"
            f" and {LONGEST_LIFE_SECONDS} s"
        )
    return ends | {"max_run_duration": {"seconds": seconds}}


def _reservation(specification: TemplateSpecification) -> dict[str, Any]:
    """Those of a pool that names none are left to others, since the service would use any."""
    reservation, is_reserved = specification.reservation, _is_reserved(specification)
    if is_reserved != (reservation is not None):
        raise refuse("a reservation belongs to the model RESERVATION, and to no other")
    if reservation is None:
        return {"consume_reservation_type": "NO_RESERVATION"}
    affinity: dict[str, Any] = {"consume_reservation_type": reservation.consumed}
    if reservation.consumed == "SPECIFIC_RESERVATION":
        affinity |= {"key": reservation.key, "values": list(reservation.values)}
    return affinity


def _is_reserved(specification: TemplateSpecification) -> bool:
    return specification.provisioning_model == "RESERVATION"


def _is_bound(specification: TemplateSpecification) -> bool:
    reservation = specification.reservation
    return _is_reserved(specification) and reservation is not None and reservation.bound


def _confidential(specification: TemplateSpecification) -> dict[str, Any]:
    kind = specification.confidential_instance_type
    return {"confidential_instance_type": kind} if kind else {}


def _boot_disk(specification: TemplateSpecification) -> dict[str, Any]:
    return {
        "boot": True,
        "auto_delete": True,
        "type_": "PERSISTENT",
        "mode": "READ_WRITE",
        "initialize_params": {
            "source_image": specification.source_image,
            "disk_size_gb": specification.boot_disk_size_gb,
            "disk_type": require_name(specification.boot_disk_type),
        },
    }


def _network_interface(specification: TemplateSpecification) -> dict[str, Any]:
    interface: dict[str, Any] = {"network": specification.network, "nic_type": "GVNIC"}
    if specification.subnetwork:
        interface["subnetwork"] = specification.subnetwork
    if specification.public_ip:
        interface["access_configs"] = [{"name": "External NAT", "type_": "ONE_TO_ONE_NAT"}]
    return interface


def _service_accounts(specification: TemplateSpecification) -> list[dict[str, Any]]:
    if not specification.service_account:
        return []
    return [{"email": specification.service_account, "scopes": list(ACCESS_SCOPES)}]


def _guest_accelerators(specification: TemplateSpecification) -> list[dict[str, Any]]:
    """Only N1 machines have GPUs attached; the others have them by their machine type."""
    if not (specification.accelerator_count and specification.machine_type.startswith("n1-")):
        return []
    if not specification.accelerator_type:
        raise refuse("an N1 machine with GPUs needs their accelerator type")
    kind = require_name(specification.accelerator_type)
    return [{"accelerator_type": kind, "accelerator_count": specification.accelerator_count}]
