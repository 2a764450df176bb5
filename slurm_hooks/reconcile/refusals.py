"""What Slurm refuses: when it is asked again, and what is said of it. Pure.

A refusal stands against the very same change of the same thing, and for twice as long each time:
what became of something else, or is to become something else, is asked for at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from slurm_hooks.reconcile.actions import (
    Action,
    ClearReason,
    CreateReservation,
    DeleteReservation,
    KeepPoolRecord,
    Notice,
    NoticeKind,
    Plan,
    SetNodeAddress,
    SetReason,
    TellJob,
    UpdateNode,
    WarnJob,
    told_as,
)
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.repair_actions import RepairNode
from slurm_hooks.reconcile.snapshot import Memory, Refusal

FIRST_PAUSE = timedelta(seconds=2)
LONGEST_PAUSE = timedelta(seconds=60)

ASKED_OF_SLURM = (
    TellJob,
    WarnJob,
    KeepPoolRecord,
    UpdateNode,
    ClearReason,
    RepairNode,
    SetNodeAddress,
    SetReason,
    CreateReservation,
    DeleteReservation,
)
"""The actions that are commands to Slurm, which may refuse them."""


def stands(memory: Memory, action: Action, now: datetime) -> bool:
    """Whether Slurm has refused this very action and is not to be asked again yet."""
    refusal = memory.refusals.get(action.subject)
    return refusal is not None and refusal.until_utc > now and refusal.action == action


def refusals_after(
    before: Mapping[str, Refusal], plan: Plan, outcomes: Iterable[Outcome], now: datetime
) -> dict[str, Refusal]:
    """What to know of refusals at the next pass.

    One that does not stand any more is kept while its action is still wanted: the next one is
    for longer then.
    """
    wanted = {action.subject for action in plan.actions}
    after = {
        subject: refusal
        for subject, refusal in before.items()
        if refusal.until_utc > now or subject in wanted
    }
    for outcome in outcomes:
        if not isinstance(outcome.action, ASKED_OF_SLURM) or outcome.unanswered:
            continue
        subject = outcome.action.subject
        if outcome.note:
            after[subject] = _next(before.get(subject), outcome, now)
        else:
            after.pop(subject, None)
    return after


def is_told(action: Action) -> bool:
    """Whether people hear of its refusal: one about a job is no news, it may have ended."""
    return not isinstance(action, TellJob | WarnJob)


def notices(refusals: Mapping[str, Refusal]) -> Iterator[Notice]:
    """What is said of them, once for all nodes of one change."""
    for refusal in refusals.values():
        if is_told(refusal.action):
            yield Notice(NoticeKind.FAILURE, told_as(refusal.action), refusal.why)


def _next(before: Refusal | None, outcome: Outcome, now: datetime) -> Refusal:
    same = before is not None and before.action == outcome.action
    tries = before.tries + 1 if before is not None and same else 1
    pause = min(FIRST_PAUSE * 2 ** min(tries - 1, 10), LONGEST_PAUSE)
    return Refusal(outcome.action, outcome.note, tries, now + pause)
