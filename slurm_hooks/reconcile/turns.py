"""Whose turn it is within a pass: a pass ends soon, and nothing waits for ever behind a failure.

A call that gets no answer has cost a minute or more. The next one to the same system would cost
as much, so it is left for the next pass; what was tried in vain comes last there. Pure.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from slurm_hooks.reconcile.actions import (
    Action,
    CreateReservation,
    DeleteGroup,
    DeleteRequest,
    DeleteReservation,
    DeleteTemplate,
    DeleteWorkloadPolicy,
    KeepConsole,
    WarnJob,
)
from slurm_hooks.reconcile.memory import Outcome
from slurm_hooks.slurm.client import SlurmError, SlurmUnavailable

MOST_A_PASS: dict[type[Action], int] = {
    DeleteRequest: 100,
    KeepConsole: 20,
    DeleteGroup: 20,
    DeleteTemplate: 20,
    DeleteWorkloadPolicy: 20,
    WarnJob: 100,
    CreateReservation: 100,
    DeleteReservation: 100,
}
"""How many of a kind one pass carries out, each a call of its own. The rest waits for the next."""


def in_turn(actions: Iterable[Action], in_vain: Sequence[str]) -> list[Action]:
    """The actions of this pass: in their order, but those tried in vain last, oldest try first."""
    turns = {subject: turn for turn, subject in enumerate(in_vain)}
    counts: Counter[type[Action]] = Counter()
    due: list[Action] = []
    for action in sorted(actions, key=lambda action: turns.get(action.subject, -1)):
        kind = type(action)
        counts[kind] += 1
        if counts[kind] <= MOST_A_PASS.get(kind, counts[kind]):
            due.append(action)
    return due


def parts(due: Iterable[Action], in_vain: Sequence[str]) -> Iterator[list[Action]]:
    """First all that was not tried in vain, then the others, together while they are of a kind."""
    due, tried = list(due), frozenset(in_vain)
    yield [action for action in due if action.subject not in tried]
    others = [action for action in due if action.subject in tried]
    for _, members in itertools.groupby(others, key=type):
        yield list(members)


def up_to_silence(calls: Iterator[tuple[Outcome, ...]]) -> Iterator[tuple[Outcome, ...]]:
    """Make the calls one by one, up to the first that the system did not answer."""
    for outcomes in calls:
        yield outcomes
        if any(outcome.unanswered for outcome in outcomes):
            return


def is_unanswered(error: SlurmError) -> bool:
    """Whether slurmctld did not answer at all, so that it would not answer the next call."""
    return isinstance(error, SlurmUnavailable)


def not_done(action: Action, error: SlurmError) -> Outcome:
    """The outcome of an action that Slurm refused, or could not be asked for."""
    return Outcome(action, note=str(error), unanswered=is_unanswered(error))
