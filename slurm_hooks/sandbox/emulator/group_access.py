"""What a group's template names must be there, and the service agent must be let make its VMs.

The service looks at this when a group is made. Networks of other projects are believed.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.sandbox.emulator.problems import OperationFailure, failure
from slurm_hooks.sandbox.emulator.project import Image
from slurm_hooks.sandbox.emulator.records import Json, Template
from slurm_hooks.sandbox.emulator.resource_names import Reference, parse_reference
from slurm_hooks.sandbox.emulator.world import World


def problem_of(world: World, template: Template) -> OperationFailure | None:
    """Why the group of a template cannot be made; None when it can."""
    return next(_problems(world, template.properties), None)


def _problems(world: World, properties: Json) -> Iterator[OperationFailure]:
    yield from _missing_permissions(world, properties)
    yield from _missing_networks(world, properties)
    for disk in properties.get("disks", []):
        image = disk.get("initializeParams", {}).get("sourceImage", "")
        reference = parse_reference(image, "images") if image else None
        if reference is not None and not _has_image(world, reference):
            yield _not_found(image)


def _missing_permissions(world: World, properties: Json) -> Iterator[OperationFailure]:
    project, identifiers = world.project, world.identifiers
    email = f"{identifiers.project_number}@cloudservices.gserviceaccount.com"
    agent = f"serviceAccount:{email}"
    if not project.allows(agent, "compute.instances.create", world.now):
        yield _denied(email, "compute.instances.create", f"projects/{identifiers.project}")
    for account in properties.get("serviceAccounts", []):
        address = str(account.get("email", ""))
        known = project.service_accounts.get(address)
        policies = (known.policy,) if known else ()
        if not project.allows(agent, "iam.serviceAccounts.actAs", world.now, *policies):
            yield _denied(email, "iam.serviceAccounts.actAs", address)


def _missing_networks(world: World, properties: Json) -> Iterator[OperationFailure]:
    project = world.project
    for interface in properties.get("networkInterfaces", []):
        network = parse_reference(interface.get("network", ""), "networks")
        if network and _is_ours(world, network) and network.name not in project.networks:
            yield _not_found(interface["network"])
        part = parse_reference(interface.get("subnetwork", ""), "subnetworks")
        key = (part.scope.name, part.name) if part else ("", "")
        if part and _is_ours(world, part) and key not in project.subnetworks:
            yield _not_found(interface["subnetwork"])


def _has_image(world: World, reference: Reference) -> bool:
    project = reference.project or world.identifiers.project
    name = reference.name.removeprefix("family/")
    special = world.project.images.get((project, name), Image())
    return special.exists and special.deprecated not in ("OBSOLETE", "DELETED")


def _is_ours(world: World, reference: Reference) -> bool:
    identifiers = world.identifiers
    return reference.project in ("", identifiers.project, str(identifiers.project_number))


def _not_found(link: str) -> OperationFailure:
    return failure("RESOURCE_NOT_FOUND", f"The resource '{link}' was not found")


def _denied(email: str, permission: str, resource: str) -> OperationFailure:
    text = f"Required '{permission}' permission for '{resource}' (when acting as '{email}')"
    return failure("PERMISSIONS_ERROR", text)
