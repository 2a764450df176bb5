"""Filestore, Lustre and Secret Manager.

Filestore and Lustre have the same paths on hosts of their own; here those of Lustre follow the
prefix `/lustre`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from slurm_hooks.sandbox.emulator.http.project_services import (
    policy_to_json,
    set_policy,
    tested_permissions,
)
from slurm_hooks.sandbox.emulator.http.service_dispatch import (
    ServiceCall,
    ServiceError,
    ServiceRoute,
)
from slurm_hooks.sandbox.emulator.iam import Policy
from slurm_hooks.sandbox.emulator.identifiers import fingerprint, utc_timestamp
from slurm_hooks.sandbox.emulator.project import (
    FILESTORE,
    LUSTRE,
    SECRET_MANAGER,
    FileSystem,
    Secret,
)
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.world import World

_PROJECT = "/v1/projects/{project}"
_INSTANCES = f"{_PROJECT}/locations/{{location}}/instances"
_SECRET = f"{_PROJECT}/secrets/{{secret}}"
_VERSION = f"{_SECRET}/versions/{{version}}"
Found = dict[tuple[str, str], FileSystem]
Shape = Callable[[World, FileSystem], Json]


def _filestore(world: World, item: FileSystem) -> Json:
    return {
        "name": _file_system_name(world, item),
        "tier": "ZONAL" if item.location in world.places.zones else "REGIONAL",
        "state": item.state,
        "createTime": utc_timestamp(world.now),
        "fileShares": [{"name": item.share, "capacityGb": "1024"}],
        "networks": [
            {
                "network": item.network,
                "modes": ["MODE_IPV4"],
                "reservedIpRange": f"{item.address.rpartition('.')[0]}.0/29",
                "ipAddresses": [item.address],
                "connectMode": "DIRECT_PEERING",
            }
        ],
        "etag": fingerprint([item.name, item.state]),
    }


def _lustre(world: World, item: FileSystem) -> Json:
    return {
        "name": _file_system_name(world, item),
        "filesystem": item.share,
        "capacityGib": "18000",
        "perUnitStorageThroughput": "1000",
        "network": item.network,
        "state": "ACTIVE" if item.state == "READY" else item.state,
        "mountPoint": f"{item.address}@tcp:/{item.share}",
        "createTime": utc_timestamp(world.now),
        "updateTime": utc_timestamp(world.now),
    }


def _file_system_name(world: World, item: FileSystem) -> str:
    return f"projects/{world.identifiers.project}/locations/{item.location}/instances/{item.name}"


def _get_file_system(
    found: Callable[[World], Found], shape: Shape, permission: str
) -> Callable[[World, ServiceCall], Json]:
    def handler(world: World, call: ServiceCall) -> Json:
        location, name = call.names["location"], call.names["instance"]
        resource = f"projects/{world.identifiers.project}/locations/{location}/instances/{name}"
        call.require(world, permission, resource)
        item = found(world).get((location, name))
        if item is None:
            raise ServiceError(404, f"Resource '{resource}' was not found.")
        return shape(world, item)

    return handler


def _list_file_systems(
    found: Callable[[World], Found], shape: Shape, permission: str
) -> Callable[[World, ServiceCall], Json]:
    def handler(world: World, call: ServiceCall) -> Json:
        location = call.names["location"]
        call.require(world, permission, f"projects/{world.identifiers.project}")
        items = [one for one in found(world).values() if location in ("-", one.location)]
        return {"instances": [shape(world, item) for item in items]} if items else {}

    return handler


def _secret(world: World, call: ServiceCall) -> Secret:
    secret = world.project.secrets.get(call.names["secret"])
    if secret is None:
        raise ServiceError(404, f"Secret [{_secret_name(world, call.names['secret'])}] not found.")
    return secret


def _secret_name(world: World, name: str) -> str:
    return f"projects/{world.identifiers.project_number}/secrets/{name}"


def _secret_policy(world: World, call: ServiceCall) -> Policy:
    return _secret(world, call).policy


def _require(world: World, call: ServiceCall, permission: str) -> Secret:
    """The secret of a call. What a caller may not see is refused whether it exists or not."""
    name = call.names["secret"]
    secret = world.project.secrets.get(name)
    policies = (secret.policy,) if secret else ()
    call.require(world, f"secretmanager.{permission}", _secret_name(world, name), *policies)
    return _secret(world, call)


def _get_secret(world: World, call: ServiceCall) -> Json:
    secret = _require(world, call, "secrets.get")
    return {
        "name": _secret_name(world, secret.name),
        "replication": {"automatic": {}},
        "createTime": utc_timestamp(world.now),
        "etag": fingerprint(secret.name),
    }


def _get_secret_policy(world: World, call: ServiceCall) -> Json:
    return policy_to_json(_require(world, call, "secrets.getIamPolicy").policy, call)


def _test_secret(world: World, call: ServiceCall) -> Json:
    return tested_permissions(world, call, _secret(world, call).policy)


@dataclass(frozen=True, slots=True)
class _Version:
    """A version of a secret by its full name."""

    name: str
    payload: bytes
    state: str


def _version(world: World, call: ServiceCall, secret: Secret) -> _Version:
    """The version that a call names; `latest` is the last one."""
    text = call.names["version"]
    number = len(secret.versions) if text == "latest" else int(text) if text.isdigit() else 0
    name = f"{_secret_name(world, secret.name)}/versions/{number or text}"
    if not 0 < number <= len(secret.versions):
        raise ServiceError(404, f"Secret Version [{name}] not found.")
    state = "DISABLED" if number in secret.disabled else "ENABLED"
    return _Version(name, secret.versions[number - 1], state)


def _get_version(world: World, call: ServiceCall) -> Json:
    version = _version(world, call, _require(world, call, "versions.get"))
    return {
        "name": version.name,
        "createTime": utc_timestamp(world.now),
        "state": version.state,
        "replicationStatus": {"automatic": {}},
        "etag": fingerprint([version.name, version.state]),
    }


def _access_version(world: World, call: ServiceCall) -> Json:
    version = _version(world, call, _require(world, call, "versions.access"))
    if version.state != "ENABLED":
        raise ServiceError(412, f"Secret Version [{version.name}] is in DISABLED state.")
    return {
        "name": version.name,
        "payload": {"data": base64.b64encode(version.payload).decode()},
    }


def _file_systems(
    service: str, prefix: str, found: Callable[[World], Found], shape: Shape
) -> tuple[ServiceRoute, ...]:
    word = service.partition(".")[0]
    path = f"{prefix}{_INSTANCES}"
    get = _get_file_system(found, shape, f"{word}.instances.get")
    listed = _list_file_systems(found, shape, f"{word}.instances.list")
    parameters = frozenset({"pageSize", "pageToken", "filter", "orderBy"})
    return (
        ServiceRoute(service, "GET", f"{path}/{{instance}}", get),
        ServiceRoute(service, "GET", path, listed, parameters=parameters),
    )


_ASKED_VERSION = frozenset({"options.requestedPolicyVersion"})
STORAGE_SERVICES = (
    *_file_systems(FILESTORE, "", lambda world: world.project.filestores, _filestore),
    *_file_systems(LUSTRE, "/lustre", lambda world: world.project.lustres, _lustre),
    ServiceRoute(SECRET_MANAGER, "GET", f"{_VERSION}:access", _access_version),
    ServiceRoute(SECRET_MANAGER, "GET", _VERSION, _get_version),
    ServiceRoute(
        SECRET_MANAGER,
        "GET",
        f"{_SECRET}:getIamPolicy",
        _get_secret_policy,
        parameters=_ASKED_VERSION,
    ),
    ServiceRoute(
        SECRET_MANAGER,
        "POST",
        f"{_SECRET}:setIamPolicy",
        set_policy(_secret_policy),
        frozenset({"policy", "updateMask", "resource"}),
    ),
    ServiceRoute(
        SECRET_MANAGER,
        "POST",
        f"{_SECRET}:testIamPermissions",
        _test_secret,
        frozenset({"permissions", "resource"}),
    ),
    ServiceRoute(SECRET_MANAGER, "GET", _SECRET, _get_secret),
)
"""In the order in which paths are tried: one with a verb before the same one without."""
