"""Whose turn it is within a pass: a pass ends soon, and nothing waits for ever behind a failure.

Each kind of action has a number and a share of the time of a pass; what is left is done in the
next one. A call that gets no answer has cost a minute or more. The next one to the same system
would cost as much, so it is left for the next pass. What was tried and is still wanted comes last
there.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from slurm_hooks.reconcile.actions import (
    Action,
    CancelRequest,
    CreateInstances,
    CreateReservation,
    DeleteGroup,
    DeleteInstance,
    DeleteRequest,
    DeleteReservation,
    DeleteTemplate,
    DeleteWorkloadPolicy,
    InsertGroup,
    InsertRequest,
    KeepConsole,
    KeepPoolRecord,
    SetNodeAddress,
    TellJob,
    UpdateNode,
    WarnJob,
)
from slurm_hooks.reconcile.outcome import Outcome, Outcomes
from slurm_hooks.reconcile.repair_actions import RecordEvents, RepairNode
from slurm_hooks.reconcile.report_actions import KeepReport, ReportHost
from slurm_hooks.slurm.client import SlurmError, SlurmUnavailable

MOST_A_PASS: dict[type[Action], int] = {
    CancelRequest: 100,
    InsertGroup: 20,
    InsertRequest: 100,
    CreateInstances: 100,
    DeleteRequest: 100,
    KeepConsole: 20,
    DeleteGroup: 20,
    DeleteTemplate: 20,
    DeleteWorkloadPolicy: 20,
    TellJob: 100,
    WarnJob: 100,
    KeepPoolRecord: 50,
    CreateReservation: 100,
    DeleteReservation: 100,
    RecordEvents: 1,
    RepairNode: 10,
    ReportHost: 1,
    KeepReport: 1,
}
"""How many of a kind one pass carries out, each by calls of its own. The rest waits for the next.

The requests of one job are made together, though: who has one of them gets all. VMs are deleted
and nodes changed many at a time, in so many calls a pass: see `act_deletions` and `act_nodes`.
"""

SECONDS_A_PASS: dict[type[Action], float] = {
    CancelRequest: 10,
    InsertRequest: 30,
    DeleteRequest: 5,
    KeepConsole: 5,
    DeleteInstance: 20,
    DeleteGroup: 5,
    DeleteTemplate: 5,
    DeleteWorkloadPolicy: 5,
    TellJob: 10,
    WarnJob: 10,
    KeepPoolRecord: 5,
    UpdateNode: 20,
    RecordEvents: 5,
    RepairNode: 10,
    ReportHost: 5,
    KeepReport: 5,
    SetNodeAddress: 10,
    CreateReservation: 10,
}
"""The share of each kind in the time of a pass, some two minutes in sum, so that a service that
answers slowly makes no pass endless and no kind starves behind another. The call that uses a
share up is the last of its kind. Groups share with requests, cleared reasons with node changes,
reservations to be deleted with new ones."""


_ASKS = (InsertRequest, CreateInstances)


class Shares:
    """How much of its time each kind of action has used up in one pass."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that only go forward."""
        self._clock = clock
        self._used: defaultdict[type[Action], float] = defaultdict(float)
        self._calls: Counter[type[Action]] = Counter()

    def within(
        self, kind: type[Action], calls: Iterator[Outcomes], most: int = sys.maxsize
    ) -> Iterator[Outcomes]:
        """Make the calls one by one while the kind has time left, and has made fewer than `most`
        in this pass."""
        while not self.is_used_up(kind, most):
            started = self._clock()
            outcomes = next(calls, None)
            self._used[kind] += self._clock() - started
            if outcomes is None:
                return
            self._calls[kind] += 1
            yield outcomes

    def is_used_up(self, kind: type[Action], most: int = sys.maxsize) -> bool:
        """Whether calls of the kind may have been left for the next pass."""
        return self._used[kind] >= SECONDS_A_PASS[kind] or self._calls[kind] >= most


def in_turn(actions: Iterable[Action], in_vain: Sequence[str]) -> list[Action]:
    """The actions of this pass: in their order, but those tried in vain last, oldest try first."""
    turns = {subject: turn for turn, subject in enumerate(in_vain)}
    counts: Counter[type[Action]] = Counter()
    jobs: set[int | None] = set()
    due: list[Action] = []
    for action in sorted(actions, key=lambda action: turns.get(action.subject, -1)):
        kind = type(action)
        has_begun = isinstance(action, _ASKS) and action.job_id in jobs
        if not has_begun and counts[kind] >= MOST_A_PASS.get(kind, counts[kind] + 1):
            continue
        counts[kind] += 1
        due.append(action)
        if isinstance(action, _ASKS) and action.job_id is not None:
            jobs.add(action.job_id)
    return due


def parts(due: Iterable[Action], in_vain: Sequence[str]) -> Iterator[list[Action]]:
    """First all that was not tried in vain, then the others, together while they are of a kind."""
    due, tried = list(due), frozenset(in_vain)
    yield [action for action in due if action.subject not in tried]
    others = [action for action in due if action.subject in tried]
    for _, members in itertools.groupby(others, key=type):
        yield list(members)


def up_to_silence(calls: Iterator[Outcomes]) -> Iterator[Outcomes]:
    """Make the calls one by one, up to the first that the system did not answer."""
    for outcomes in calls:
        yield outcomes
        if any(outcome.unanswered for outcome in outcomes):
            return


def is_unanswered(error: SlurmError) -> bool:
    """Whether slurmctld did not answer at all, so that it would not answer the next call."""
    return isinstance(error, SlurmUnavailable)


def not_done(action: Action, error: SlurmError, about: str = "") -> Outcome:
    """The outcome of an action that Slurm refused, or could not be asked for.

    `about` is what the refused command was about, where it was about more than the action.
    """
    note = f"{about}: {error}" if about else str(error)
    return Outcome(action, note=note, unanswered=is_unanswered(error))
