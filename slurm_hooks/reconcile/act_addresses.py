"""Addresses of nodes set, many in one command, and of none that has changed meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.act_nodes import size_of_command
from slurm_hooks.reconcile.actions import SetNodeAddress
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.outcome import Outcome, Outcomes
from slurm_hooks.reconcile.snapshot import Refusal
from slurm_hooks.reconcile.turns import not_done
from slurm_hooks.slurm.client import SlurmClient, SlurmError
from slurm_hooks.slurm.hostlist import collapse
from slurm_hooks.slurm.model import Node

LOG = logging.getLogger("slurm-hooksd")


def set_addresses(
    slurm: SlurmClient, actions: Sequence[SetNodeAddress], refusals: Mapping[str, Refusal]
) -> Iterator[Outcomes]:
    """Set addresses; gives what came of each batch. `refusals` as for `change_nodes`.

    Nodes are read again just before, since one that registers meanwhile has a better address.
    """
    if not actions:
        return
    try:
        present = slurm.read_nodes([action.node for action in actions])
    except SlurmError as error:
        log_event(LOG, logging.DEBUG, "nodes not read again", error=error)
        yield tuple(not_done(action, error) for action in actions)
        return
    due = [action for action in actions if _is_due(action, present.get(action.node))]
    for batch in _batches(due, refusals):
        yield _set(slurm, batch)


def _is_due(action: SetNodeAddress, node: Node | None) -> bool:
    """The reason has to be the same, or it would become the old one again."""
    return (
        node is not None and node.reason == action.reason and still_holds(action.expectation, node)
    )


def _batches(
    actions: Sequence[SetNodeAddress], refusals: Mapping[str, Refusal]
) -> Iterator[Sequence[SetNodeAddress]]:
    by_change: dict[tuple[str, str, int], list[SetNodeAddress]] = {}
    for action in actions:
        size = size_of_command(refusals.get(action.subject))
        by_change.setdefault((action.address, action.reason, size), []).append(action)
    for (_, _, size), members in by_change.items():
        for start in range(0, len(members), size):
            yield members[start : start + size]


def _set(slurm: SlurmClient, batch: Sequence[SetNodeAddress]) -> Outcomes:
    names = [action.node for action in batch]
    address = batch[0].address
    try:
        slurm.set_node_addresses(names, address, batch[0].reason)
    except SlurmError as error:
        log_event(LOG, logging.DEBUG, "addresses not set", nodes=names, to=address, error=error)
        about = collapse(names)
        return tuple(not_done(action, error, about) for action in batch)
    log_event(LOG, logging.DEBUG, "addresses set", nodes=names, to=address)
    return tuple(Outcome(action) for action in batch)
