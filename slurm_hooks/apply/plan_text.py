"""A plan for people, a line a thing, and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.apply.changes import Effect, PartChange
from slurm_hooks.apply.impact import JobOnNodes, Uses
from slurm_hooks.apply.plan import Plan
from slurm_hooks.apply.rendered_files import FileState
from slurm_hooks.apply.taking import Way
from slurm_hooks.slurm.hostlist import collapse

_SIGNS = {
    Effect.KEEP: "=",
    Effect.CREATE: "+",
    Effect.CHANGE: "~",
    Effect.REPLACE: "!",
    Effect.REMOVE: "-",
}


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan as it is shown before the question."""
    cluster = plan.cluster
    yield f"cluster {cluster.cluster_id}, project {cluster.project}, {cluster.region}"
    if plan.comes_back:
        yield "  + all of it: it was deleted, and comes back"
    for part in plan.changes.parts:
        yield from _part_lines(part)
    yield from _cost_lines("leaves", plan.impact.leaving)
    yield from _cost_lines("gets a new VM", plan.impact.renewed)
    if not plan.impact.is_known:
        yield "  ? jobs: slurmctld does not answer, so what this costs them is not known"
    changed = [name for name, state in plan.files.items() if state is not FileState.UNCHANGED]
    if changed:
        yield f"  ~ files: {', '.join(changed)}"
    if plan.taking.way is not Way.KEEP:
        why = f": {plan.taking.why}" if plan.taking.why else ""
        yield f"  ~ slurmctld: {plan.taking.way}{why}"


def _part_lines(part: PartChange) -> Iterator[str]:
    yield f"  {_SIGNS[part.effect]} {part.part}: {part.effect}"
    for field in part.fields:
        yield f"      {field.path}: {field.before} -> {field.after}"
    what = "login nodes" if part.is_login else "nodes"
    if part.created:
        yield f"      {what} that come: {collapse(part.created)}"
    if part.removed:
        yield f"      {what} that leave: {collapse(part.removed)}"
    if part.effect is Effect.REPLACE and part.kept:
        yield f"      {what} that get new VMs: {collapse(part.kept)}, {_when(part)}"


def _when(part: PartChange) -> str:
    if part.is_login:
        return "when you delete the VMs that they have"
    return "idle ones in turns, busy ones when their jobs have ended"


def _cost_lines(what: str, uses: Uses) -> Iterator[str]:
    for use in uses.holding:
        yield f"  * job {use.job} of {use.user} has {collapse(use.nodes)}, which {what} after it"
    for use in uses.naming:
        yield f"  * job {use.job} of {use.user} waits for {collapse(use.nodes)}, which {what}"
    for name in uses.reservations:
        yield f"  * reservation {name} has a node that {what}"


def plan_as_json(plan: Plan) -> dict[str, object]:
    """The plan as a tree for JSON."""
    return {
        "cluster_id": plan.cluster.cluster_id,
        "comes_back": plan.comes_back,
        "changes": [_part_as_json(part) for part in plan.changes.parts],
        "nodes_that_leave": _uses_as_json(plan.impact.leaving),
        "nodes_that_get_new_vms": _uses_as_json(plan.impact.renewed),
        "jobs_are_known": plan.impact.is_known,
        "files": {name: str(state) for name, state in plan.files.items()},
        "slurmctld": {"way": str(plan.taking.way), "why": plan.taking.why},
    }


def _part_as_json(part: PartChange) -> dict[str, object]:
    return {
        "part": part.part,
        "effect": str(part.effect),
        "fields": [
            {"path": field.path, "before": field.before, "after": field.after}
            for field in part.fields
        ],
        "nodes_created": list(part.created),
        "nodes_removed": list(part.removed),
    }


def _uses_as_json(uses: Uses) -> dict[str, object]:
    return {
        "nodes": list(uses.nodes),
        "jobs_that_hold_them": [_job_as_json(use) for use in uses.holding],
        "jobs_that_name_them": [_job_as_json(use) for use in uses.naming],
        "reservations": list(uses.reservations),
    }


def _job_as_json(use: JobOnNodes) -> dict[str, object]:
    return {"job": use.job, "user": use.user, "nodes": list(use.nodes)}
