"""One pass by hand: propose, and after a person's word carry out what was proposed and no more.

A fresh process has no sightings of its own, so it looks twice before it proposes what needs two,
as far apart as two sightings must be.
Between proposal and word time passes: what is carried out is decided anew, and of that only what
was proposed. Whoever calls holds the right to run passes.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from slurm_hooks.compute.errors import ErrorKind
from slurm_hooks.reconcile.actions import Action, Plan
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.passes import Passes


class Fate(enum.StrEnum):
    """What became of a proposed action."""

    DONE = "done"
    STARTED = "started"
    REFUSED = "refused"
    LEFT = "left alone, it is not as it was"


@dataclass(frozen=True, slots=True)
class Result:
    """One proposed action and its fate; `why` is the answer of a refusal."""

    action: Action
    fate: Fate
    why: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan for a person to confirm; with it go so many kills beyond the cap."""

    plan: Plan
    confirmed_kills: int = 0


def propose(
    passes: Passes,
    *,
    force_kills: bool,
    tell: Callable[[str], None] = lambda _: None,
    pause: Callable[[float], None] = time.sleep,
) -> Proposal:
    """What a pass would do now. With `force_kills` it includes the kills that the cap holds.

    `tell` gets a line for people where they have to wait for the second look.
    """
    plan = passes.watch()
    if plan.second_look_seconds is not None:
        tell(
            "something is missing or of no use; lists may be stale, so this looks again"
            f" in {math.ceil(plan.second_look_seconds)} s"
        )
        pause(plan.second_look_seconds)
    if passes.has_sightings:
        plan = passes.plan()
    if force_kills and plan.held:
        confirmed = plan.kills_in_question
        return Proposal(passes.plan(confirmed), confirmed)
    return Proposal(plan)


def carry_out(passes: Passes, proposal: Proposal) -> list[Result]:
    """Decide anew and carry out what was proposed and still holds."""
    proposed = proposal.plan
    fresh = passes.plan(proposal.confirmed_kills)
    wanted = {action.subject for action in proposed.actions}
    actions = tuple(action for action in fresh.actions if action.subject in wanted)
    outcomes = {
        outcome.action.subject: outcome
        for outcome in passes.carry_out(replace(fresh, actions=actions))
    }
    return [_result(action, outcomes.get(action.subject)) for action in proposed.actions]


def _result(action: Action, outcome: Outcome | None) -> Result:
    if outcome is None:
        return Result(action, Fate.LEFT)
    error = outcome.error
    if error is None and outcome.unanswered:
        return Result(action, Fate.LEFT, outcome.note)
    if error is None:
        fate = Fate.STARTED if outcome.operation is not None else Fate.DONE
        return Result(action, fate, outcome.note)
    if error.kind is ErrorKind.GONE:
        return Result(action, Fate.DONE, str(error))
    return Result(action, Fate.REFUSED, str(error))
