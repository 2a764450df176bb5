"""Conditions are there for whoever asks, and a file that cannot be read tells nothing."""

from __future__ import annotations

from pathlib import Path

from slurm_hooks.history.conditions import FILE_NAME, Condition, ConditionsFile
from slurm_hooks.reconcile.actions import Notice, NoticeKind, Plan
from slurm_hooks.reconcile.conditions import Conditions
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.report_actions import ReportHost
from tests.unit.history.test_reports import REPORT

HELD = Notice(NoticeKind.KILLS_HELD, "nodes whose VMs are missing", "12, at most 10 in a pass")


def test_file_has_the_conditions_of_the_last_report(tmp_path: Path) -> None:
    file = ConditionsFile(tmp_path / FILE_NAME)
    conditions = Conditions(file)
    conditions.report(Plan(notices=(HELD,)))
    assert file.read() == (
        Condition(
            "KILLS_HELD",
            "too many kills for one pass, none is carried out",
            HELD.subject,
            HELD.detail,
        ),
    )
    conditions.report(Plan())
    assert file.read() == ()


def test_file_is_left_alone_while_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    conditions = Conditions(ConditionsFile(path))
    conditions.report(Plan(notices=(HELD,)))
    before = path.stat().st_ino
    conditions.report(Plan(notices=(HELD,)))
    assert path.stat().st_ino == before


def test_report_of_a_host_that_gets_no_answer_is_told(tmp_path: Path) -> None:
    file = ConditionsFile(tmp_path / FILE_NAME)
    outcome = Outcome(ReportHost(REPORT), note="503: busy", unanswered=True)
    Conditions(file).report(Plan(), [outcome])
    assert [(one.subject, one.detail) for one in file.read()] == [
        ("report host of flexvm-a3u-0 70", "503: busy")
    ]


def test_conditions_of_a_daemon_that_died_are_over_with_the_first_pass_of_the_next(
    tmp_path: Path,
) -> None:
    file = ConditionsFile(tmp_path / FILE_NAME)
    Conditions(file).report(Plan(notices=(HELD,)))
    Conditions(file).report(Plan())
    assert file.read() == ()


def test_file_that_cannot_be_read_or_written_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    assert ConditionsFile(path).read() == ()
    for text in ("no JSON", "[1]", '[{"kind": "X"}]', "3"):
        path.write_text(text)
        assert ConditionsFile(path).read() == ()
    ConditionsFile(tmp_path / "nowhere" / FILE_NAME).write([])
