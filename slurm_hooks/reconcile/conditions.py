"""Conditions: one line of log when one begins or changes, one when it is over."""

from __future__ import annotations

import logging

from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.actions import Notice, NoticeKind, Plan

LOG = logging.getLogger("slurm-hooksd")

_TEXTS = {
    NoticeKind.UNKNOWN_FLAG: "node state has a word that we do not know, left alone",
    NoticeKind.UNKNOWN_STATE: "state that we do not know, left alone",
    NoticeKind.UNREADABLE: "record of Slurm not readable, left alone",
    NoticeKind.UNAVAILABLE: "not readable, nothing is decided until it is",
    NoticeKind.FAILURE: "refused, will be tried again",
    NoticeKind.DUPLICATE_VM: "two VMs of one name",
    NoticeKind.KILLS_HELD: "too many kills for one pass, none is carried out",
}


class Conditions:
    """Remembers which conditions hold, so that a lasting one is logged once."""

    def __init__(self) -> None:
        self._standing: dict[tuple[NoticeKind, str], Notice] = {}

    def report(self, plan: Plan) -> None:
        """Log what began, changed or ended with this plan."""
        present = {(notice.kind, notice.subject): notice for notice in plan.notices}
        for key, notice in present.items():
            if self._standing.get(key) != notice:
                log_event(
                    LOG,
                    logging.WARNING,
                    _TEXTS[notice.kind],
                    subject=notice.subject,
                    detail=notice.detail,
                )
        for key in self._standing.keys() - present.keys():
            log_event(LOG, logging.INFO, "condition over", condition=key[0], subject=key[1])
        self._standing = present
