"""Login nodes: VMs outside Slurm, created by name and kept at the size of the login pool.

Nobody but the cluster file asks for them, so the file is their intent: each name is to have a VM
that runs. One that is missing or has stopped is made anew, once that is believed. A VM of an
outdated generation stays until a person deletes it, since people work there. What is beyond the
size of the pool is reaped like every VM that nothing needs (`plan_reaping`).

The service tries again by itself to make a VM that it could not make; we say why it lacks. A
member that still waits in a group of an outdated generation is moved, since nobody works there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slurm_hooks.cluster.topology import NodePool
from slurm_hooks.compute.model import (
    ErrorDetail,
    Group,
    GroupSpecification,
    Instance,
    Member,
    MemberAction,
    Scope,
    ScopeKind,
)
from slurm_hooks.compute.ownership import decode
from slurm_hooks.reconcile.actions import (
    Action,
    CreateInstances,
    DeleteInstance,
    InsertGroup,
    Notice,
    NoticeKind,
)
from slurm_hooks.reconcile.phases import RequestPhase, VmPhase, member_phases_of, vm_phase_of
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.sightings import is_believed
from slurm_hooks.reconcile.specifications import group_of, request_stem, template_of
from slurm_hooks.reconcile.views import deletion_of, deletion_of_member


@dataclass(frozen=True, slots=True)
class LoginPlan:
    """The actions for login nodes, and what is said of those that lack.

    `doubtful` are the names whose VM is missing or bad, acted on once that is believed. `lacking`
    counts by pool the login nodes whose VM does not run.
    """

    actions: tuple[Action, ...]
    notices: tuple[Notice, ...]
    doubtful: tuple[str, ...]
    lacking: dict[str, int]


@dataclass(frozen=True, slots=True)
class _LoginNode:
    """A login node that there is to be, and what there is of it."""

    name: str
    vm: Instance | None
    member: Member | None
    waiting: bool
    """Its group is about to make its VM, or we do not know what it does."""
    vm_phase: VmPhase

    @property
    def is_missing(self) -> bool:
        return self.vm_phase is VmPhase.NONE and not self.waiting

    @property
    def is_doubtful(self) -> bool:
        return self.is_missing or self.vm_phase is VmPhase.BROKEN

    @property
    def error(self) -> ErrorDetail | None:
        """Why its VM could not be made the last time."""
        return self.member.last_attempt_error if self.member is not None else None


def plan_login(scene: Scene) -> LoginPlan:
    """What to do that every login node has a VM which runs."""
    actions: list[Action] = []
    notices: list[Notice] = []
    doubtful: list[str] = []
    lacking: dict[str, int] = {}
    for pool in scene.cluster.pools.values():
        if not pool.is_login:
            continue
        nodes = list(_login_nodes(scene, pool))
        actions += _actions(scene, pool, nodes)
        notices += _notices(scene, pool, nodes)
        doubtful += (node.name for node in nodes if node.is_doubtful)
        lacking[pool.pool_id] = sum(node.vm_phase is not VmPhase.RUNNING for node in nodes)
    return LoginPlan(tuple(actions), tuple(notices), tuple(doubtful), lacking)


def _login_nodes(scene: Scene, pool: NodePool) -> Iterator[_LoginNode]:
    """A name that is still a node of Slurm leaves Slurm first; of two VMs people choose."""
    twice = {vm.name for vm in scene.compute.duplicates}
    for name in scene.cluster.node_names(pool.pool_id):
        if name not in scene.slurm.nodes and name not in twice:
            yield _login_node(scene, name)


def _login_node(scene: Scene, name: str) -> _LoginNode:
    vm, member = scene.compute.instances.get(name), scene.compute.members.get(name)
    in_flight = scene.memory.in_flight
    if vm is None and member is not None:
        request, phase = member_phases_of(
            member,
            deletion_in_flight=deletion_of_member(member).subject in in_flight,
            is_starting=False,
            is_late=False,
        )
        return _LoginNode(name, None, member, request is not RequestPhase.NONE, phase)
    is_going = vm is not None and deletion_of(vm).subject in in_flight
    return _LoginNode(name, vm, None, False, vm_phase_of(vm, deletion_in_flight=is_going))


def _actions(scene: Scene, pool: NodePool, nodes: Iterable[_LoginNode]) -> Iterator[Action]:
    group = group_of(scene.cluster, pool)
    has_none = all(known.target_size == 0 for known in _groups_of(scene, pool))
    missing = []
    for node in nodes:
        is_sure = is_believed(node.name, scene.memory.sightings.missing, scene.now)
        is_lost = node.vm_phase is VmPhase.BROKEN and is_sure
        if is_lost or _waits_in_vain(node, group):
            yield from _deletion(node)
        elif node.is_missing and (is_sure or has_none):
            # Groups without a member have lost no VM that a stale list might not show.
            missing.append(node.name)
    if missing and group.reference not in scene.compute.groups:
        template = template_of(scene.cluster, pool)
        yield InsertGroup(pool, template, Scope(ScopeKind.GLOBAL, ""), group)
    elif missing:
        yield from _creations(scene, pool, group, tuple(missing))


def _groups_of(scene: Scene, pool: NodePool) -> Iterator[Group]:
    for group in scene.compute.groups.values():
        mark = decode(group.description)
        if mark is not None and mark.pool == pool.pool_id:
            yield group


def _waits_in_vain(node: _LoginNode, group: GroupSpecification) -> bool:
    """Whether a group of an outdated generation still tries to make its VM."""
    member = node.member
    return (
        member is not None
        and member.action is MemberAction.CREATING
        and node.waiting
        and member.group != group.reference
    )


def _deletion(node: _LoginNode) -> Iterator[DeleteInstance]:
    if node.vm is not None:
        yield deletion_of(node.vm)
    elif node.member is not None:
        yield deletion_of_member(node.member)


def _creations(
    scene: Scene, pool: NodePool, group: GroupSpecification, names: tuple[str, ...]
) -> Iterator[CreateInstances]:
    """All in one call; each by itself where that was of no use, since one name that is taken fails
    the whole call."""
    whole = _creation(pool, group, names)
    if whole.subject in scene.memory.attempts:
        for name in names:
            yield _creation(pool, group, (name,))
    else:
        yield whole


def _creation(pool: NodePool, group: GroupSpecification, names: tuple[str, ...]) -> CreateInstances:
    stem = request_stem(names, None)
    return CreateInstances(group.reference, names, stem, pool.pool_id, None)


def _notices(scene: Scene, pool: NodePool, nodes: Iterable[_LoginNode]) -> Iterator[Notice]:
    """One condition for the pool: which nodes lack, and with which code the first one does. That
    the first VMs of a pool are still to be made is no news."""
    had_some = any(known.target_size for known in _groups_of(scene, pool))
    seen = scene.memory.sightings.missing
    lacking = [
        node
        for node in nodes
        if node.error is not None
        or (had_some and node.is_doubtful and is_believed(node.name, seen, scene.now))
    ]
    if lacking:
        error = next((node.error for node in lacking if node.error is not None), None)
        why = f": {error.code} {error.message}".rstrip() if error is not None else ""
        names = ", ".join(node.name for node in lacking)
        code = error.code if error is not None else ""
        kind = NoticeKind.LOGIN_NODES_LACK
        yield Notice(kind, f"pool {pool.pool_id}", f"{names}{why}", code=code)
