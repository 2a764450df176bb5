"""Nodes that a person has reported as faulty, and what became of each report.

Two write here: the person's command, which orders, and the daemon, which carries out. That only
one report of a cluster is open at a time is a rule of the file itself, so it holds between them,
too. A host that is reported twice at once, or while its VM is deleted, is reported in vain.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path

from slurm_hooks.history.database import Database, HistoryUnavailable
from slurm_hooks.history.report import FaultAction, FaultBehavior, FaultReport, ReportState

FILE_NAME = "reports.sqlite3"
SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS reports (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    node TEXT NOT NULL,
    pool TEXT NOT NULL,
    zone TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    action TEXT NOT NULL,
    behavior TEXT NOT NULL,
    description TEXT NOT NULL,
    ordered_utc TEXT NOT NULL,
    ordered_by TEXT NOT NULL,
    state TEXT NOT NULL,
    changed_utc TEXT NOT NULL,
    operation TEXT NOT NULL,
    report_error TEXT NOT NULL,
    detail TEXT NOT NULL,
    is_open INTEGER
);
CREATE UNIQUE INDEX IF NOT EXISTS one_open ON reports (is_open) WHERE is_open = 1;
"""
_COLUMNS = (
    "node, pool, zone, instance_id, action, behavior, description, ordered_utc, ordered_by,"
    " state, changed_utc, operation, report_error, detail"
)


class ReportOpen(Exception):
    """Another report is open; `report` is that one."""

    def __init__(self, report: FaultReport) -> None:
        super().__init__(f"the report of {report.node} is open")
        self.report = report


class FaultReports:
    """The reports of one cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path, _SCHEMA, SCHEMA_VERSION)

    def order(self, report: FaultReport) -> FaultReport:
        """Add a new report and return it with its number. It is on the disk when this returns.

        Raises ReportOpen while another one is open, HistoryUnavailable.
        """
        row = (*_row(report), 1)
        marks = ",".join("?" * len(row))
        try:
            with self._database.connection(create=True) as connection, connection:
                connection.execute(
                    f"INSERT INTO reports ({_COLUMNS}, is_open) VALUES ({marks})", row
                )
        except HistoryUnavailable as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError):
                other = self.open()
                if other is not None:
                    raise ReportOpen(other) from None
            raise
        ordered = self.open()
        return ordered if ordered is not None else report

    def keep(self, report: FaultReport) -> None:
        """Write down how far a report is, unless it is over already. Raises HistoryUnavailable."""
        with self._database.connection(create=True) as connection, connection:
            connection.execute(
                "UPDATE reports SET state = ?, changed_utc = ?, operation = ?, report_error = ?,"
                " detail = ?, is_open = ? WHERE number = ? AND is_open = 1",
                (
                    report.state.value,
                    report.changed_utc.isoformat(),
                    report.operation,
                    report.report_error,
                    report.detail,
                    1 if report.state.is_open else None,
                    report.number,
                ),
            )

    def open(self) -> FaultReport | None:
        """The report that is open; None where there is none. Raises HistoryUnavailable."""
        return next(iter(self._select("WHERE is_open = 1", 1)), None)

    def latest(self, limit: int) -> list[FaultReport]:
        """The last reports, at most so many, the newest first. Raises HistoryUnavailable."""
        return self._select("ORDER BY number DESC", limit)

    def _select(self, clause: str, limit: int) -> list[FaultReport]:
        if not self.path.exists():
            return []
        with self._database.connection(create=False) as connection:
            rows = connection.execute(
                f"SELECT number, {_COLUMNS} FROM reports {clause} LIMIT ?", (limit,)
            ).fetchall()
            return [_report(*row) for row in rows]


def _row(report: FaultReport) -> tuple[str, ...]:
    return (
        report.node,
        report.pool,
        report.zone,
        report.instance_id,
        report.action.value,
        report.behavior.value,
        report.description,
        report.ordered_utc.isoformat(),
        report.ordered_by,
        report.state.value,
        report.changed_utc.isoformat(),
        report.operation,
        report.report_error,
        report.detail,
    )


def _report(number: int, *values: str) -> FaultReport:
    node, pool, zone, instance_id, action, behavior, description, ordered, by, *rest = values
    state, changed, operation, report_error, detail = rest
    return FaultReport(
        node,
        pool,
        zone,
        instance_id,
        FaultAction(action),
        datetime.fromisoformat(ordered),
        datetime.fromisoformat(changed),
        by,
        FaultBehavior(behavior),
        description,
        ReportState(state),
        operation,
        report_error,
        detail,
        number,
    )
