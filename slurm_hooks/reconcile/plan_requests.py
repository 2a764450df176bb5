"""Requests: ask for each gang that is ready, in turn, where a group and a place are free.

Invariant: a gang is asked for as a whole or not at all. All of its groups exist before its first
request is made; when one of its requests can never be made, all of its nodes fail, slurmctld
requeues the job, and what was asked for already is given up for want of a job. In pools without
resize requests the same holds of the calls that create VMs by name (`asking`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurm_hooks.compute.model import GroupSpecification, RequestState
from slurm_hooks.reconcile.actions import Action, DeleteRequest, WaitKind
from slurm_hooks.reconcile.asking import Ask, ask_for, stems_of
from slurm_hooks.reconcile.capacity_wait import WAIT_LIMIT_CODE, Overdue, overdue_requests
from slurm_hooks.reconcile.failure_table import Reaction
from slurm_hooks.reconcile.gangs import Gang, Part, ready_gangs
from slurm_hooks.reconcile.marked_requests import MarkedRequest, cancellation_of, is_of_past_start
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.places import Places
from slurm_hooks.reconcile.plan_nodes import failed_start, is_powering_up
from slurm_hooks.reconcile.rooms import Rooms
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.snapshot import Failure
from slurm_hooks.reconcile.specifications import request_stem, uses_requests
from slurm_hooks.reconcile.views import (
    NodeView,
)


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


def plan_requests(scene: Scene) -> RequestPlan:
    """Ask for the VMs of every gang that is ready, creating groups first where they lack.

    What has waited for capacity for too long is given up, and its jobs' start fails.
    """
    planning = _Planning(scene)
    for overdue in overdue_requests(scene):
        planning.give_up(overdue)
    for gang in planning.gangs():
        if gang.parts:
            planning.ask(gang)
    return RequestPlan(tuple(planning.actions.values()), planning.waits)


def finished_requests(scene: Scene) -> Iterator[DeleteRequest]:
    """Requests that are over and that nothing refers to any more; reaped as all else is. They are
    named whatever their age, since from then on they tell of a start that is over.

    One that is kept costs no place and no name: places count active requests alone, and a new
    request takes a number that is free. What it said of a start that is over, it does not say of
    the next one: see `views`.
    """
    if scene.slurm.unreadable:
        return
    for marked in scene.world.requests.values():
        if not marked.request.state.is_active and not _is_needed(marked, scene):
            yield DeleteRequest(marked.request.reference)


class _Planning:
    """What one pass has planned so far: the gangs that come later get what is left."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._rooms = Rooms(scene.cluster, scene.compute)
        self._places = Places(scene.compute.requests, scene.memory.in_flight)
        self._taken_names = frozenset(reference.name for reference in scene.compute.requests)
        memory = scene.memory
        self._tried = memory.in_flight.keys() | memory.failures.keys() | memory.attempts.keys()
        self._tried_stems = stems_of(self._tried)
        self._waits_by_region: dict[str, Wait] = {}
        self.actions: dict[str, Action] = {}
        self.waits: dict[str, Wait] = {}

    def gangs(self) -> Iterable[Gang]:
        """The gangs that can be asked for now, in turn, without what is on its way already; room
        is kept for that before any other is asked for."""
        if not self._tried_stems:
            return self._ready_gangs()
        return [self._not_on_its_way(gang) for gang in self._ready_gangs()]

    def _ready_gangs(self) -> Iterator[Gang]:
        for gang in ready_gangs(self._scene.world, self._scene.memory, self._scene.now):
            if gang.job is None and not uses_requests(gang.parts[0].pool):
                yield from self._halves(gang)
            else:
                yield gang

    def _halves(self, gang: Gang) -> Iterator[Gang]:
        """Nobody's nodes, in halves where exactly these were asked for in vain: one name that is
        taken fails a call for a thousand."""
        pool, views = gang.parts[0].pool, gang.views
        half = len(views) // 2
        if half and self._was_in_vain(gang):
            for part in (views[:half], views[half:]):
                yield from self._halves(Gang(None, (Part(pool, part),)))
        else:
            yield gang

    def _was_in_vain(self, gang: Gang) -> bool:
        tried = self._tried_ask(gang, gang.parts[0])
        return tried is not None and tried.subject in self._scene.memory.attempts

    def _not_on_its_way(self, gang: Gang) -> Gang:
        parts = tuple(part for part in gang.parts if not self._is_on_its_way(gang, part))
        return Gang(gang.job, parts)

    def ask(self, gang: Gang) -> None:
        """Plan the next actions for a gang."""
        regions = [part.pool.region for part in gang.parts if uses_requests(part.pool)]
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
        tried = self._tried_ask(gang, part)
        if tried is None or tried.subject not in self._scene.memory.in_flight:
            return False
        self._rooms.add(tried.group.reference, len(part.views))
        return True

    def _asks(self, gang: Gang) -> list[Ask]:
        asks = []
        for part in gang.parts:
            ask = self._ask_for(gang, part)
            self._rooms.add(ask.group.reference, len(part.views))
            asks.append(ask)
        return asks

    def _ask_for(self, gang: Gang, part: Part) -> Ask:
        """Where it was tried before, else where there is room.

        What has been asked for may be listed late: asked for in another group, its VMs would be
        asked for twice.
        """
        tried = self._tried_ask(gang, part)
        if tried is not None:
            return tried
        group = self._rooms.choose(part.pool, gang.job, len(part.views))
        return ask_for(gang.job, part, group, self._taken_names)

    def _tried_ask(self, gang: Gang, part: Part) -> Ask | None:
        """How passes before this one have tried to ask for a part."""
        if request_stem(part.nodes, gang.job) not in self._tried_stems:
            return None
        for group in self._rooms.groups(part.pool, gang.job):
            ask = ask_for(gang.job, part, group, self._taken_names)
            if ask.subject in self._tried:
                return ask
        return None

    def _refused(self, asks: Sequence[Ask]) -> tuple[Ask, Failure] | None:
        """The first answer that stands against one of these requests or its group."""
        failures = self._scene.memory.failures
        for ask in asks:
            subject = ask.subject
            if not self._exists(ask.group):
                subject = ask.group_insertion(self._scene).subject
            if subject in failures:
                return ask, failures[subject]
        return None

    def _settle_refused(
        self, gang: Gang, asks: Sequence[Ask], refused: Ask, failure: Failure
    ) -> None:
        """What the failure table does not fail waits: first of all a full quota of active
        requests, the only quota that the service looks at when a request is made."""
        self._release(asks)
        if failure.reaction is Reaction.FAIL_START:
            mates = self._mates(gang) if refused.request is None else gang.views
            self._fail(mates, Wait(WaitKind.FAILED, failure.code, failure.message))
        elif self._exists(refused.group) and refused.request is None:
            self._note(gang.views, Wait(WaitKind.REQUEST, failure.code))
        elif self._exists(refused.group):
            self._places.close(refused.part.pool.region, failure)
            self._wait_for_place(gang)
        else:
            self._note(gang.views, Wait(WaitKind.GROUP, failure.code))

    def _mates(self, gang: Gang) -> Sequence[NodeView]:
        """All nodes of the gang's job that start, also those that have VMs: see `views`."""
        if gang.job is None:
            return gang.views
        return [
            view
            for view in self._scene.world.views.values()
            if view.intent is Intent.STARTING
            and view.owner is not None
            and view.owner.job_id == gang.job.job_id
        ]

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

    def _add(self, gang: Gang, asks: Sequence[Ask]) -> None:
        scene = self._scene
        missing = [ask.group_insertion(scene) for ask in asks if not self._exists(ask.group)]
        if missing:
            self.actions |= {insertion.subject: insertion for insertion in missing}
            self._note(gang.views, Wait(WaitKind.GROUP))
            return
        for ask in asks:
            self.actions[ask.subject] = ask.action(scene)

    def _exists(self, group: GroupSpecification) -> bool:
        return group.reference in self._scene.compute.groups

    def _release(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            self._rooms.add(ask.group.reference, -len(ask.part.views))

    def _note(self, views: Sequence[NodeView], wait: Wait) -> None:
        for view in views:
            self.waits[view.node.name] = wait


def _is_needed(marked: MarkedRequest, scene: Scene) -> bool:
    """Whether a final request still says something that no other place does.

    While a member is powering up without a job, the mark tells for whom. A granted request is
    the record of its VMs until the last of them is gone.
    """
    views = scene.world.views
    members = [views[name] for name in marked.request.instances if name in views]
    if not is_of_past_start(marked, scene.memory) and any(
        is_powering_up(view) and _is_about(view, marked) for view in members
    ):
        return True
    granted = marked.request.state is RequestState.SUCCEEDED
    return granted and any(view.vm_phase is not VmPhase.NONE for view in members)


def _is_about(view: NodeView, marked: MarkedRequest) -> bool:
    return view.owner is None or view.request is marked
