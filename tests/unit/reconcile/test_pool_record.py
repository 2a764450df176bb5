"""What is kept of a pool's failures: texts that are read back whole, holds within their limits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.reconcile.pool_record import (
    PoolFailure,
    PoolRecord,
    hold_end,
    read_record,
    record_text,
    with_hold,
)
from tests.unit.reconcile.builders import NOW

causes = st.builds(
    lambda code, detail: PoolFailure("key", NOW, code, detail).cause, st.text(), st.text()
)
times = st.integers(0, 10**8).map(lambda seconds: NOW + timedelta(seconds=seconds))
records = st.builds(
    PoolRecord,
    failures=st.integers(1, 10**6),
    last_utc=times,
    holds=st.integers(0, 10**6),
    until_utc=st.none() | times,
    cause=causes,
)


@given(records)
def test_record_is_read_back_whole(record: PoolRecord) -> None:
    assert read_record(record_text(record)) == record


@given(st.text())
def test_any_other_comment_is_no_record(text: str) -> None:
    assert read_record(text) is None
    assert hold_end(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "slurm-hooks: pool held until 2026-13-01T00:00:00Z after 3 failures: X",
        "slurm-hooks: request failed X",
        "slurm-hooks: pool failed 2 times in a row, last 2026-13-01T00:00:00Z, held 0 times: X",
    ],
)
def test_text_that_is_not_understood_in_full_is_none(text: str) -> None:
    assert (read_record(text), hold_end(text)) == (None, None)


@given(records, st.integers(1, 10**5), st.integers(1, 10**6))
def test_hold_ends_within_the_limit(record: PoolRecord, first: int, longest: int) -> None:
    policy = Policy(hold_seconds=first, longest_hold_seconds=longest)
    held = with_hold(record, policy, NOW)
    assert held.until_utc is not None
    assert held.until_utc - NOW <= timedelta(seconds=longest)
    assert held.holds == record.holds + 1


def test_no_record_is_an_empty_comment() -> None:
    assert record_text(None) == ""
