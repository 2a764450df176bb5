"""What is written on nodes beside their states: records of pools, and reasons that are over."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.actions import ClearReason, Expectation, KeepPoolRecord
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.memory import Outcome
from slurm_hooks.reconcile.pool_record import record_text
from slurm_hooks.reconcile.turns import not_done
from slurm_hooks.slurm.client import SlurmClient, SlurmError

LOG = logging.getLogger("slurm-hooksd")


def keep_pool_record(slurm: SlurmClient, action: KeepPoolRecord) -> Outcome:
    """Write a pool's failures down; they count as counted only if that succeeds."""
    text = record_text(action.record)
    try:
        slurm.set_node_comment(action.node, text)
    except SlurmError as error:
        log_event(LOG, logging.DEBUG, "pool record not kept", pool=action.pool_id, error=error)
        return not_done(action, error)
    level = logging.WARNING if action.record else logging.INFO
    log_event(LOG, level, "pool record", pool=action.pool_id, record=text or "cleared")
    return Outcome(action)


def clear_reasons(slurm: SlurmClient, actions: Sequence[ClearReason]) -> Iterator[Outcome]:
    """Remove reasons of ours from the nodes that still serve when they are read again."""
    if not actions:
        return
    try:
        present = slurm.read_nodes([action.node for action in actions])
        due = [
            action
            for action in actions
            if action.node in present
            and still_holds(Expectation.UP_WITH_OUR_REASON, present[action.node])
        ]
        if due:
            slurm.update_nodes([action.node for action in due], None, "")
    except SlurmError as error:
        log_event(LOG, logging.WARNING, "reasons not cleared", error=error)
        return
    for action in due:
        log_event(LOG, logging.INFO, "reason cleared", node=action.node)
        yield Outcome(action)
