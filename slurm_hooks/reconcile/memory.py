"""How what one pass saw and started becomes what the next one remembers. Pure.

A finished operation uses up its request id, whatever its end: the service would answer a
repeated id with the old operation, a dead one too. So every end raises the subject's attempts,
and the next try gets an id of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import Operation
from slurm_hooks.compute.ownership import decode
from slurm_hooks.reconcile.actions import (
    Action,
    CancelRequest,
    CreateInstances,
    DeleteInstance,
    InsertGroup,
    InsertRequest,
    KeepPoolRecord,
    Plan,
    UpdateNode,
    WarnJob,
    told_as,
)
from slurm_hooks.reconcile.failure_table import Cause, Occasion, Reaction, reaction_to
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.refusals import refusals_after
from slurm_hooks.reconcile.snapshot import Failure, Memory
from slurm_hooks.slurm.model import JobStart

FAILURE_STANDS = timedelta(seconds=30)
"""How long a final error is taken as the answer before the call is made again."""

LONGEST_OPERATION = timedelta(minutes=30)
"""How long an operation may take, or not be readable, before its action is carried out again.

Every action is safe to repeat: an operation that ends after all finds its work done."""

_FAULTS_OF_A_MEMBER = (ErrorKind.CONFIG, ErrorKind.CONFLICT, ErrorKind.GONE)
"""Refusals of a call for many VMs that a single one may have caused: see `act_deletions` and
`gangs`."""

_OF_MANY = (CreateInstances, DeleteInstance)


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading an operation in flight gave: the operation, or None when nobody knows its end
    and it counts as over."""

    subject: str
    operation: Operation | None


def settle(
    memory: Memory, readings: Iterable[Reading], kinds: Mapping[str, ErrorKind], now: datetime
) -> Memory:
    """Take in what the operations in flight have become.

    `kinds` gives the meaning of the error of each failed operation, by subject. An operation
    with an error has failed even while the service still calls it running.
    """
    in_flight, attempts = dict(memory.in_flight), dict(memory.attempts)
    failures = dict(memory.failures)
    for reading in readings:
        operation = reading.operation
        if operation is not None and not is_over(operation):
            in_flight[reading.subject] = operation
            continue
        del in_flight[reading.subject]
        attempts[reading.subject] = attempts.get(reading.subject, 0) + 1
        if operation is not None and operation.error is not None:
            error = ComputeError(
                kinds[reading.subject], operation.error.code, operation.error.message
            )
            cause = memory.causes.get(reading.subject, Cause(Occasion.DELETE))
            _keep(failures, reading.subject, error, cause, now)
    return replace(memory, in_flight=in_flight, attempts=attempts, failures=failures)


def overdue(memory: Memory, now: datetime) -> tuple[str, ...]:
    """The subjects whose operations have been on their way for longer than any should take."""
    return tuple(
        subject
        for subject in memory.in_flight
        if now - memory.started_utc.get(subject, now) > LONGEST_OPERATION
    )


LONGEST_POLL_PAUSE = timedelta(seconds=10)
_POLLS_OF_AN_AGE = 6
"""An operation is read again when it has grown older by a sixth: a group, which takes some
twenty seconds, is seen within three, and one that takes minutes costs a call each ten seconds."""


def due_for_poll(memory: Memory, now: datetime) -> list[str]:
    """The subjects whose operations are to be read again, those first that were not for longest."""
    never = datetime.min.replace(tzinfo=UTC)
    due = [
        subject
        for subject in memory.in_flight
        if subject not in memory.polled_utc
        or now - memory.polled_utc[subject] >= _poll_pause(memory, subject, now)
    ]
    return sorted(due, key=lambda subject: memory.polled_utc.get(subject, never))


def _poll_pause(memory: Memory, subject: str, now: datetime) -> timedelta:
    age = now - memory.started_utc.get(subject, now)
    return min(age / _POLLS_OF_AN_AGE, LONGEST_POLL_PAUSE)


def is_over(operation: Operation) -> bool:
    """Whether an operation has ended, well or badly."""
    return operation.done or operation.error is not None


