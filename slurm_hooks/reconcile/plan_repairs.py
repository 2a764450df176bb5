"""Condemned nodes: what is recorded of them, and which are returned, rebooted or replaced.

A health run tells by the node's reason what it found. A node is touched only when it is drained,
nothing runs there and no power step or reboot is under way; a person who gives it another reason
has it for good. A rebooted node stays drained until a health run there has passed. A reboot that
brings the same finding on the same VM, or from which the node does not come back in time, or not
well, becomes a replacement: Slurm powers the node down, and what follows is the
node table's. The VM is deleted, and made again where the node is static or a job needs it.

Every repair is in the history before it is asked for, so the limits hold whatever dies when. A
history that cannot be read or written means that nothing is repaired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from slurm_hooks.health.reason import is_condemned
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.actions import Action, Notice, NoticeKind
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.repair_actions import RecordEvents, RepairKind, RepairNode
from slurm_hooks.reconcile.repair_choice import Condemned, Repair, choose_repair, condemned_of
from slurm_hooks.reconcile.repair_events import (
    came_back_event,
    repair_events,
    seen_events,
    skipped_event,
)
from slurm_hooks.reconcile.repair_limits import forbidden, too_many
from slurm_hooks.reconcile.repairs import RepairLog, is_drained_by_slurm
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.snapshot import Unavailable
from slurm_hooks.slurm.model import JobState, NodeFlag

_OFF = (NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP)
_UNDER_REPAIR = (NodeFlag.DRAIN, NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED)


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The actions of repairs, and what is said about nodes and pools that are not repaired."""

    actions: tuple[Action, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass
class _Draft:
    """A plan in the making."""

    repairs: list[RepairNode] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)


def plan_repairs(scene: Scene) -> RepairPlan:
    """What to record and to repair in this pass."""
    log, draft = scene.repairs, _Draft(notices=list(_drained_by_slurm(scene)))
    if isinstance(log, Unavailable):
        unavailable = Notice(NoticeKind.HISTORY_UNAVAILABLE, "events", log.why)
        return RepairPlan(notices=(unavailable, *draft.notices))
    condemned = list(_condemned_nodes(scene))
    draft.events += (
        event for one in condemned if one.is_fresh for event in seen_events(one.sighting)
    )
    draft.events += _returns_by_slurm(scene, log)
    draft.events += _replacements_by_table(condemned)
    stopped = {**_new_stops(scene, condemned, log, draft.events), **log.stopped}
    draft.events += stopped.values()
    for one in condemned:
        _plan_node(scene, one, log, stopped, draft)
    for pool, event in stopped.items():
        draft.notices.append(Notice(NoticeKind.REPAIRS_STOPPED, f"pool {pool}", event.message))
    new = tuple(event for event in draft.events if event.key not in log.keys)
    records = (RecordEvents(new),) if new else ()
    return RepairPlan((*records, *draft.repairs), tuple(draft.notices))


def _condemned_nodes(scene: Scene) -> Iterator[Condemned]:
    completing = _nodes_of_completing_jobs(scene)
    for name, view in scene.world.views.items():
        if is_condemned(view.node.reason) and not view.leaves:
            has_job = name in scene.world.holders or name in completing
            one = condemned_of(view, has_job=has_job, now=scene.now)
            if one is not None:
                yield one


def _nodes_of_completing_jobs(scene: Scene) -> frozenset[str]:
    """An Epilog may still run there, whatever the node itself has said a moment before."""
    return frozenset(
        name
        for job in scene.slurm.jobs.values()
        if job.state is JobState.COMPLETING
        for name in job.nodes
    )


def _drained_by_slurm(scene: Scene) -> Iterator[Notice]:
    """Nodes that Slurm keeps from jobs for a reason of its own that no health run has replaced:
    nobody else would learn of them."""
    for name, view in scene.world.views.items():
        node = view.node
        if node.reason and not view.leaves and is_drained_by_slurm(node):
            yield Notice(NoticeKind.DRAINED_BY_SLURM, name, node.reason)


