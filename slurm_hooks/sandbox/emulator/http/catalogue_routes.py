"""Things that clients look up before they name them: images, disk types, accelerators.

All that are known exist, and images of every well-formed name do in every project, unless the
project says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from slurm_hooks.sandbox.emulator import machine_types
from slurm_hooks.sandbox.emulator.http import shapes
from slurm_hooks.sandbox.emulator.http.dispatch import LIST_PARAMETERS, ApiCall, ApiRoute
from slurm_hooks.sandbox.emulator.http.instance_shapes import EPOCH, stable_id
from slurm_hooks.sandbox.emulator.http.listing import Frame, plain_list
from slurm_hooks.sandbox.emulator.http.paging import Listable
from slurm_hooks.sandbox.emulator.identifiers import LINK_PREFIX
from slurm_hooks.sandbox.emulator.problems import not_found
from slurm_hooks.sandbox.emulator.project import Image
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
        special = world.project.images.get((project, name), Image())
        path = f"global/images/{'family/' if family else ''}{name}"
        if not special.exists or (family and special.deprecated):
            raise not_found(f"projects/{project}/{path}")
        own = f"{name}-v20260101" if family else name
        body = _base(world, call, "image", "images", own)
        return shapes.without_unset(
            {
                **body,
                "diskSizeGb": "10",
                "archiveSizeBytes": "1073741824",
                "family": name,
                "status": "READY",
                "architecture": special.architecture or _architecture_of(name),
                "deprecated": {"state": special.deprecated} if special.deprecated else None,
                "selfLink": f"{LINK_PREFIX}projects/{project}/global/images/{own}",
            }
        )

    return answer


def _architecture_of(image: str) -> str:
    return "ARM64" if "arm64" in image else "X86_64"


def _is_withheld(world: World, call: ApiCall, collection: str, name: str) -> bool:
    return (call.scope.name, collection, name) in world.project.withheld


def _offered(
    world: World, call: ApiCall, collection: str, names: Iterable[str]
) -> list[Listable[str]]:
    return [
        Listable(name, name) for name in names if not _is_withheld(world, call, collection, name)
    ]


def _disk_type_of(world: World, call: ApiCall, name: str) -> Json:
    return {**_base(world, call, "diskType", "diskTypes", name), "defaultDiskSizeGb": "100"}


def _disk_type(world: World, call: ApiCall) -> Json:
    name = _checked(world, call, "diskTypes")
    if name not in _DISK_TYPES or _is_withheld(world, call, "diskTypes", name):
        raise not_found(world.path(f"{call.scope}/diskTypes/{name}"))
    return _disk_type_of(world, call, name)


def _disk_types(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#diskTypeList", f"{call.scope}/diskTypes")
    items = _offered(world, call, "diskTypes", _DISK_TYPES)
    return plain_list(world, call.query, frame, items, lambda one: _disk_type_of(world, call, one))


def _accelerator_of(world: World, call: ApiCall, name: str) -> Json:
    body = _base(world, call, "acceleratorType", "acceleratorTypes", name)
    return {**body, "description": name, "maximumCardsPerInstance": 8}


def _accelerator(world: World, call: ApiCall) -> Json:
    name = _checked(world, call, "acceleratorTypes")
    if name not in machine_types.GPU_METRICS or _is_withheld(world, call, "acceleratorTypes", name):
        raise not_found(world.path(f"{call.scope}/acceleratorTypes/{name}"))
    return _accelerator_of(world, call, name)


def _accelerators(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#acceleratorTypeList", f"{call.scope}/acceleratorTypes")
    items = _offered(world, call, "acceleratorTypes", machine_types.GPU_METRICS)
    return plain_list(
        world, call.query, frame, items, lambda one: _accelerator_of(world, call, one)
    )


ZONAL_CATALOGUE = (
    ApiRoute("GET", "diskTypes", _disk_types, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", "diskTypes/{name}", _disk_type),
    ApiRoute("GET", "acceleratorTypes", _accelerators, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", "acceleratorTypes/{name}", _accelerator),
)
GLOBAL_CATALOGUE = (
    ApiRoute("GET", "images/family/{name}", _image(family=True), in_any_project=True),
    ApiRoute("GET", "images/{name}", _image(family=False), in_any_project=True),
)
