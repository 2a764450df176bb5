"""A cluster that is deleted: no pass acts, and whoever deletes knows when the last one is over."""

from __future__ import annotations

from pathlib import Path

from slurm_hooks.reconcile import deleting


def test_mark_is_obeyed_by_the_first_pass_that_begins_after_it(tmp_path: Path) -> None:
    assert not deleting.obey(tmp_path)
    deleting.mark(tmp_path)
    assert deleting.is_marked(tmp_path)
    assert not deleting.is_obeyed(tmp_path)
    assert deleting.obey(tmp_path)
    assert deleting.is_obeyed(tmp_path)


def test_second_mark_waits_for_a_pass_again(tmp_path: Path) -> None:
    deleting.mark(tmp_path)
    deleting.obey(tmp_path)
    deleting.mark(tmp_path)
    assert not deleting.is_obeyed(tmp_path)


def test_without_the_mark_passes_act_again(tmp_path: Path) -> None:
    deleting.mark(tmp_path)
    deleting.obey(tmp_path)
    deleting.unmark(tmp_path)
    assert not deleting.is_marked(tmp_path)
    assert not deleting.obey(tmp_path)
    deleting.unmark(tmp_path)