def remember(memory: Memory, plan: Plan, outcomes: Sequence[Outcome], now: datetime) -> Memory:
    """What to know at the next pass, after this one's plan was carried out."""
    in_flight, attempts = dict(memory.in_flight), dict(memory.attempts)
    failures = {key: value for key, value in memory.failures.items() if value.until_utc > now}
    causes = {key: value for key, value in memory.causes.items() if key in in_flight}
    started_utc = {key: value for key, value in memory.started_utc.items() if key in in_flight}
    polled_utc = {key: value for key, value in memory.polled_utc.items() if key in in_flight}
    counted = dict(memory.counted_failures)
    for outcome in outcomes:
        subject, error = outcome.action.subject, outcome.error
        of_call, of_operation = _causes_of(outcome.action)
        if outcome.operation is not None:
            in_flight[subject] = outcome.operation
            causes[subject], started_utc[subject] = of_operation, now
        if error is not None:
            _keep(failures, subject, error, of_call, now)
            if isinstance(outcome.action, _OF_MANY) and error.kind in _FAULTS_OF_A_MEMBER:
                attempts[subject] = attempts.get(subject, 0) + 1
        if isinstance(outcome.action, KeepPoolRecord) and not outcome.note:
            counted[outcome.action.pool_id] = outcome.action.counted
    memory = replace(
        memory,
        in_flight=in_flight,
        failures=failures,
        attempts=attempts,
        causes=causes,
        started_utc=started_utc,
        polled_utc=polled_utc,
        refusals=refusals_after(memory.refusals, plan, outcomes, now),
        counted_failures=counted,
        warned=_warned(memory.warned, outcomes, now),
        renewals=_renewals(memory.renewals, outcomes),
        in_vain=_in_vain(memory.in_vain, plan, outcomes),
        sightings=plan.sightings,
        suspended=plan.suspended,
    )
    if not plan.steps:
        return memory
    return replace(memory, attempts=_still_of_use(attempts, plan, in_flight))


def _causes_of(action: Action) -> tuple[Cause, Cause]:
    """Where the errors of an action's call and of its operation stand in the failure table."""
    match action:
        case InsertGroup():
            pool_id = action.pool.pool_id
            return (Cause(Occasion.INSERT_GROUP, pool_id),) * 2
        case InsertRequest():
            mark = decode(action.request.description)
            pool_id = mark.pool if mark is not None else ""
            return (
                Cause(Occasion.INSERT_REQUEST, pool_id),
                Cause(Occasion.REQUEST_OPERATION, pool_id),
            )
        case CreateInstances():
            return (Cause(Occasion.CREATE_INSTANCES, action.pool_id),) * 2
        case CancelRequest():
            return (Cause(Occasion.CANCEL),) * 2
        case _:
            return (Cause(Occasion.DELETE, told_as=told_as(action)),) * 2


def _keep(
    failures: dict[str, Failure],
    subject: str,
    error: ComputeError,
    cause: Cause,
    now: datetime,
) -> None:
    """Keep an error that stands for a while; the others mean: look at the next pass."""
    match reaction_to(cause.occasion, error.kind):
        case Reaction.FAIL_START | Reaction.STANDS:
            until = now + FAILURE_STANDS
        case Reaction.AFTER_A_MINUTE:
            until = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
        case _:
            return
    failures[subject] = Failure(
        error.kind,
        error.code,
        error.message,
        until,
        cause.occasion,
        cause.pool_id,
        cause.told_as,
    )


def _in_vain(before: Iterable[str], plan: Plan, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """What was tried and is not on its way, the latest last, while it is wanted.

    Also what was done: if that is wanted once more in the next pass, it was of no use.
    """
    tried = {outcome.action.subject for outcome in outcomes}
    wanted = {action.subject for action in plan.actions}
    kept = [subject for subject in before if subject in wanted and subject not in tried]
    now = [o.action.subject for o in outcomes if o.operation is None or o.unanswered]
    return (*kept, *now)


_WARNING_KEPT = timedelta(hours=1)
"""How long a sent warning is remembered beyond the end that it is about."""


def _warned(
    before: Mapping[str, datetime], outcomes: Iterable[Outcome], now: datetime
) -> dict[str, datetime]:
    sent = {
        outcome.action.subject: outcome.action.end_time_utc
        for outcome in outcomes
        if isinstance(outcome.action, WarnJob) and outcome.is_signalled
    }
    return {
        subject: end for subject, end in {**before, **sent}.items() if now - end < _WARNING_KEPT
    }


_MOST_RENEWED_KEPT = 1000


def _renewals(before: Mapping[JobStart, int], outcomes: Iterable[Outcome]) -> dict[JobStart, int]:
    """How many nodes were renewed for each start of a job; of the latest jobs only."""
    counts = dict(before)
    for outcome in outcomes:
        if isinstance(outcome.action, UpdateNode) and not outcome.note:
            start = outcome.action.renewed_for
            if start is not None:
                counts[start] = counts.pop(start, 0) + 1
    return dict(list(counts.items())[-_MOST_RENEWED_KEPT:])


_MOST_ATTEMPTS_KEPT = 10_000


def _still_of_use(
    attempts: dict[str, int], plan: Plan, in_flight: Mapping[str, Operation]
) -> dict[str, int]:
    """Keep the counts bounded: a forgotten one costs a single replayed operation."""
    if len(attempts) <= _MOST_ATTEMPTS_KEPT:
        return attempts
    used = {action.subject for action in plan.actions} | in_flight.keys()
    return {subject: count for subject, count in attempts.items() if subject in used}
