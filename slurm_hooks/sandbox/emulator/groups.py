"""Managed instance groups: insert, patch, template change, resize and look-up."""

from __future__ import annotations

from slurm_hooks.sandbox.emulator import (
    deletions,
    group_access,
    group_rules,
    memberships,
    operations,
    resource_policies,
    templates,
    waiting,
)
from slurm_hooks.sandbox.emulator.identifiers import fingerprint
from slurm_hooks.sandbox.emulator.operations import Call, Draft
from slurm_hooks.sandbox.emulator.places import GLOBAL, Scope
from slurm_hooks.sandbox.emulator.problems import (
    Findings,
    OperationFailure,
    already_exists,
    condition_not_met,
    exists_already,
    failure,
    invalid_field,
    not_found,
    not_ready,
)
from slurm_hooks.sandbox.emulator.records import (
    LEAVING,
    Group,
    GroupState,
    Json,
    Member,
    Operation,
    Template,
)
from slurm_hooks.sandbox.emulator.resource_names import parse_reference
from slurm_hooks.sandbox.emulator.world import World

_KIND = "compute.instanceGroupManagers"
_PATCHABLE = frozenset(
    {
        "description",
        "fingerprint",
        "name",
        "instanceTemplate",
        "versions",
        "baseInstanceName",
        "instanceLifecyclePolicy",
        "updatePolicy",
        "standbyPolicy",
        "targetSize",
        "listManagedInstancesResults",
    }
)


def insert(world: World, call: Call, scope: Scope, body: Json) -> Operation:
    """Begin the creation of a group. Raises ApiError 400, 404 or 409."""
    group_rules.check_body(body)
    name = body["name"]
    group = Group(
        scope=scope,
        name=name,
        group_id=world.identifiers.unique_id(),
        created_utc=world.now,
        template=_usable_template(world, scope, group_rules.template_link(body)),
        zones=group_rules.zones_of(body, scope, world.places),
        body=group_rules.completed(body, scope),
        base_instance_name=body.get("baseInstanceName", name[: group_rules.MAX_BASE_NAME]),
    )
    if (scope, name) in world.groups:
        raise already_exists(world.path(group.path))
    _check_workload_policy(world, body)

    def accept() -> OperationFailure | None:
        if (scope, name) in world.groups:
            return exists_already(world.path(group.path))
        template = group.template
        if world.templates.get((template.scope, template.name)) is not template:
            text = f"The resource '{world.path(template.path)}' was not found"
            return failure("RESOURCE_NOT_FOUND", text)
        problem = group_access.problem_of(world, template)
        if problem is None:
            world.groups[scope, name] = group
        return problem

    def complete() -> None:
        group.state = GroupState.READY
        grow(world, group, body["targetSize"])

    draft = Draft(scope, f"{_KIND}.insert", group.path, group.group_id)
    seconds = world.latency.group_insert_seconds
    return operations.begin(world, call, draft, accept, complete, seconds)


def _usable_template(world: World, scope: Scope, link: str) -> Template:
    reference = parse_reference(link, "instanceTemplates")
    if reference is None:
        raise invalid_field("resource.instanceTemplate", link, "The URL is malformed.")
    ours = ("", world.identifiers.project, str(world.identifiers.project_number))
    if reference.project not in ours:
        raise not_found(f"projects/{reference.project}/{reference.scope}/instanceTemplates")
    if reference.scope != GLOBAL and reference.scope.region != scope.region:
        raise invalid_field("resource.instanceTemplate", link, "It lies in another region.")
    template = templates.find(world, reference.scope, reference.name)
    if not template.ready:
        raise not_ready(world.path(template.path))
    return template


def _check_workload_policy(world: World, body: Json) -> None:
    link = body.get("resourcePolicies", {}).get("workloadPolicy", "")
    if not link:
        return
    field = "resource.resourcePolicies.workloadPolicy"
    reference = parse_reference(link, "resourcePolicies")
    if reference is None:
        raise invalid_field(field, link, "The URL is malformed.")
    policy = resource_policies.find(world, reference.scope, reference.name)
    if "workloadPolicy" not in policy.body:
        raise invalid_field(field, link, "It is not a workload policy.")


