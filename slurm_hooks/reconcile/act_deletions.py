"""Deletions of VMs and of what makes them: in as few calls as possible, never more by mistake.

One bad member can fail a call for a thousand. So the VMs whose deletion has failed before come in
smaller calls at each attempt, and in the end alone and without their group, which may have lost
them. A group is read again just before: deleting one deletes all that is in it.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence

from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.errors import ComputeError
from slurm_hooks.compute.model import GroupReference, Operation, Scope, ScopeKind
from slurm_hooks.compute.retry import RETRIED
from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.actions import (
    Action,
    DeleteGroup,
    DeleteInstance,
    DeleteTemplate,
    DeleteWorkloadPolicy,
)
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.snapshot import Memory

LOG = logging.getLogger("slurm-hooksd")

SIZES_BY_ATTEMPT = (1000, 100, 10)
"""How many VMs a call takes at the first, second and third attempt."""

MOST_CALLS_A_PASS = 20
"""The rest waits for the next pass. VMs that were never tried come first."""


class Deletions:
    """Starts deletions in one project."""

    def __init__(self, compute: ComputeClient) -> None:
        self._compute = compute

    def delete_instances(
        self, actions: Sequence[DeleteInstance], memory: Memory
    ) -> Iterator[tuple[Outcome, ...]]:
        """Start to delete VMs; gives what came of each call when it was made."""
        for group, batch in itertools.islice(_batches(actions, memory), MOST_CALLS_A_PASS):
            if group is None:
                yield (self._delete_alone(batch[0], memory),)
            else:
                yield self._delete_together(group, batch, memory)

    def delete_group(self, action: DeleteGroup, memory: Memory) -> Outcome:
        """Start to delete a group, unless it is not empty any more."""
        try:
            group = self._compute.get_group(action.group)
        except ComputeError as error:
            return failed(action, error)
        if group is None or group.target_size > 0:
            return Outcome(action, note="gone" if group is None else "not empty any more")
        request_id = attempt_of(action, memory)
        return started(action, lambda: self._compute.delete_group(action.group, request_id))

    def delete_template(self, action: DeleteTemplate, memory: Memory) -> Outcome:
        """Start to delete a template; the service refuses it for one that is in use."""
        scope, request_id = Scope(ScopeKind.GLOBAL, ""), attempt_of(action, memory)
        return started(
            action, lambda: self._compute.delete_template(scope, action.name, request_id)
        )

    def delete_workload_policy(self, action: DeleteWorkloadPolicy, memory: Memory) -> Outcome:
        """Start to delete a policy; the service refuses it for one that is in use."""
        request_id = attempt_of(action, memory)
        return started(
            action,
            lambda: self._compute.delete_workload_policy(action.scope, action.name, request_id),
        )

    def _delete_together(
        self, group: GroupReference, batch: Sequence[DeleteInstance], memory: Memory
    ) -> tuple[Outcome, ...]:
        zones = {action.name: action.zone for action in batch}
        text = "\n".join(attempt_of(action, memory) for action in batch)
        request_id = f"delete instances {hashlib.sha256(text.encode()).hexdigest()}"
        try:
            operation = self._compute.delete_instances(group, zones, request_id)
        except ComputeError as error:
            log_event(LOG, logging.DEBUG, "VMs not deleted", nodes=list(zones), error=error)
            unanswered = error.kind in RETRIED
            return tuple(Outcome(action, error=error, unanswered=unanswered) for action in batch)
        log_event(LOG, logging.INFO, "VM deletion started", nodes=list(zones))
        return tuple(Outcome(action, operation=operation) for action in batch)

    def _delete_alone(self, action: DeleteInstance, memory: Memory) -> Outcome:
        request_id = f"{attempt_of(action, memory)} alone"
        return started(
            action,
            lambda: self._compute.delete_instance(action.zone, action.name, request_id),
        )


def _batches(
    actions: Sequence[DeleteInstance], memory: Memory
) -> Iterator[tuple[GroupReference | None, Sequence[DeleteInstance]]]:
    """Calls to make, in their order; without a group it is one VM."""
    by_attempt: dict[tuple[int, GroupReference | None], list[DeleteInstance]] = {}
    for action in actions:
        attempt = min(memory.attempts.get(action.subject, 0), len(SIZES_BY_ATTEMPT))
        group = action.group if attempt < len(SIZES_BY_ATTEMPT) else None
        by_attempt.setdefault((attempt, group), []).append(action)
    for (attempt, group), members in sorted(by_attempt.items(), key=lambda item: item[0][0]):
        size = SIZES_BY_ATTEMPT[attempt] if group is not None else 1
        for start in range(0, len(members), size):
            yield group, members[start : start + size]


def attempt_of(action: Action, memory: Memory) -> str:
    """The thing and the attempt: what a request id is derived from."""
    return f"{action.subject}#{memory.attempts.get(action.subject, 0)}"


def started(action: Action, call: Callable[[], Operation]) -> Outcome:
    """Start an operation. A conflict or a thing that is gone means: look at the next pass."""
    try:
        operation = call()
    except ComputeError as error:
        return failed(action, error)
    log_event(LOG, logging.INFO, action.subject, operation=operation.name)
    return Outcome(action, operation=operation)


def failed(action: Action, error: ComputeError) -> Outcome:
    """The outcome of a refusal. It is a condition: whoever reports these says it aloud, once."""
    log_event(LOG, logging.DEBUG, f"refused: {action.subject}", kind=error.kind, error=error)
    return Outcome(action, error=error, unanswered=error.kind in RETRIED)
