"""A report of a faulty node carried out: the host reported, and each step written down."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.errors import ComputeError
from slurm_hooks.compute.model import FaultReason, Operation, Scope, ScopeKind
from slurm_hooks.compute.retry import RETRIED
from slurm_hooks.history.database import HistoryUnavailable
from slurm_hooks.history.events import EventHistory
from slurm_hooks.history.log import log_event
from slurm_hooks.history.report import FaultReport, ReportState
from slurm_hooks.history.reports import FaultReports
from slurm_hooks.reconcile.outcome import Outcome, Outcomes
from slurm_hooks.reconcile.plan_reports import report_event
from slurm_hooks.reconcile.report_actions import KeepReport, OpenReport, ReportHost
from slurm_hooks.reconcile.snapshot import System, Unavailable

LOG = logging.getLogger("slurm-hooksd")


class Reports:
    """Reads the open report of one cluster and carries it on. `clock` gives aware UTC times."""

    def __init__(
        self,
        compute: ComputeClient,
        store: FaultReports,
        history: EventHistory,
        clock: Callable[[], datetime],
    ) -> None:
        self._compute = compute
        self._store = store
        self._history = history
        self._clock = clock

    def read(self) -> OpenReport | Unavailable | None:
        """The report that is open, with the operation of its host's report."""
        try:
            report = self._store.open()
        except HistoryUnavailable as error:
            return Unavailable(System.HISTORY, str(error))
        return OpenReport(report, self._operation(report)) if report is not None else None

    def _operation(self, report: FaultReport) -> Operation | None:
        """An error while reading says nothing about the operation."""
        if report.state is not ReportState.REPORTED:
            return None
        started = Operation(report.operation, Scope(ScopeKind.ZONE, report.zone))
        try:
            return self._compute.get_operation(started)
        except ComputeError as error:
            log_event(LOG, logging.DEBUG, "report of a host not read", node=report.node, why=error)
            return None

    def report_hosts(self, actions: Iterable[ReportHost]) -> Iterator[Outcomes]:
        """Report hosts. The id of the call is the report's own, so it is one whatever dies."""
        for action in actions:
            yield (self._report_host(action),)

    def _report_host(self, action: ReportHost) -> Outcome:
        report = action.report
        reason = FaultReason(report.behavior.value, report.description)
        request_id = f"{action.subject} ordered {report.ordered_utc.isoformat()}"
        try:
            operation = self._compute.report_host_as_faulty(
                report.zone, report.node, reason, request_id
            )
        except ComputeError as error:
            if error.kind in RETRIED:
                return Outcome(action, note=str(error), unanswered=True)
            told = replace(
                report,
                state=ReportState.FAILED,
                report_error=f"{error.code}: {error.message}",
                detail=f"the report of its host was refused: {error.code}: {error.message}",
            )
            return self._keep(action, told)
        accepted = replace(
            report,
            state=ReportState.REPORTED,
            operation=operation.name,
            detail=f"its host is reported: {report.behavior}",
        )
        return self._keep(action, accepted)

    def keep(self, actions: Iterable[KeepReport]) -> Iterator[Outcomes]:
        """Write down how far reports are."""
        for action in actions:
            yield (self._keep(action, action.report),)

    def _keep(self, action: ReportHost | KeepReport, report: FaultReport) -> Outcome:
        """The event first: one that was told twice is recorded once."""
        now = self._clock()
        told = replace(report, changed_utc=now)
        try:
            self._history.record([report_event(told)], now)
            self._store.keep(told)
        except HistoryUnavailable as error:
            return Outcome(action, note=str(error))
        log_event(
            LOG,
            logging.WARNING,
            "report of a faulty node",
            node=report.node,
            state=report.state,
            detail=report.detail,
        )
        return Outcome(action)
