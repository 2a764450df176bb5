"""Condemned nodes for tests of repairs: their reasons, and what happened to them before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.reason import HealthReason, format_reason
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.actions import Plan
from slurm_hooks.reconcile.repair_actions import RecordEvents, RepairKind, RepairNode
from slurm_hooks.reconcile.repairs import RepairLog, log_of
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag
from tests.unit.reconcile.builders import N0, NOW, World, node, vm

BOOT = "0123abcd"
LATER_BOOT = "4567abcd"
GPUS_MISSING = "gres/gpu count reported lower than configured (7 < 8)"
"""Slurm's own reason for a node that registers with too few GPUs."""


def reason(verdict: Verdict = Verdict.REPLACE, name: str = N0, **changes: object) -> str:
    """A health run's reason about the VM that the node has, found before job 7."""
    found: dict[str, object] = {
        "verdict": verdict,
        "check": "gpu_lost",
        "detail": "gpu 3 fell off the bus",
        "instance_id": vm(name).instance_id,
        "boot": BOOT,
        "context": Context.PROLOG,
        "job_id": 7,
        "restart_count": 0,
        "gpus_used": 8,
        "gpus_present": 8,
    }
    return format_reason(HealthReason(**{**found, **changes}))  # type: ignore[arg-type]


def passed_reason(instance_id: str) -> str:
    """What the first health run after a reboot says of a node that is well."""
    passed = (Verdict.OK, "health_run", "passed", instance_id, LATER_BOOT)
    return format_reason(HealthReason(*passed, context=Context.BACKGROUND))


def drained(
    text: str,
    *flags: NodeFlag,
    name: str = N0,
    base: BaseState = BaseState.IDLE,
    given: datetime = NOW - timedelta(minutes=1),
) -> Node:
    """A node that is drained with a reason."""
    return replace(
        node(name, NodeFlag.DRAIN, *flags, base=base, reason=text), reason_time_utc=given
    )


def world_of(*nodes: Node, past: Iterable[Event] = (), **more: object) -> World:
    """The nodes with their running VMs."""
    given = {"vms": [vm(one.name) for one in nodes], **more}
    return World(nodes, repairs=log_of(past), **given)  # type: ignore[arg-type]


def repairs(plan: Plan) -> dict[str, RepairKind]:
    """The repairs of a plan by node."""
    return {a.node: a.kind for a in plan.actions if isinstance(a, RepairNode)}


def repair_of(world: World) -> RepairKind | None:
    """What is asked for the one node of a world."""
    return repairs(world.plan()).get(N0)


def recorded(plan: Plan) -> list[Event]:
    """The events that a plan records beside those of its repairs."""
    return [e for a in plan.actions if isinstance(a, RecordEvents) for e in a.events]


def events_of(plan: Plan) -> tuple[Event, ...]:
    """All events of a plan in the order in which they are recorded."""
    own = [e for a in plan.actions if isinstance(a, RepairNode) for e in a.events]
    return (*recorded(plan), *own)


def kinds(events: Iterable[Event]) -> list[EventKind]:
    """What the events tell."""
    return [event.kind for event in events]


def happened(kind: EventKind, name: str = N0, minutes_ago: float = 60, **changes: object) -> Event:
    """Something that happened before to a node of the pool."""
    event = Event(
        NOW - timedelta(minutes=minutes_ago),
        kind,
        "a3u",
        f"{kind} {name} {minutes_ago}",
        node=name,
        instance_id=vm(name).instance_id if name else "",
        check="gpu_lost",
        verdict="REBOOT",
    )
    return replace(event, **changes)  # type: ignore[arg-type]


def after(plan: Plan, log: Iterable[Event] = ()) -> RepairLog:
    """The log once the plan's events are recorded."""
    return log_of((*log, *events_of(plan)))
