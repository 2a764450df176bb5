"""Reports of faulty nodes: one at a time, kept whatever dies, and closed for good."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.history.database import HistoryUnavailable
from slurm_hooks.history.report import FaultAction, FaultBehavior, FaultReport, ReportState
from slurm_hooks.history.reports import FILE_NAME, FaultReports, ReportOpen
from tests.unit.reconcile.builders import NOW

REPORT = FaultReport(
    "flexvm-a3u-0",
    "a3u",
    "us-central1-a",
    "70",
    FaultAction.REPORT_HOST,
    NOW,
    NOW,
    ordered_by="ann",
    behavior=FaultBehavior.PERFORMANCE,
    description="slow",
)


@pytest.fixture
def reports(tmp_path: Path) -> FaultReports:
    return FaultReports(tmp_path / FILE_NAME)


def test_nothing_was_reported_where_there_is_no_file(reports: FaultReports) -> None:
    assert (reports.open(), reports.latest(5)) == (None, [])
    assert not reports.path.exists()


def test_ordered_report_is_open_with_all_that_was_said(reports: FaultReports) -> None:
    ordered = reports.order(REPORT)
    assert ordered == replace(REPORT, number=1)
    assert reports.open() == ordered
    assert reports.path.stat().st_mode & 0o077 == 0


def test_second_report_is_refused_while_one_is_open(reports: FaultReports) -> None:
    first = reports.order(REPORT)
    with pytest.raises(ReportOpen) as refusal:
        reports.order(replace(REPORT, node="flexvm-a3u-1"))
    assert refusal.value.report == first


@pytest.mark.parametrize("state", list(ReportState))
def test_next_report_may_come_once_the_last_is_over(
    reports: FaultReports, state: ReportState
) -> None:
    later = NOW + timedelta(minutes=1)
    kept = replace(
        reports.order(REPORT),
        state=state,
        changed_utc=later,
        operation="operation-1",
        report_error="E",
        detail="text",
    )
    reports.keep(kept)
    assert reports.latest(1) == [kept]
    if state.is_open:
        with pytest.raises(ReportOpen):
            reports.order(REPORT)
    else:
        assert reports.order(REPORT).number == 2
        assert [report.number for report in reports.latest(5)] == [2, 1]


def test_report_that_is_over_is_not_opened_again(reports: FaultReports) -> None:
    ordered = reports.order(REPORT)
    over = replace(ordered, state=ReportState.REPLACED)
    reports.keep(over)
    reports.keep(replace(ordered, state=ReportState.REPLACING))
    assert reports.latest(1) == [over]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_file_that_root_makes_belongs_to_the_daemon(reports: FaultReports) -> None:
    os.chown(reports.path.parent, 4711, 4712)
    reports.order(REPORT)
    status = reports.path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (4711, 4712, 0o600)


def test_file_that_is_none_of_ours_is_unavailable(reports: FaultReports) -> None:
    reports.path.write_text("not a database" * 100)
    with pytest.raises(HistoryUnavailable):
        reports.open()
    with pytest.raises(HistoryUnavailable):
        reports.order(REPORT)


_ORDERS = """\
import sys
from pathlib import Path
from tests.unit.history.test_reports import REPORT, FaultReports, ReportOpen
try:
    FaultReports(Path(sys.argv[1])).order(REPORT)
    print("ordered")
except ReportOpen:
    print("refused")
"""


@pytest.mark.slow
def test_of_many_that_order_at_once_one_is_heard(reports: FaultReports) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _ORDERS, str(reports.path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    answers = sorted(process.communicate(timeout=60)[0].strip() for process in started)
    assert answers == ["ordered", "refused", "refused", "refused"]
