"""Reaping: what is ours in Compute Engine and nothing in Slurm or the cluster file needs.

Invariant: only what carries our mark or label is ever named, whatever its name, and only at the
second sighting, older than the grace. What could not be read in full, or is not understood, is
no licence: it is left alone. VMs of one name in two zones are reported and left to people.
VMs of powered-down nodes are deleted in `plan_nodes`.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.compute.model import (
    Group,
    GroupReference,
    Instance,
    MemberAction,
    Scope,
    ScopeKind,
)
from slurm_hooks.compute.ownership import Mark, decode, is_ours
from slurm_hooks.reconcile.actions import (
    Action,
    DeleteGroup,
    DeleteInstance,
    DeleteRequest,
    DeleteTemplate,
    DeleteWorkloadPolicy,
)
from slurm_hooks.reconcile.phases import VmPhase, vm_phase_of
from slurm_hooks.reconcile.plan_requests import finished_requests
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.sightings import is_believed
from slurm_hooks.reconcile.specifications import (
    is_in_slurm,
    is_outdated,
    present_generations,
    template_of,
    workload_policy_of,
)
from slurm_hooks.reconcile.views import deletion_of, deletion_of_member

Deletion = DeleteInstance | DeleteGroup | DeleteTemplate | DeleteWorkloadPolicy


def plan_reaping(scene: Scene) -> Iterator[Action]:
    """Delete what has been of no use for long enough to be believed."""
    before = scene.memory.sightings
    for action in unneeded(scene):
        if is_believed(action.subject, before.unneeded, scene.now):
            yield action
    for finished in finished_requests(scene):
        if finished.subject in before.finished and not _is_young(finished, scene):
            yield finished


def unneeded(scene: Scene) -> tuple[Deletion, ...]:
    """What is of no use in this pass, beside requests; it is deleted once that is believed."""
    return (
        *_vms_without_node(scene),
        *_members_without_node(scene),
        *_outdated_groups(scene),
        *_outdated_templates(scene),
        *_stale_policies(scene),
    )


def _is_young(action: DeleteRequest, scene: Scene) -> bool:
    request = scene.compute.requests[action.request]
    return not scene.is_past_grace(request.creation_time_utc)


def _vms_without_node(scene: Scene) -> Iterator[DeleteInstance]:
    if scene.slurm.unreadable:
        return
    known = scene.slurm.nodes
    strangers = [vm for name, vm in scene.compute.instances.items() if name not in known]
    if not strangers:
        return
    awaited = _awaited_names(scene)
    twice = {vm.name for vm in scene.compute.duplicates}
    for vm in strangers:
        if vm.name not in awaited | twice and _is_orphan(scene, vm):
            yield deletion_of(vm)


def _members_without_node(scene: Scene) -> Iterator[DeleteInstance]:
    """Members that wait for VMs which no node in Slurm would be for. They have no age."""
    if scene.slurm.unreadable:
        return
    for name, member in scene.compute.members.items():
        is_known = member.action in (MemberAction.NONE, MemberAction.CREATING)
        if is_known and name not in scene.slurm.nodes and not _is_login_node(name, scene):
            yield deletion_of_member(member)


def _is_orphan(scene: Scene, vm: Instance) -> bool:
    return (
        is_ours(vm, scene.cluster.cluster_id)
        and not _is_login_node(vm.name, scene)
        and vm_phase_of(vm, deletion_in_flight=False) not in (VmPhase.LEAVING, VmPhase.UNKNOWN)
        and scene.is_past_grace(vm.creation_time_utc)
    )


def _is_login_node(name: str, scene: Scene) -> bool:
    """Whether it is one of the login nodes that there are to be: see `plan_login`."""
    pool = scene.cluster.pool_of(name)
    return pool is not None and pool.is_login


def _awaited_names(scene: Scene) -> frozenset[str]:
    """The VMs that may still come of a resize request."""
    return frozenset(
        name
        for request in scene.compute.requests.values()
        if request.state.is_active
        for name in request.instances
    )


def _outdated_groups(scene: Scene) -> Iterator[DeleteGroup]:
    present = present_generations(scene.cluster)
    outdated = [
        group
        for group in scene.compute.groups.values()
        if _is_of_no_use(group, scene, present) and scene.is_past_grace(group.creation_time_utc)
    ]
    if not outdated:
        return
    in_use = _groups_in_use(scene)
    for group in outdated:
        if group.target_size == 0 and group.reference not in in_use:
            yield DeleteGroup(group.reference)


def _is_of_no_use(group: Group, scene: Scene, present: frozenset[tuple[str, str]]) -> bool:
    mark = decode(group.description)
    return (
        mark is not None
        and mark.cluster == scene.cluster.cluster_id
        and mark.generation != ""
        and (is_outdated(mark, present) or _is_of_ended_job(mark, scene))
    )


def _is_of_ended_job(mark: Mark, scene: Scene) -> bool:
    """Whether a group was made for one start of a job, and the job has left that start."""
    job = scene.slurm.jobs.get(mark.job_id) if mark.job_id is not None else None
    if mark.job_id is None or (job is None and scene.slurm.unreadable):
        return False
    return job is None or not job.is_active or job.restarts != mark.restarts


def _groups_in_use(scene: Scene) -> frozenset[GroupReference]:
    """Groups with VMs or with requests that may still bring some."""
    compute = scene.compute
    with_vms = {vm.group for vm in (*compute.instances.values(), *compute.duplicates) if vm.group}
    with_requests = {
        reference.group
        for reference, request in compute.requests.items()
        if request.state.is_active
    }
    return frozenset(with_vms | with_requests)


def _outdated_templates(scene: Scene) -> Iterator[DeleteTemplate]:
    if not scene.templates:
        return
    needed = {group.template for group in scene.compute.groups.values()} | {
        template_of(scene.cluster, pool).name for pool in scene.cluster.pools.values()
    }
    for template in scene.templates:
        if (
            template.name not in needed
            and is_ours(template, scene.cluster.cluster_id)
            and scene.is_past_grace(template.creation_time_utc)
        ):
            yield DeleteTemplate(template.name)


def _stale_policies(scene: Scene) -> Iterator[DeleteWorkloadPolicy]:
    """Policies of pools that place no jobs any more, or are no more, once their groups are gone.

    That a pool still has `compact_placement` covers every job that starts: its group may be on its
    way without being listed.
    """
    if not scene.workload_policies:
        return
    needed = {
        (policy.scope, policy.name)
        for pool in scene.cluster.pools.values()
        if is_in_slurm(pool) and pool.compact_placement
        for policy in [workload_policy_of(scene.cluster, pool)]
    } | {
        (Scope(ScopeKind.REGION, group.reference.scope.region), group.workload_policy)
        for group in scene.compute.groups.values()
    }
    for policy in scene.workload_policies:
        if (
            (policy.scope, policy.name) not in needed
            and is_ours(policy, scene.cluster.cluster_id)
            and scene.is_past_grace(policy.creation_time_utc)
        ):
            yield DeleteWorkloadPolicy(policy.scope, policy.name)
