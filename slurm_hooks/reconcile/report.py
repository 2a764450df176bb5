"""A plan for people and scripts: what a pass would do, and why."""

from __future__ import annotations

import dataclasses
import json

from slurm_hooks.reconcile.actions import (
    Action,
    CreateReservation,
    Plan,
    SetReason,
    TellJob,
    UpdateNode,
    WarnJob,
)
from slurm_hooks.reconcile.comments import end_of_life_comment, job_comment, node_reason
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.repair_actions import RecordEvents, RepairNode
from slurm_hooks.slurm.hostlist import collapse


def plan_as_text(plan: Plan) -> str:
    """One line an action and a notice, and a count of the nodes by step."""
    lines = [f"would {describe(action)}" for action in plan.actions]
    lines += [f"held back {describe(action)}" for action in plan.held]
    lines += [f"notice {notice.kind}: {notice.subject} {notice.detail}" for notice in plan.notices]
    steps = list(plan.steps.values())
    lines += [f"{steps.count(step)} nodes: {step.value}" for step in Step if step in steps]
    return "\n".join(lines) if lines else "nothing to do"


def plan_as_json(plan: Plan) -> str:
    """The same as one JSON object: actions, held actions, notices, steps, unsettled."""
    return json.dumps(
        {
            "actions": [_as_object(action) for action in plan.actions],
            "held": [_as_object(action) for action in plan.held],
            "notices": [dataclasses.asdict(notice) for notice in plan.notices],
            "steps": {node: step.name for node, step in plan.steps.items()},
            "unsettled": plan.unsettled,
        },
        indent=2,
    )


def _as_object(action: Action) -> dict[str, str]:
    return {"action": type(action).__name__, "text": describe(action)}


def describe(action: Action) -> str:
    """One line for an action."""
    match action:
        case UpdateNode():
            states = ", then ".join(action.updates)
            return f"{action.subject}: {states} ({node_reason(action)})"
        case TellJob():
            return f"{action.subject}: {job_comment(action.status) or 'clear its admin comment'}"
        case SetReason():
            return f"{action.subject}: {action.reason}"
        case CreateReservation():
            start = action.start_time_utc.isoformat(timespec="seconds")
            return f"{action.subject}: {collapse(action.nodes)} from {start}"
        case RepairNode():
            return f"{action.subject}: {action.kind} ({action.events[0].message})"
        case RecordEvents():
            kinds = ", ".join(f"{event.kind} {event.node}".rstrip() for event in action.events)
            return f"{action.subject}: {kinds}"
        case WarnJob():
            return f"{action.subject}: {end_of_life_comment(action)}"
        case _:
            return action.subject
