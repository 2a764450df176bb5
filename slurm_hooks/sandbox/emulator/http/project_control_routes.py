"""The control calls that break and mend what the project has beside VMs (docs/emulator.md)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from slurm_hooks.sandbox.emulator.http.service import Service
from slurm_hooks.sandbox.emulator.iam import Binding, Policy
from slurm_hooks.sandbox.emulator.places import region_of
from slurm_hooks.sandbox.emulator.project import (
    SERVICES,
    FileSystem,
    Image,
    Network,
    Project,
    Reservation,
    Secret,
    ServiceAccount,
    Subnetwork,
    healthy,
)
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.settings import camel_case
from slurm_hooks.sandbox.emulator.world import World

Control = Callable[[Service, dict[str, str], Json], Json]
_Record = TypeVar("_Record", Image, Network, Reservation, Secret, FileSystem, Subnetwork)
_COLLECTIONS = ("machineTypes", "diskTypes", "acceleratorTypes")
_READER_ROLE = "roles/secretmanager.secretAccessor"


class NoSuchThing(Exception):
    """The control path names a resource that is not there."""


def _made(record: type[_Record], members: dict[str, Any]) -> _Record:
    """A record of these members. Raises ValueError naming one that it does not have."""
    known = {camel_case(field.name): field.name for field in fields(record)}
    unknown = set(members) - set(known)
    if unknown:
        raise ValueError(f"unknown members: {', '.join(sorted(unknown))}")
    return record(**{known[name]: value for name, value in members.items()})


def _policy(project: Project, resource: str) -> Policy:
    kind, _, name = resource.partition("/")
    if resource == "project":
        return project.policy
    if kind == "serviceAccounts" and name in project.service_accounts:
        return project.service_accounts[name].policy
    if kind == "secrets" and name in project.secrets:
        return project.secrets[name].policy
    raise NoSuchThing(f"there is no resource {resource!r}")


def _grant(service: Service, names: dict[str, str], body: Json) -> Json:
    binding = Binding(
        str(body["role"]),
        str(body["member"]),
        str(body.get("condition", "")),
        str(body.get("title", "")),
        bool(body.get("inherited", False)),
    )
    _policy(service.world.project, str(body.get("resource", "project"))).grant(binding)
    return {}


def _revoke(service: Service, names: dict[str, str], body: Json) -> Json:
    policy = _policy(service.world.project, str(body.get("resource", "project")))
    return {"removed": policy.revoke(str(body["role"]), str(body["member"]))}


def _reset(service: Service, names: dict[str, str], body: Json) -> Json:
    world = service.world
    world.project = healthy(world.identifiers, world.places)
    world.quotas.limits.clear()
    return {}


def _set_caller(service: Service, names: dict[str, str], body: Json) -> Json:
    service.world.project.caller = str(body["member"])
    return {}


def _set_parent(service: Service, names: dict[str, str], body: Json) -> Json:
    service.world.project.parent = str(body["name"])
    return {}


def _set_service(service: Service, names: dict[str, str], body: Json) -> Json:
    name, enabled = names["name"], service.world.project.enabled_services
    if name not in SERVICES:
        raise NoSuchThing(f"there is no service {name!r}")
    (enabled.add if body["enabled"] else enabled.discard)(name)
    return {"enabled": sorted(enabled)}


def _put_account(service: Service, names: dict[str, str], body: Json) -> Json:
    accounts, email = service.world.project.service_accounts, names["name"]
    accounts.setdefault(email, ServiceAccount(email, service.world.identifiers.unique_id()))
    return {}


def _put_network(service: Service, names: dict[str, str], body: Json) -> Json:
    network = _made(Network, {"name": names["name"], **body})
    service.world.project.networks[network.name] = network
    return {}


def _put_subnetwork(service: Service, names: dict[str, str], body: Json) -> Json:
    found = _made(Subnetwork, {"ipCidrRange": "10.64.0.0/20", **names, **body})
    if found.network not in service.world.project.networks:
        raise NoSuchThing(f"there is no network {found.network!r}")
    if found.region not in service.world.places.regions:
        raise ValueError(f"region {found.region!r} is not served")
    service.world.project.subnetworks[found.region, found.name] = found
    return {}


def _put_image(service: Service, names: dict[str, str], body: Json) -> Json:
    found = _made(Image, body)
    service.world.project.images[names["project"], names["name"]] = found
    return {}


def _set_offer(service: Service, names: dict[str, str], body: Json) -> Json:
    zone, collection, name = names["zone"], names["collection"], names["name"]
    _check_zone(service.world, zone)
    if collection not in _COLLECTIONS:
        raise NoSuchThing(f"there is no collection {collection!r}")
    withheld = service.world.project.withheld
    (withheld.discard if body["offered"] else withheld.add)((zone, collection, name))
    return {}


def _put_reservation(service: Service, names: dict[str, str], body: Json) -> Json:
    _check_zone(service.world, names["zone"])
    found = _made(Reservation, {**names, **body})
    service.world.project.reservations[found.zone, found.name] = found
    return {}


def _check_zone(world: World, zone: str) -> None:
    if zone not in world.places.zones:
        raise ValueError(f"zone {zone!r} is not served")


def _put_file_system(attribute: str) -> Control:
    def control(service: Service, names: dict[str, str], body: Json) -> Json:
        known = {*service.world.places.zones, *map(region_of, service.world.places.zones)}
        if names["location"] not in known:
            raise ValueError(f"location {names['location']!r} is not served")
        found = _made(FileSystem, {**names, **body})
        getattr(service.world.project, attribute)[found.location, found.name] = found
        return {}

    return control


def _put_secret(service: Service, names: dict[str, str], body: Json) -> Json:
    """Adds a version; the secret is made with the first one."""
    secrets, name = service.world.project.secrets, names["name"]
    try:
        payload = base64.b64decode(str(body["payload"]), validate=True)
    except binascii.Error as error:
        raise ValueError(f"payload must be base64: {error}") from None
    secret = secrets.setdefault(name, Secret(name))
    secret.versions.append(payload)
    for member in body.get("readers", []):
        secret.policy.grant(Binding(_READER_ROLE, str(member)))
    return {"version": len(secret.versions)}


def _set_version(service: Service, names: dict[str, str], body: Json) -> Json:
    secret = service.world.project.secrets.get(names["name"])
    number = int(names["version"])
    if secret is None or not 0 < number <= len(secret.versions):
        raise NoSuchThing(f"there is no version {number} of a secret {names['name']!r}")
    (secret.disabled.discard if body["enabled"] else secret.disabled.add)(number)
    return {}


def _removal(attribute: str, *parts: str) -> Control:
    """A control that takes a thing out of a table of the project, by the parts of its path."""

    def control(service: Service, names: dict[str, str], body: Json) -> Json:
        key: Any = tuple(names[part] for part in parts) if len(parts) > 1 else names[parts[0]]
        if getattr(service.world.project, attribute).pop(key, None) is None:
            raise NoSuchThing(f"there is no {'/'.join(names.values())} among {attribute}")
        return {}

    return control


PROJECT_CONTROLS: tuple[tuple[str, str, Control], ...] = (
    ("POST", "iam/grant", _grant),
    ("POST", "iam/revoke", _revoke),
    ("POST", "project/reset", _reset),
    ("PUT", "caller", _set_caller),
    ("PUT", "parent", _set_parent),
    ("PUT", "services/{name}", _set_service),
    ("PUT", "serviceAccounts/{name}", _put_account),
    ("DELETE", "serviceAccounts/{name}", _removal("service_accounts", "name")),
    ("PUT", "networks/{name}", _put_network),
    ("DELETE", "networks/{name}", _removal("networks", "name")),
    ("PUT", "subnetworks/{region}/{name}", _put_subnetwork),
    ("DELETE", "subnetworks/{region}/{name}", _removal("subnetworks", "region", "name")),
    ("PUT", "images/{project}/{name}", _put_image),
    ("DELETE", "images/{project}/{name}", _removal("images", "project", "name")),
    ("PUT", "offers/{zone}/{collection}/{name}", _set_offer),
    ("PUT", "reservations/{zone}/{name}", _put_reservation),
    ("DELETE", "reservations/{zone}/{name}", _removal("reservations", "zone", "name")),
    ("PUT", "filestores/{location}/{name}", _put_file_system("filestores")),
    ("DELETE", "filestores/{location}/{name}", _removal("filestores", "location", "name")),
    ("PUT", "lustres/{location}/{name}", _put_file_system("lustres")),
    ("DELETE", "lustres/{location}/{name}", _removal("lustres", "location", "name")),
    ("PUT", "secrets/{name}", _put_secret),
    ("DELETE", "secrets/{name}", _removal("secrets", "name")),
    ("PUT", "secrets/{name}/versions/{version}", _set_version),
)
"""Method, path and what it does."""
