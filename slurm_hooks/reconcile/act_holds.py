"""What is written on nodes beside their states: records of pools."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.actions import KeepPoolRecord, UpdateNode
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.pool_record import hold_phrase, record_text
from slurm_hooks.reconcile.turns import not_done
from slurm_hooks.slurm.client import SlurmClient, SlurmError

LOG = logging.getLogger("slurm-hooksd")


def without_holds_of(
    drains: Iterable[UpdateNode], records: Iterable[KeepPoolRecord]
) -> Iterator[KeepPoolRecord]:
    """The records that can be written down though these drains are left for the next pass.

    A hold that is in its record drains only nodes that fail after that: what a pass leaves of its
    first drains would go on being offered."""
    left = {(drain.code, drain.detail) for drain in drains}
    for action in records:
        record = action.record
        if record is None or (hold_phrase(record), record.cause) not in left:
            yield action


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