def find(world: World, scope: Scope, name: str) -> Group:
    """A group by name or id. Raises ApiError 404."""
    group = world.groups.get((scope, name))
    if group is not None:
        return group
    for candidate in world.groups.values():
        if candidate.scope == scope and str(candidate.group_id) == name:
            return candidate
    raise not_found(world.path(f"{scope}/instanceGroupManagers/{name}"))


def ready(world: World, scope: Scope, name: str) -> Group:
    """A group that can be worked on. Raises ApiError 404, or 400 `resourceNotReady`."""
    group = find(world, scope, name)
    if group.state is not GroupState.READY:
        raise not_ready(world.path(group.path))
    return group


def fingerprint_of(group: Group) -> str:
    """The group's fingerprint; it changes with each patch."""
    return fingerprint([group.group_id, group.generation])


def delete(world: World, call: Call, scope: Scope, name: str) -> Operation:
    """Begin to delete a group with its VMs and requests. Raises ApiError 404 or 400."""
    return deletions.begin(world, call, find(world, scope, name))


def patch(world: World, call: Call, scope: Scope, name: str, body: Json) -> Operation:
    """Begin to change a group. Raises ApiError 400, 404, or 412 on an old fingerprint."""
    group = ready(world, scope, name)
    findings = Findings()
    for key in sorted(set(body) - _PATCHABLE):
        findings.add(f"resource.{key}", "", "The emulator cannot change this.")
    group_rules.check_changeable(body, findings)
    findings.check()
    if body.get("fingerprint", fingerprint_of(group)) != fingerprint_of(group):
        raise condition_not_met("Invalid fingerprint.")
    template = group.template
    if "instanceTemplate" in body or "versions" in body:
        template = _usable_template(world, scope, group_rules.template_link(body))
    if "targetSize" in body:
        _check_resizable(group)

    def complete() -> None:
        _change(world, group, template, body)

    draft = Draft(scope, f"{_KIND}.patch", group.path, group.group_id)
    return operations.begin(world, call, draft, None, complete)


def _change(world: World, group: Group, template: Template, body: Json) -> None:
    kept = {key: group.body.get(key, {}) for key in ("instanceLifecyclePolicy", "updatePolicy")}
    merged = {key: {**kept[key], **body[key]} for key in kept if key in body}
    group.body = group_rules.completed({**group.body, **body, **merged}, group.scope)
    group.template = template
    group.base_instance_name = group.body.get("baseInstanceName", group.base_instance_name)
    group.generation += 1
    if "targetSize" in body:
        set_size(world, group, body["targetSize"])


def set_template(world: World, call: Call, scope: Scope, name: str, body: Json) -> Operation:
    """Begin to change a group's template. Raises ApiError 400 or 404."""
    group = ready(world, scope, name)
    template = _usable_template(world, scope, group_rules.template_link(body))

    def complete() -> None:
        group.template = template
        group.generation += 1

    draft = Draft(scope, f"{_KIND}.setInstanceTemplate", group.path, group.group_id)
    return operations.begin(world, call, draft, None, complete)


def resize(world: World, call: Call, scope: Scope, name: str, size: int) -> Operation:
    """Set a group's size; the operation is DONE at once. Raises ApiError 400, 404 or 412."""
    group = ready(world, scope, name)
    if not 0 <= size <= group_rules.MAX_TARGET_SIZE:
        raise invalid_field("size", size, "Must be from 0 to 1000.")
    _check_resizable(group)

    def complete() -> None:
        set_size(world, group, size)

    draft = Draft(scope, f"{_KIND}.resize", group.path, group.group_id)
    return operations.begin(world, call, draft, None, complete, seconds=0)


def _check_resizable(group: Group) -> None:
    if any(request.state.is_active for request in group.requests.values()):
        raise condition_not_met("The group has resize requests that have not ended.")


def set_size(world: World, group: Group, size: int) -> None:
    """Add automatic members or delete surplus ones, those without a VM first."""
    surplus = group.target_size - size
    if surplus <= 0:
        grow(world, group, -surplus)
        return
    for member in sorted(_staying(group), key=lambda member: member.instance is not None)[:surplus]:
        memberships.delete_member(world, group, member)


def _staying(group: Group) -> list[Member]:
    return [member for member in group.members.values() if member.action not in LEAVING]


def grow(world: World, group: Group, count: int) -> None:
    """Add so many members with automatic names."""
    if count > 0:
        memberships.join(group, memberships.automatic_names(world, group, count))
        waiting.start_round(world)
