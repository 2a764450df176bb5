"""Instance templates: insert and delete. A template can be used once its insert is done."""

from __future__ import annotations

from slurm_hooks.sandbox.emulator import operations
from slurm_hooks.sandbox.emulator.operations import Call, Draft
from slurm_hooks.sandbox.emulator.places import Scope
from slurm_hooks.sandbox.emulator.problems import (
    OperationFailure,
    already_exists,
    exists_already,
    failure,
    not_found,
    not_ready,
)
from slurm_hooks.sandbox.emulator.records import Json, Operation, Template
from slurm_hooks.sandbox.emulator.template_rules import checked_properties
from slurm_hooks.sandbox.emulator.world import World


def insert(world: World, call: Call, scope: Scope, body: Json) -> Operation:
    """Begin the creation of a template. Raises ApiError 400 or 409."""
    properties = checked_properties(body, world.identifiers.project)
    name = body["name"]
    template = Template(
        scope=scope,
        name=name,
        template_id=world.identifiers.unique_id(),
        created_utc=world.now,
        properties=properties,
        description=body.get("description"),
    )
    if (scope, name) in world.templates:
        raise already_exists(world.path(template.path))

    def accept() -> OperationFailure | None:
        if (scope, name) in world.templates:
            return exists_already(world.path(template.path))
        world.templates[scope, name] = template
        return None

    def complete() -> None:
        template.ready = True

    draft = Draft(scope, "compute.instanceTemplates.insert", template.path, template.template_id)
    return operations.begin(world, call, draft, accept, complete)


def find(world: World, scope: Scope, name: str) -> Template:
    """A template by name or id. Raises ApiError 404."""
    template = world.templates.get((scope, name))
    if template is not None:
        return template
    for candidate in world.templates.values():
        if candidate.scope == scope and str(candidate.template_id) == name:
            return candidate
    raise not_found(world.path(f"{scope}/instanceTemplates/{name}"))


def delete(world: World, call: Call, scope: Scope, name: str) -> Operation:
    """Begin the deletion of a template; the operation fails if a group uses it.

    Raises ApiError 404, or 400 while its insert is not done.
    """
    template = find(world, scope, name)
    if not template.ready:
        raise not_ready(world.path(template.path))

    def complete() -> OperationFailure | None:
        for group in world.groups.values():
            if group.template is template:
                used, user = world.path(template.path), world.path(group.path)
                message = f"The instance_template resource '{used}' is already being used by"
                return failure("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", f"{message} '{user}'")
        if world.templates.get((scope, template.name)) is template:
            del world.templates[scope, template.name]
        return None

    draft = Draft(scope, "delete", template.path, template.template_id)
    return operations.begin(world, call, draft, None, complete)
