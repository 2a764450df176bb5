"""Conditions: one line of log when one begins or changes, one when it is over.

A condition that cannot be judged lasts: while a system is not readable, or did not answer to the
end of a pass, nothing ends but that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from slurm_hooks.compute.errors import ErrorKind
from slurm_hooks.history.conditions import Condition, ConditionsFile
from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.actions import KeepConsole, Notice, NoticeKind, Plan, told_as
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.refusals import ASKED_OF_SLURM, is_told
from slurm_hooks.reconcile.repair_actions import RecordEvents
from slurm_hooks.reconcile.report_actions import KeepReport, ReportHost

LOG = logging.getLogger("slurm-hooksd")

_TEXTS = {
    NoticeKind.UNKNOWN_FLAG: "node state has a word that we do not know, left alone",
    NoticeKind.UNKNOWN_STATE: "state that we do not know, left alone",
    NoticeKind.UNREADABLE: "record of Slurm not readable, left alone",
    NoticeKind.UNAVAILABLE: "not readable, nothing is decided until it is",
    NoticeKind.FAILURE: "refused, will be tried again",
    NoticeKind.DUPLICATE_VM: "two VMs of one name",
    NoticeKind.KILLS_HELD: "too many kills for one pass, none is carried out",
    NoticeKind.REPAIR_SKIPPED: "node stays drained, it is not repaired",
    NoticeKind.REPAIRS_STOPPED: "too many nodes condemned at once, none of the pool is repaired",
    NoticeKind.DRAINED_BY_SLURM: "node drained by Slurm itself, a person must look",
    NoticeKind.HISTORY_UNAVAILABLE: "history not readable, no node is repaired until it is",
    NoticeKind.AWAITS_CAPACITY: "nodes wait for capacity",
    NoticeKind.LOGIN_NODES_LACK: "login nodes without a VM that runs",
}
_LEVELS = {
    NoticeKind.AWAITS_CAPACITY: logging.INFO,
    NoticeKind.REPAIRS_STOPPED: logging.ERROR,
    NoticeKind.HISTORY_UNAVAILABLE: logging.ERROR,
}
"""Of a condition that is nobody's fault, and of what stops repairs; the others are warnings."""

_DETAIL_VARIES = frozenset(
    {
        NoticeKind.UNAVAILABLE,
        NoticeKind.FAILURE,
        NoticeKind.KILLS_HELD,
        NoticeKind.HISTORY_UNAVAILABLE,
        NoticeKind.AWAITS_CAPACITY,
        NoticeKind.LOGIN_NODES_LACK,
    }
)
"""Whose details are another system's words or counts: other words alone are no news."""

_ASKED_OF_OTHERS = (KeepConsole, RecordEvents, ReportHost, KeepReport)
"""Actions of which Slurm knows nothing, and that tell in words why they were not carried out."""

_EXPECTED = frozenset({ErrorKind.CONFLICT, ErrorKind.GONE})
"""Refusals that mean: look at the next pass."""

SLURMCTLD = "slurmctld"
"""The subject of all changes that slurmctld did not answer to."""


class Conditions:
    """Remembers which conditions hold, so that a lasting one is logged once.

    A file, where there is one, always has those of the last report.
    """

    def __init__(self, file: ConditionsFile | None = None) -> None:
        self._standing: dict[tuple[NoticeKind, str], Notice] = {}
        self._file = file
        self._written: list[Condition] | None = None

    def report(self, plan: Plan, outcomes: Iterable[Outcome] = ()) -> None:
        """Log what began, changed or ended with this plan and what came of it."""
        outcomes = tuple(outcomes)
        notices = (*_refusals(outcomes), *plan.notices)
        present = {(notice.kind, notice.subject): notice for notice in notices}
        is_cut_short = any(outcome.unanswered for outcome in outcomes)
        if is_cut_short or any(notice.kind is NoticeKind.UNAVAILABLE for notice in notices):
            present = {**self._unjudged(), **present}
        for key, notice in present.items():
            if _is_news(self._standing.get(key), notice):
                log_event(
                    LOG,
                    _LEVELS.get(notice.kind, logging.WARNING),
                    _TEXTS[notice.kind],
                    subject=notice.subject,
                    detail=notice.detail,
                )
        for key in self._standing.keys() - present.keys():
            log_event(LOG, logging.INFO, "condition over", condition=key[0], subject=key[1])
        self._standing = present
        self._write(present.values())

    def _write(self, notices: Iterable[Notice]) -> None:
        conditions = [
            Condition(notice.kind.value, _TEXTS[notice.kind], notice.subject, notice.detail)
            for notice in notices
        ]
        if self._file is not None and conditions != self._written:
            self._file.write(conditions)
            self._written = conditions

    def _unjudged(self) -> dict[tuple[NoticeKind, str], Notice]:
        return {
            key: notice
            for key, notice in self._standing.items()
            if notice.kind is not NoticeKind.UNAVAILABLE
        }


def _is_news(before: Notice | None, notice: Notice) -> bool:
    if before is None or (before.error_kind, before.code) != (notice.error_kind, notice.code):
        return True
    return notice.kind not in _DETAIL_VARIES and before.detail != notice.detail


def _refusals(outcomes: Iterable[Outcome]) -> Iterator[Notice]:
    """What Compute Engine refused, what Slurm did, and that slurmctld does not answer."""
    for outcome in outcomes:
        error, action = outcome.error, outcome.action
        if error is not None and error.kind not in _EXPECTED:
            detail = f"{error.code} {error.message}"
            yield Notice(NoticeKind.FAILURE, told_as(action), detail, error.kind)
        elif outcome.note and isinstance(action, _ASKED_OF_OTHERS):
            yield Notice(NoticeKind.FAILURE, action.subject, outcome.note)
        elif outcome.note and isinstance(action, ASKED_OF_SLURM):
            if outcome.unanswered:
                yield Notice(NoticeKind.FAILURE, SLURMCTLD, outcome.note)
            elif is_told(action):
                yield Notice(NoticeKind.FAILURE, told_as(action), outcome.note)
