"""An Xid that is dealt with counts no more, and one of the job's own time always does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_hooks.health.cleared import Cleared
from slurm_hooks.health.model import Context
from slurm_hooks.health.xids.kernel_log import Since
from slurm_hooks.health.xids.window import (
    BOOT_COUNTER,
    SEQUENCE_COUNTER,
    ThisBoot,
    Window,
    window_of,
)

BOOTED = datetime(2026, 12, 1, 6, tzinfo=UTC)
BOOT = "1f6c3a52"
OTHER_BOOT = "00c0ffee"
THIS = ThisBoot(BOOT, BOOTED)
HOUR = timedelta(hours=1)
HOUR_IN_MICROSECONDS = 3_600_000_000
PROLOG, EPILOG, BACKGROUND = Context.PROLOG, Context.EPILOG, Context.BACKGROUND


def baseline(boot: str, sequence: float) -> dict[str, float]:
    return {BOOT_COUNTER: float(int(boot, 16)), SEQUENCE_COUNTER: sequence}


@pytest.mark.parametrize("context", [PROLOG, BACKGROUND])
def test_all_of_this_boot_counts_without_a_mark(context: Context) -> None:
    assert window_of(context, THIS, None, {}, None) == Window(Since(), is_of_job=False)


@pytest.mark.parametrize("context", [PROLOG, BACKGROUND])
def test_what_came_before_the_mark_is_dealt_with(context: Context) -> None:
    mark = Cleared(BOOTED + HOUR, "alice", BOOT, 500)
    assert window_of(context, THIS, mark, {}, None).since == Since(sequence=500)


def test_mark_of_an_earlier_boot_hides_nothing() -> None:
    mark = Cleared(BOOTED + HOUR, "alice", OTHER_BOOT, 500)
    assert window_of(PROLOG, THIS, mark, {}, None).since == Since()


@pytest.mark.parametrize(("boot", "sequence"), [("", None), ("", 500), (BOOT, None)])
def test_mark_without_a_place_in_the_log_counts_by_time(boot: str, sequence: int | None) -> None:
    mark = Cleared(BOOTED + HOUR, "alice", boot, sequence)
    since = window_of(PROLOG, THIS, mark, {}, None).since
    assert since == Since(microseconds=HOUR_IN_MICROSECONDS)


def test_mark_from_before_the_boot_counts_from_its_beginning() -> None:
    since = window_of(PROLOG, THIS, Cleared(BOOTED - HOUR, "alice"), {}, None).since
    assert since == Since(microseconds=0)


def test_mark_hides_nothing_where_the_boot_time_is_unknown() -> None:
    this_boot = ThisBoot("", None)
    mark = Cleared(BOOTED + HOUR, "alice", BOOT, None)
    assert window_of(PROLOG, this_boot, mark, {}, None).since == Since()


def test_epilog_counts_from_where_the_log_stood_in_the_prolog() -> None:
    window = window_of(EPILOG, THIS, None, baseline(BOOT, 800.0), BOOTED + HOUR)
    assert window == Window(Since(sequence=800), is_of_job=True)


def test_epilog_counts_by_time_where_the_prolog_could_not_read_the_log() -> None:
    window = window_of(EPILOG, THIS, None, {}, BOOTED + HOUR)
    assert window == Window(Since(microseconds=HOUR_IN_MICROSECONDS), is_of_job=True)


def test_epilog_after_a_reboot_during_the_job_counts_all_of_this_boot() -> None:
    window = window_of(EPILOG, THIS, None, baseline(OTHER_BOOT, 800.0), BOOTED - HOUR)
    assert window == Window(Since(), is_of_job=True)


def test_epilog_without_a_prolog_blames_no_job() -> None:
    window = window_of(EPILOG, THIS, Cleared(BOOTED, "a", BOOT, 500), {}, None)
    assert window == Window(Since(sequence=500), is_of_job=False)


@pytest.mark.parametrize(("mark", "start"), [(500, 800), (800, 500)])
def test_later_of_mark_and_job_start_counts_in_an_epilog(mark: int, start: int) -> None:
    cleared = Cleared(BOOTED + HOUR, "alice", BOOT, mark)
    window = window_of(EPILOG, THIS, cleared, baseline(BOOT, start), BOOTED + HOUR)
    assert window.since == Since(sequence=800)


def test_baseline_of_a_job_means_nothing_to_a_prolog() -> None:
    assert window_of(PROLOG, THIS, None, baseline(BOOT, 800.0), BOOTED + HOUR) == Window(
        Since(), is_of_job=False
    )


@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 2**53))
def test_place_in_the_log_survives_being_kept_as_a_number(boot: int, sequence: int) -> None:
    this_boot = ThisBoot(f"{boot:08x}", BOOTED)
    kept = baseline(this_boot.boot, float(sequence))
    window = window_of(EPILOG, this_boot, None, kept, BOOTED)
    assert window.since == Since(sequence=sequence)