def _plan_node(
    scene: Scene, one: Condemned, log: RepairLog, stopped: Mapping[str, Event], draft: _Draft
) -> None:
    repair = choose_repair(one, log, scene.policy.boot_timeout_seconds, scene.now)
    if repair is None:
        return
    events = repair_events(one.sighting, repair.kind, one.instance_id, repair.why)
    why = _why_not(scene, one, repair, log, stopped, events)
    if why:
        draft.events.append(skipped_event(one.sighting, why))
    else:
        draft.repairs.append(RepairNode(one.name, repair.kind, one.view.node.reason, events))
    if why and one.pool not in stopped:
        detail = f"{one.reason.verdict} {one.reason.check}: {why}"
        draft.notices.append(Notice(NoticeKind.REPAIR_SKIPPED, one.name, detail))


def _why_not(
    scene: Scene,
    one: Condemned,
    repair: Repair,
    log: RepairLog,
    stopped: Mapping[str, Event],
    events: tuple[Event, ...],
) -> str:
    """Why a repair must not be; empty where nothing forbids it."""
    if one.pool in stopped:
        return f"the repairs of pool {one.pool} are stopped"
    if not repair.is_limited:
        return ""
    own = {event.key for event in events}
    return forbidden(one.reason, one.name, log, scene.policy, scene.now, own)


def _new_stops(
    scene: Scene, condemned: list[Condemned], log: RepairLog, seen: list[Event]
) -> dict[str, Event]:
    """By pool: of which too many nodes were condemned at once. Seen for the first time here."""
    standing: dict[str, set[str]] = {}
    for one in condemned:
        if one.is_drained and one.reason.verdict.drains and one.pool not in log.stopped:
            standing.setdefault(one.pool, set()).add(one.name)
    if not standing:
        return {}
    up = Counter(
        view.pool.pool_id for view in scene.world.views.values() if not view.node.state.has(*_OFF)
    )
    stops = {}
    for pool, names in standing.items():
        fresh = [
            event
            for event in seen
            if event.pool == pool
            and event.kind is EventKind.VM_SLURM_DRAIN
            and event.key not in log.keys
        ]
        together = too_many(pool, fresh, names, up[pool], log, scene.policy)
        if together:
            stops[pool] = _stop(scene, pool, together, up[pool])
    return stops


def _stop(scene: Scene, pool: str, together: list[Event], up: int) -> Event:
    count = len({event.node for event in together})
    checks = ", ".join(sorted({event.check for event in together}))
    message = (
        f"{count} of {up} nodes were condemned within {scene.policy.stop_repairs_seconds} s"
        f" ({checks}): look for a cause that they share, then slurm-hooks repairs resume {pool}"
    )
    key = f"{EventKind.REPAIRS_STOPPED} {pool} {together[0].key}"
    return Event(scene.now, EventKind.REPAIRS_STOPPED, pool, key, message=message)


def _returns_by_slurm(scene: Scene, log: RepairLog) -> Iterator[Event]:
    """Nodes that serve again since our reboot although we have not lifted the drain: a person has,
    or a version of Slurm that does so by itself."""
    for name, events in log.by_node.items():
        view, last = scene.world.views.get(name), events[-1]
        if view is None or view.vm is None or last.kind is not EventKind.VM_REBOOT:
            continue
        if (
            last.instance_id == view.vm.instance_id
            and view.intent is Intent.REGISTERED
            and view.vm_phase is VmPhase.RUNNING
            and not view.node.state.has(*_UNDER_REPAIR)
            and view.node.boot_time_utc is not None
            and view.node.boot_time_utc > last.time_utc
        ):
            yield came_back_event(last, scene.now)


def _replacements_by_table(condemned: Iterable[Condemned]) -> Iterator[Event]:
    """Nodes that Slurm has given up, since they did not come back of our reboot in ResumeTimeout:
    the node table replaces them as it does all that are silent."""
    for one in condemned:
        if one.view.step is Step.RECYCLE:
            why = "it did not come back of its reboot in ResumeTimeout"
            yield from repair_events(one.sighting, RepairKind.REPLACE, one.instance_id, why)
