"""Nodes changed: states and reasons, in as few commands as possible, and never more by mistake.

Nodes are read again just before they are changed, once for all of them, and one that is no longer
as expected is left alone. One node that cannot take a change has a command for a thousand refused.
So nodes that were refused before come in smaller commands at each try, and in the end alone.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.actions import ClearReason, Expectation, SetReason, UpdateNode
from slurm_hooks.reconcile.comments import node_reason
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.outcome import Outcome, Outcomes
from slurm_hooks.reconcile.snapshot import Refusal
from slurm_hooks.reconcile.turns import not_done
from slurm_hooks.slurm.client import NodeUpdate, SlurmClient, SlurmError
from slurm_hooks.slurm.hostlist import collapse
from slurm_hooks.slurm.model import Node

LOG = logging.getLogger("slurm-hooksd")

SIZES_BY_TRY = (10_000, 100, 10, 1)
"""How many nodes a command is about when it was never refused, once, twice and more often."""

MOST_BATCHES_A_PASS = 50
"""The rest waits for the next pass, where nodes that were tried come last."""

NodeAction = UpdateNode | ClearReason | SetReason


@dataclass(frozen=True, slots=True)
class _Change:
    """What is asked of Slurm, state after state; without one the reason alone is set."""

    updates: tuple[NodeUpdate | None, ...]
    reason: str | None


def change_nodes(
    slurm: SlurmClient, actions: Sequence[NodeAction], refusals: Mapping[str, Refusal]
) -> Iterator[Outcomes]:
    """Change nodes; gives what came of each batch when its commands were given.

    `refusals` are those of the passes before, by subject.
    """
    if not actions:
        return
    try:
        present = slurm.read_nodes([action.node for action in actions])
    except SlurmError as error:
        log_event(LOG, logging.DEBUG, "nodes not read again", error=error)
        yield tuple(not_done(action, error) for action in actions)
        return
    due = [action for action in actions if _is_due(action, present)]
    for change, batch in itertools.islice(_batches(due, refusals), MOST_BATCHES_A_PASS):
        yield _change(slurm, change, batch)


def size_of_command(refusal: Refusal | None) -> int:
    """How many nodes a command may be about that includes one with such a refusal."""
    return SIZES_BY_TRY[min(refusal.tries, len(SIZES_BY_TRY) - 1) if refusal else 0]


def _is_due(action: NodeAction, present: Mapping[str, Node]) -> bool:
    expectation = Expectation.WAKING if isinstance(action, SetReason) else action.expectation
    return action.node in present and still_holds(expectation, present[action.node])


def _batches(
    actions: Sequence[NodeAction], refusals: Mapping[str, Refusal]
) -> Iterator[tuple[_Change, Sequence[NodeAction]]]:
    """The commands to give, in the order of the first action of each."""
    by_change: dict[tuple[_Change, int], list[NodeAction]] = {}
    for action in actions:
        size = size_of_command(refusals.get(action.subject))
        by_change.setdefault((_change_of(action), size), []).append(action)
    for (change, size), members in by_change.items():
        for start in range(0, len(members), size):
            yield change, members[start : start + size]


def _change_of(action: NodeAction) -> _Change:
    if isinstance(action, UpdateNode):
        return _Change(action.updates, node_reason(action) or None)
    return _Change((None,), action.reason if isinstance(action, SetReason) else "")


def _change(slurm: SlurmClient, change: _Change, batch: Sequence[NodeAction]) -> Outcomes:
    names = [action.node for action in batch]
    states = "+".join(update for update in change.updates if update)
    try:
        for update in change.updates:
            slurm.update_nodes(names, update, change.reason)
    except SlurmError as error:
        log_event(LOG, logging.DEBUG, "nodes not changed", nodes=names, to=states, error=error)
        about = collapse(names)
        return tuple(not_done(action, error, about) for action in batch)
    message = "nodes changed" if states else "reasons set" if change.reason else "reasons cleared"
    log_event(LOG, logging.INFO, message, nodes=names, to=states, reason=change.reason or "")
    return tuple(Outcome(action) for action in batch)
