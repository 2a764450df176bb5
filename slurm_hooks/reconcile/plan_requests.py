"""Resize requests: ask for each gang that is ready, in turn, where a group and a place are free.

Invariant: a gang is asked for as a whole or not at all. All of its groups exist before its first
request is made; when one of its requests can never be made, all of its nodes fail, slurmctld
requeues the job, and what was asked for already is given up for want of a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurm_hooks.compute.model import (
    GroupReference,
    GroupSpecification,
    RequestReference,
    RequestState,
    Scope,
    ScopeKind,
)
from slurm_hooks.reconcile.actions import (
    INSERT_REQUEST,
    Action,
    DeleteRequest,
    InsertGroup,
    InsertRequest,
    WaitKind,
    subject_of_insertion,
)
from slurm_hooks.reconcile.capacity_wait import WAIT_LIMIT_CODE, Overdue, overdue_requests
from slurm_hooks.reconcile.failure_table import Reaction
from slurm_hooks.reconcile.gangs import Gang, Part, ready_gangs
from slurm_hooks.reconcile.phases import VmPhase
from slurm_hooks.reconcile.places import Places
from slurm_hooks.reconcile.plan_nodes import failed_start, is_powering_up
from slurm_hooks.reconcile.rooms import Rooms
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.snapshot import Failure
from slurm_hooks.reconcile.specifications import (
    request_of,
    request_stem,
    run_duration_of,
    template_of,
)
from slurm_hooks.reconcile.views import MarkedRequest, NodeView, World, cancellation_of


@dataclass(frozen=True, slots=True)
class Wait:
    """What a node that has no request yet waits for, or why it will get none."""

    kind: WaitKind
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """The actions for all gangs, and for each node without a request why it has none yet."""

    actions: tuple[Action, ...]
    waits: Mapping[str, Wait]


@dataclass(frozen=True, slots=True)
class _Ask:
    """One request to be made, in a group that may not exist yet."""

    part: Part
    group: GroupSpecification
    reference: RequestReference


def plan_requests(scene: Scene) -> RequestPlan:
    """Ask for the VMs of every gang that is ready, creating groups first where they lack.

    What has waited for capacity for too long is given up, and its jobs' start fails.
    """
    planning = _Planning(scene)
    for overdue in overdue_requests(scene):
        planning.give_up(overdue)
    gangs = [planning.not_on_its_way(gang) for gang in ready_gangs(scene.world, scene.memory)]
    for gang in gangs:
        if gang.parts:
            planning.ask(gang)
    return RequestPlan(tuple(planning.actions.values()), planning.waits)


def finished_requests(world: World) -> Iterator[DeleteRequest]:
    """Requests that are over and that nothing refers to any more."""
    for marked in world.requests.values():
        if not marked.request.state.is_active and not _is_needed(marked, world):
            yield DeleteRequest(marked.request.reference)


class _Planning:
    """What one pass has planned so far: the gangs that come later get what is left."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._rooms = Rooms(scene.cluster, scene.compute)
        self._places = Places(scene.compute.requests, scene.memory.in_flight)
        self._taken_names = {reference.name for reference in scene.compute.requests}
        self._tried_stems = _stems_of(
            (*scene.memory.in_flight, *scene.memory.failures, *scene.memory.attempts)
        )
        self._waits_by_region: dict[str, Wait] = {}
        self.actions: dict[str, Action] = {}
        self.waits: dict[str, Wait] = {}

    def not_on_its_way(self, gang: Gang) -> Gang:
        """The parts whose requests are not being made already; room is kept for the others."""
        if not self._tried_stems:
            return gang
        parts = tuple(part for part in gang.parts if not self._is_on_its_way(gang, part))
        return Gang(gang.job, parts)

    def ask(self, gang: Gang) -> None:
        """Plan the next actions for a gang."""
        regions = [part.pool.region for part in gang.parts]
        if any(self._places.is_closed(region) for region in regions):
            self._wait_for_place(gang)
            return
        asks = self._asks(gang)
        refused = self._refused(asks)
        if refused is not None:
            self._settle_refused(gang, asks, *refused)
        elif not self._places.take(Counter(regions), for_job=gang.job is not None):
            self._release(asks)
            self._wait_for_place(gang)
        else:
            self._add(gang, asks)

    def give_up(self, overdue: Overdue) -> None:
        """Cancel a request and fail the start of its nodes."""
        cancellation = cancellation_of(overdue.request)
        self.actions[cancellation.subject] = cancellation
        self._fail(overdue.views, Wait(WaitKind.FAILED, WAIT_LIMIT_CODE, overdue.detail))

    def _is_on_its_way(self, gang: Gang, part: Part) -> bool:
        tried = self._tried(gang, part)
        if tried is None or subject_of_insertion(tried) not in self._scene.memory.in_flight:
            return False
        self._rooms.add(tried.group, len(part.views))
        return True

    def _asks(self, gang: Gang) -> list[_Ask]:
        asks = []
        for part in gang.parts:
            ask = self._ask_for(gang, part)
            self._rooms.add(ask.group.reference, len(part.views))
            asks.append(ask)
        return asks

    def _ask_for(self, gang: Gang, part: Part) -> _Ask:
        """Where it was tried before, else where there is room.

        A request whose making is over may be listed late: asked for in another group, its VMs
        would be asked for twice.
        """
        tried = self._tried(gang, part)
        groups = self._rooms.groups(part.pool, gang.job)
        known = next((g for g in groups if tried and g.reference == tried.group), None)
        group = known or self._rooms.choose(part.pool, gang.job, len(part.views))
        return _Ask(part, group, self._reference(group.reference, gang, part))

    def _tried(self, gang: Gang, part: Part) -> RequestReference | None:
        """The request for a part that passes before this one have tried to make."""
        if request_stem(part.nodes, gang.job) not in self._tried_stems:
            return None
        memory = self._scene.memory
        for group in self._rooms.groups(part.pool, gang.job):
            reference = self._reference(group.reference, gang, part)
            subject = subject_of_insertion(reference)
            if subject in memory.in_flight or subject in memory.failures:
                return reference
            if subject in memory.attempts:
                return reference
        return None

    def _reference(self, group: GroupReference, gang: Gang, part: Part) -> RequestReference:
        stem, number = request_stem(part.nodes, gang.job), 0
        while f"{stem}-{number}" in self._taken_names:
            number += 1
        return RequestReference(group, f"{stem}-{number}")

    def _refused(self, asks: Sequence[_Ask]) -> tuple[_Ask, Failure] | None:
        """The first answer that stands against one of these requests or its group."""
        failures = self._scene.memory.failures
        for ask in asks:
            subject = subject_of_insertion(ask.reference)
            if not self._exists(ask.group):
                subject = self._insertion_of(ask).subject
            if subject in failures:
                return ask, failures[subject]
        return None

    def _settle_refused(
        self, gang: Gang, asks: Sequence[_Ask], refused: _Ask, failure: Failure
    ) -> None:
        """What the failure table does not fail waits: first of all a full quota of active
        requests, the only quota that the service looks at when a request is made."""
        self._release(asks)
        if failure.reaction is Reaction.FAIL_START:
            self._fail(gang.views, Wait(WaitKind.FAILED, failure.code, failure.message))
        elif self._exists(refused.group):
            self._places.close(refused.part.pool.region, failure)
            self._wait_for_place(gang)
        else:
            self._note(gang.views, Wait(WaitKind.GROUP, failure.code))

    def _fail(self, views: Sequence[NodeView], why: Wait) -> None:
        for view in views:
            update = failed_start(view, why.code, why.detail)
            self.actions[update.subject] = update
        self._note(views, why)

    def _wait_for_place(self, gang: Gang) -> None:
        for part in gang.parts:
            region = part.pool.region
            if region not in self._waits_by_region:
                refusal = self._places.refusal(region)
                code = refusal.code if refusal else ""
                self._waits_by_region[region] = Wait(WaitKind.PLACE, code)
            self._note(part.views, self._waits_by_region[region])

    def _add(self, gang: Gang, asks: Sequence[_Ask]) -> None:
        missing = [self._insertion_of(ask) for ask in asks if not self._exists(ask.group)]
        if missing:
            self.actions |= {insertion.subject: insertion for insertion in missing}
            self._note(gang.views, Wait(WaitKind.GROUP))
            return
        for ask in asks:
            insertion = self._request_insertion(gang, ask)
            self.actions[insertion.subject] = insertion

    def _request_insertion(self, gang: Gang, ask: _Ask) -> InsertRequest:
        cluster, part = self._scene.cluster, ask.part
        holders = self._scene.world.holders
        jobs = {job.job_id: job for name in part.nodes for job in holders.get(name, ())}
        margin = cluster.policy.job_duration_margin_seconds
        duration = run_duration_of(part.pool, jobs.values(), margin)
        request = request_of(cluster, part.pool, ask.reference, part.nodes, gang.job, duration)
        return InsertRequest(request, gang.job.job_id if gang.job else None)

    def _insertion_of(self, ask: _Ask) -> InsertGroup:
        pool = ask.part.pool
        template = template_of(self._scene.cluster, pool)
        return InsertGroup(pool, template, Scope(ScopeKind.GLOBAL, ""), ask.group)

    def _exists(self, group: GroupSpecification) -> bool:
        return group.reference in self._scene.compute.groups

    def _release(self, asks: Sequence[_Ask]) -> None:
        for ask in asks:
            self._rooms.add(ask.group.reference, -len(ask.part.views))

    def _note(self, views: Sequence[NodeView], wait: Wait) -> None:
        for view in views:
            self.waits[view.node.name] = wait


def _stems_of(subjects: Sequence[str]) -> frozenset[str]:
    """The stems of the requests that these subjects are about."""
    names = (s.rpartition("/")[2] for s in subjects if s.startswith(INSERT_REQUEST))
    return frozenset(name.rpartition("-")[0] for name in names)


def _is_needed(marked: MarkedRequest, world: World) -> bool:
    """Whether a final request still says something that no other place does.

    While a member is powering up without a job, the mark tells for whom. A granted request is
    the record of its VMs until the last of them is gone.
    """
    members = [world.views[name] for name in marked.request.instances if name in world.views]
    if any(is_powering_up(view) and _is_about(view, marked) for view in members):
        return True
    granted = marked.request.state is RequestState.SUCCEEDED
    return granted and any(view.vm_phase is not VmPhase.NONE for view in members)


def _is_about(view: NodeView, marked: MarkedRequest) -> bool:
    return view.owner is None or view.request is marked
