"""Condemned nodes repaired: written down first, then asked for, one node after another.

Nodes are read again just before, once for all of them. One whose reason or state is not the very
one for which its repair was decided is left alone. A repair that cannot be written down is not
asked for: nothing else keeps it from being repeated without end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from slurm_hooks.history.events import EventHistory, HistoryUnavailable
from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.outcome import Outcome, Outcomes
from slurm_hooks.reconcile.repair_actions import RecordEvents, RepairKind, RepairNode
from slurm_hooks.reconcile.repairs import is_still_due
from slurm_hooks.reconcile.turns import not_done
from slurm_hooks.slurm.client import NodeUpdate, SlurmClient, SlurmError

LOG = logging.getLogger("slurm-hooksd")

_UPDATES = {
    RepairKind.RETURN: NodeUpdate.RESUME,
    RepairKind.RETURN_OFF: NodeUpdate.IDLE,
    RepairKind.REPLACE: NodeUpdate.POWER_DOWN,
}
"""IDLE for a node that is off: RESUME leaves it NOT_RESPONDING. POWER_DOWN ends a reboot, too, and
leaves the reason."""


class Repairs:
    """Records events and repairs nodes of one cluster. `clock` gives aware UTC times."""

    def __init__(
        self, slurm: SlurmClient, history: EventHistory | None, clock: Callable[[], datetime]
    ) -> None:
        """Without a history nothing is recorded, so nothing is repaired."""
        self._slurm = slurm
        self._history = history
        self._clock = clock

    def record(self, actions: Iterable[RecordEvents]) -> Iterator[Outcomes]:
        """Keep events in the history."""
        for action in actions:
            try:
                self._keep(action)
            except HistoryUnavailable as error:
                yield (Outcome(action, note=str(error)),)
                continue
            for event in action.events:
                log_event(
                    LOG,
                    logging.INFO,
                    "event",
                    type=event.kind,
                    node=event.node or None,
                    pool=event.pool,
                    why=event.message,
                )
            yield (Outcome(action),)

    def repair(self, actions: Sequence[RepairNode]) -> Iterator[Outcomes]:
        """Repair nodes; gives what came of each."""
        if not actions:
            return
        try:
            present = self._slurm.read_nodes([action.node for action in actions])
        except SlurmError as error:
            log_event(LOG, logging.DEBUG, "nodes not read again", error=error)
            yield tuple(not_done(action, error) for action in actions)
            return
        for action in actions:
            node = present.get(action.node)
            if node is not None and is_still_due(action.kind, action.expected_reason, node):
                yield (self._repair(action),)

    def _repair(self, action: RepairNode) -> Outcome:
        try:
            self._keep(action)
            self._ask(action)
        except HistoryUnavailable as error:
            return Outcome(action, note=str(error))
        except SlurmError as error:
            log_event(LOG, logging.DEBUG, "node not repaired", node=action.node, error=error)
            return not_done(action, error)
        log_event(
            LOG,
            logging.WARNING,
            "node repaired",
            node=action.node,
            how=action.kind,
            why=action.events[0].message,
            reason=action.expected_reason,
        )
        return Outcome(action)

    def _keep(self, action: RecordEvents | RepairNode) -> None:
        if self._history is None:
            raise HistoryUnavailable("no history is kept here")
        self._history.record(action.events, self._clock())

    def _ask(self, action: RepairNode) -> None:
        if action.kind is RepairKind.REBOOT:
            self._slurm.reboot_nodes([action.node], action.expected_reason)
        else:
            self._slurm.update_nodes([action.node], _UPDATES[action.kind])
