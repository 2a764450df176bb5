"""Things that clients look up before they name them: images, networks, disk types.

None of them has state here. Every well-formed name exists, and images do in every project.
"""

from __future__ import annotations

from collections.abc import Callable

from slurm_hooks.sandbox.emulator import machine_types
from slurm_hooks.sandbox.emulator.http import shapes
from slurm_hooks.sandbox.emulator.http.dispatch import LIST_PARAMETERS, ApiCall, ApiRoute
from slurm_hooks.sandbox.emulator.http.instance_shapes import EPOCH, stable_id
from slurm_hooks.sandbox.emulator.http.listing import Frame, plain_list
from slurm_hooks.sandbox.emulator.http.paging import Listable
from slurm_hooks.sandbox.emulator.identifiers import LINK_PREFIX
from slurm_hooks.sandbox.emulator.problems import not_found
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.resource_names import NAME
from slurm_hooks.sandbox.emulator.world import World

_DISK_TYPES = (
    "hyperdisk-balanced",
    "hyperdisk-extreme",
    "hyperdisk-ml",
    "hyperdisk-throughput",
    "local-ssd",
    "pd-balanced",
    "pd-extreme",
    "pd-ssd",
    "pd-standard",
)


def _checked(world: World, call: ApiCall, collection: str) -> str:
    name = call.names["name"]
    if not NAME.fullmatch(name):
        raise not_found(world.path(f"{call.scope}/{collection}/{name}"))
    return name


def _base(world: World, call: ApiCall, kind: str, collection: str, name: str) -> Json:
    return {
        "kind": f"compute#{kind}",
        "id": str(stable_id(name)),
        "creationTimestamp": EPOCH,
        "name": name,
        **shapes.place(world, call.scope),
        "selfLink": shapes.link(world, f"{call.scope}/{collection}/{name}"),
    }


def _image(family: bool) -> Callable[[World, ApiCall], Json]:
    def answer(world: World, call: ApiCall) -> Json:
        name = _checked(world, call, "images")
        project = call.names["project"]
        own = f"{name}-v20260101" if family else name
        body = _base(world, call, "image", "images", own)
        link = f"{LINK_PREFIX}projects/{project}/global/images/{own}"
        size = {"diskSizeGb": "10", "archiveSizeBytes": "1073741824"}
        return {**body, **size, "family": name, "status": "READY", "selfLink": link}

    return answer


def _network(world: World, call: ApiCall) -> Json:
    name = _checked(world, call, "networks")
    body = _base(world, call, "network", "networks", name)
    return {**body, "autoCreateSubnetworks": True, "routingConfig": {"routingMode": "REGIONAL"}}


def _subnetwork(world: World, call: ApiCall) -> Json:
    name = _checked(world, call, "subnetworks")
    body = _base(world, call, "subnetwork", "subnetworks", name)
    network = shapes.link(world, f"global/networks/{name}")
    return {**body, "network": network, "ipCidrRange": "10.128.0.0/9", "stackType": "IPV4_ONLY"}


def _disk_type_of(world: World, call: ApiCall, name: str) -> Json:
    return {**_base(world, call, "diskType", "diskTypes", name), "defaultDiskSizeGb": "100"}


def _disk_type(world: World, call: ApiCall) -> Json:
    name = _checked(world, call, "diskTypes")
    if name not in _DISK_TYPES:
        raise not_found(world.path(f"{call.scope}/diskTypes/{name}"))
    return _disk_type_of(world, call, name)


def _disk_types(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#diskTypeList", f"{call.scope}/diskTypes")
    items = [Listable(name, name) for name in _DISK_TYPES]
    return plain_list(world, call.query, frame, items, lambda one: _disk_type_of(world, call, one))


def _accelerator_of(world: World, call: ApiCall, name: str) -> Json:
    body = _base(world, call, "acceleratorType", "acceleratorTypes", name)
    return {**body, "description": name, "maximumCardsPerInstance": 8}


def _accelerator(world: World, call: ApiCall) -> Json:
    name = _checked(world, call, "acceleratorTypes")
    if name not in machine_types.GPU_METRICS:
        raise not_found(world.path(f"{call.scope}/acceleratorTypes/{name}"))
    return _accelerator_of(world, call, name)


def _accelerators(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#acceleratorTypeList", f"{call.scope}/acceleratorTypes")
    items = [Listable(name, name) for name in machine_types.GPU_METRICS]
    return plain_list(
        world, call.query, frame, items, lambda one: _accelerator_of(world, call, one)
    )


ZONAL_CATALOGUE = (
    ApiRoute("GET", "diskTypes", _disk_types, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", "diskTypes/{name}", _disk_type),
    ApiRoute("GET", "acceleratorTypes", _accelerators, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", "acceleratorTypes/{name}", _accelerator),
)
REGIONAL_CATALOGUE = (ApiRoute("GET", "subnetworks/{name}", _subnetwork),)
GLOBAL_CATALOGUE = (
    ApiRoute("GET", "images/family/{name}", _image(family=True), in_any_project=True),
    ApiRoute("GET", "images/{name}", _image(family=False), in_any_project=True),
    ApiRoute("GET", "networks/{name}", _network),
)
