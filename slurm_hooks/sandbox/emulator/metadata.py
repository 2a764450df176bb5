"""What a VM's metadata server says: a tree of values, as the guest reads them.

Source: Compute Engine's metadata reference. There is no key for the end of life of a Flex-start
VM, here as there.
"""

from __future__ import annotations

import json
import re
from typing import Any

from slurm_hooks.sandbox.emulator.identifiers import fingerprint
from slurm_hooks.sandbox.emulator.records import Instance, InstanceStatus, Json
from slurm_hooks.sandbox.emulator.world import World

TOKEN_PREFIX = "emulated-token-of-"
"""Of the token that the metadata server of a VM gives out; the name of the VM follows."""

Node = Any
"""A dict (a directory), a list (a directory with numbers for names) or a plain value."""


def tree(world: World, instance: Instance) -> Json:
    """The whole tree of one VM, with the keys in the spelling of `recursive=true`."""
    return {"instance": _instance(world, instance), "project": _project(world)}


def _project(world: World) -> Json:
    identifiers = world.identifiers
    return {
        "attributes": {},
        "numericProjectId": identifiers.project_number,
        "projectId": identifiers.project,
    }


def _instance(world: World, instance: Instance) -> Json:
    number = world.identifiers.project_number
    prefix = f"projects/{number}"
    scheduling = instance.scheduling
    body: Json = {
        "attributes": {item["key"]: item.get("value", "") for item in instance.metadata},
        "cpuPlatform": "Emulated CPU",
        "description": instance.properties.get("description", ""),
        "hostname": _hostname(world, instance),
        "id": instance.instance_id,
        "image": "",
        "machineType": f"{prefix}/machineTypes/{instance.machine_type}",
        "maintenanceEvent": "NONE",
        "name": instance.name,
        "networkInterfaces": _interfaces(world, instance),
        "preempted": _preempted(instance),
        "scheduling": {
            "automaticRestart": _upper(scheduling.get("automaticRestart", True)),
            "onHostMaintenance": scheduling.get("onHostMaintenance", "MIGRATE"),
            "preemptible": _upper(scheduling.get("preemptible", False)),
        },
        "serviceAccounts": _service_accounts(world, instance),
        "tags": instance.properties.get("tags", {}).get("items", []),
        "zone": f"{prefix}/zones/{instance.zone}",
    }
    if instance.status is InstanceStatus.STOPPING:
        body["shutdownDetails"] = {"stopState": "STOPPING"}
    return body


def _hostname(world: World, instance: Instance) -> str:
    return f"{instance.name}.{instance.zone}.c.{world.identifiers.project}.internal"


def _preempted(instance: Instance) -> str:
    stopping = instance.status is InstanceStatus.STOPPING
    return _upper(stopping and instance.provisioning_model == "SPOT")


def _upper(value: object) -> str:
    return "TRUE" if value else "FALSE"


def _interfaces(world: World, instance: Instance) -> list[Json]:
    return [
        {
            "accessConfigs": [],
            "ip": instance.network_ip if index == 0 else f"10.{index}.0.2",
            "network": f"projects/{world.identifiers.project_number}/networks/default",
        }
        for index, _ in enumerate(instance.properties.get("networkInterfaces", [{}]))
    ]


def service_account_of(world: World, instance: Instance) -> str:
    """The address of the account that a VM runs as; empty for a VM without one."""
    accounts = instance.properties.get("serviceAccounts", [])
    if not accounts:
        return ""
    email = str(accounts[0].get("email", "default"))
    if email == "default":
        email = f"{world.identifiers.project_number}-compute@developer.gserviceaccount.com"
    return email


def _service_accounts(world: World, instance: Instance) -> Json:
    accounts = instance.properties.get("serviceAccounts", [])
    email = service_account_of(world, instance)
    if not email:
        return {}
    account = {
        "aliases": ["default"],
        "email": email,
        "scopes": accounts[0].get("scopes", []),
        "token": {
            "access_token": f"{TOKEN_PREFIX}{instance.name}",
            "expires_in": 3599,
            "token_type": "Bearer",
        },
    }
    return {"default": account, email: account}


_RAW = ("attributes", "serviceAccounts")


def find(root: Json, path: str) -> Node:
    """The node at a path such as `instance/machine-type`. Raises KeyError if there is none."""
    node: Node = root
    raw = False
    for part in [part for part in path.split("/") if part]:
        if isinstance(node, list):
            if not part.isdigit() or int(part) >= len(node):
                raise KeyError(path)
            node, raw = node[int(part)], False
            continue
        if not isinstance(node, dict):
            raise KeyError(path)
        key = part if raw else _camel(part)
        node = node[key]
        raw = key in _RAW
    return node


def _camel(part: str) -> str:
    return re.sub(r"-([a-z])", lambda match: match[1].upper(), part)


def _hyphened(key: str) -> str:
    return re.sub(r"[A-Z]", lambda match: "-" + match[0].lower(), key)


def render(node: Node, path: str, recursive: bool, as_json: bool) -> tuple[str, str]:
    """The text of a node and its media type."""
    last = path.rstrip("/").rpartition("/")[2]
    if recursive or (as_json and not isinstance(node, dict)) or last == "token":
        return json.dumps(node), "application/json"
    if isinstance(node, dict):
        names = [_name(key, value, last) for key, value in node.items()]
        return (json.dumps(names), "application/json") if as_json else _lines(names)
    if isinstance(node, list):
        if last in ("scopes", "tags", "aliases"):
            return _lines([str(item) for item in node])
        return _lines([f"{index}/" for index in range(len(node))])
    return str(node), "application/text"


def _name(key: str, value: Node, parent: str) -> str:
    name = key if parent in ("attributes", "service-accounts") else _hyphened(key)
    return f"{name}/" if isinstance(value, dict | list) else name


def _lines(names: list[str]) -> tuple[str, str]:
    return "".join(f"{name}\n" for name in names), "application/text"


def etag(node: Node) -> str:
    """A text that changes with the node."""
    return fingerprint(node).rstrip("=")
