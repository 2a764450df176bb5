"""What the VMs are made of: machine, disk and accelerator types of the zone, and the image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.facts import (
    Answer,
    Image,
    MachineType,
    ProjectFacts,
    Unread,
    ZonalName,
)
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.rules.findings import Subject

LOOK_AT_IMAGES_ROLE = "roles/compute.imageUser"
_GONE = ("OBSOLETE", "DELETED")
_Found = TypeVar("_Found")


def service_accelerator(accelerator_type: str) -> str:
    """An accelerator type as Compute Engine names it: `nvidia-h200-141gb`."""
    return accelerator_type.lower().replace("_", "-")


def machine_types_of(pool: NodePool) -> Iterator[ZonalName]:
    """The machine type of a pool in each of its zones."""
    return (ZonalName(zone, pool.machine_type) for zone in pool.zones)


def disk_types_of(pool: NodePool) -> Iterator[ZonalName]:
    """The same of its disk type."""
    return (ZonalName(zone, pool.boot_disk_type) for zone in pool.zones)


def accelerator_types_of(pool: NodePool) -> Iterator[ZonalName]:
    """The same of its accelerator type, if it has one."""
    if pool.accelerator_type:
        name = service_accelerator(pool.accelerator_type)
        yield from (ZonalName(zone, name) for zone in pool.zones)


def check_types(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Each zone has the types that pools use there."""
    yield from _offered("machine type", "machine-types", facts.machine_types, facts.project)
    yield from _offered("disk type", "disk-types", facts.disk_types, facts.project)
    kinds = facts.accelerator_types
    yield from _offered("accelerator type", "accelerator-types", kinds, facts.project)


def _offered(
    check: str, collection: str, found: Mapping[ZonalName, Answer[_Found]], project: str
) -> Iterator[Finding]:
    for name, answer in found.items():
        subject = Subject(check, str(name))
        if isinstance(answer, Unread):
            yield subject.unread(answer)
        elif answer is None:
            fix = commands.list_zones_with(project, collection, name)
            yield subject.fails("the zone has none; the command lists those that do", fix)
        else:
            yield subject.passes()


def check_images(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Each image exists, is not withdrawn, and runs on the machines of its pools."""
    for name, answer in facts.images.items():
        pools = [pool for pool in cluster.pools.values() if pool.source_image == name]
        yield _image(name, answer, pools, facts)


def _image(
    name: str, answer: Answer[Image], pools: Iterable[NodePool], facts: ProjectFacts
) -> Finding:
    subject, project = Subject("image", name), commands.part(name, "projects")
    if isinstance(answer, Unread):
        look = commands.grant(project, facts.caller, LOOK_AT_IMAGES_ROLE)
        return subject.unread(answer, look)
    if answer is None:
        detail = "does not exist; the command lists those that do"
        return subject.fails(detail, commands.list_images(name))
    if answer.deprecated in _GONE:
        return subject.fails(f"is {answer.deprecated}", commands.restore_image(name))
    for pool in pools:
        for machine in machine_types_of(pool):
            wrong = _misfit(answer, facts.machine_types.get(machine))
            if wrong:
                return subject.fails(f"is for {answer.architecture}, {machine.name} is {wrong}")
    if answer.deprecated:
        return subject.warns("is deprecated", commands.list_images(name))
    return subject.passes()


def _misfit(image: Image, machine: Answer[MachineType]) -> str:
    """The machine's architecture where the image is for another one."""
    if not isinstance(machine, MachineType) or not (image.architecture and machine.architecture):
        return ""
    return machine.architecture if machine.architecture != image.architecture else ""
