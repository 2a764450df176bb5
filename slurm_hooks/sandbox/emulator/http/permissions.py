"""The permission that a call to Compute Engine asks for on the project, by its method and path.

Most follow from the names. Calls about resize requests and members are updates of their group, as
the service's documentation says of each.
"""

from __future__ import annotations

from slurm_hooks.sandbox.emulator.places import ScopeKind

_AT_COLLECTION = {"GET": "list", "POST": "create"}
_AT_RESOURCE = {"GET": "get", "DELETE": "delete", "PATCH": "update"}
_VERBS = {
    "listErrors": "get",
    "listInstances": "list",
    "listManagedInstances": "get",
    "reset": "reset",
    "resume": "resume",
    "serialPort": "getSerialPortOutput",
    "setLabels": "setLabels",
    "setMetadata": "setMetadata",
    "start": "start",
    "stop": "stop",
    "suspend": "suspend",
    "wait": "get",
}
"""Of a call on a resource; any other is an update of it."""
_OPERATIONS = {
    ScopeKind.ZONE: "zoneOperations",
    ScopeKind.REGION: "regionOperations",
    ScopeKind.GLOBAL: "globalOperations",
}
_PLACES = {ScopeKind.ZONE: "zones", ScopeKind.REGION: "regions", ScopeKind.GLOBAL: "projects"}


def permission_of(method: str, path: str, kind: ScopeKind) -> str:
    """The permission for a method and the path below its scope, e.g. `instances/{instance}`."""
    if not path:
        return f"compute.{_PLACES[kind]}.get"
    collection, *rest = path.split("/")
    if collection == "operations":
        collection = _OPERATIONS[kind]
    return f"compute.{collection}.{_action(method, rest)}"


def _action(method: str, rest: list[str]) -> str:
    match rest:
        case []:
            return _AT_COLLECTION[method]
        case ["family", _]:
            return "getFromFamily"
        case [_]:
            return _AT_RESOURCE[method]
        case [_, "resizeRequests"] if method == "GET":
            return "list"
        case [_, "resizeRequests", _] if method == "GET":
            return "get"
        case [_, verb]:
            return _VERBS.get(verb, "update")
        case _:
            return "update"
