"""The reason of a drained node: what a run writes, the controller reads, and no one else's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.reason import HealthReason, format_reason, parse_reason
from tests.shared_data import shared_file

_FULL = HealthReason(
    Verdict.REPLACE,
    "row_remap",
    "gpu 3 row remapping failed",
    "7210345678901234567",
    "0a1b2c3d",
    context=Context.PROLOG,
    job_id=42,
    restart_count=1,
    gpus_used=4,
    gpus_present=8,
)


def test_a_reason_names_verdict_and_check_first_and_ends_with_the_job() -> None:
    assert format_reason(_FULL) == (
        "slurm-hooks: REPLACE row_remap gpu 3 row remapping failed"
        " inst=7210345678901234567 boot=0a1b2c3d ctx=prolog job=42 restarts=1 gpus=4/8"
    )


def test_a_reason_without_a_job_ends_with_the_boot_and_the_context() -> None:
    reason = HealthReason(Verdict.OK, "health_run", "passed", "", "", context=Context.BACKGROUND)

    assert format_reason(reason) == "slurm-hooks: OK health_run passed inst=? boot=? ctx=background"


_DETAILS = st.text(max_size=300)


@given(
    verdict=st.sampled_from(Verdict),
    check=st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True),
    detail=_DETAILS,
    instance=st.from_regex(r"([0-9]{1,20})?", fullmatch=True),
    boot=st.from_regex(r"([0-9a-f]{8})?", fullmatch=True),
    context=st.none() | st.sampled_from(Context),
    job=st.none() | st.tuples(st.integers(1, 10**9), st.integers(0, 99)),
    gpus=st.none() | st.tuples(st.integers(0, 8), st.integers(0, 8)),
)
def test_whatever_a_run_writes_is_read_again(
    verdict: Verdict,
    check: str,
    detail: str,
    instance: str,
    boot: str,
    context: Context | None,
    job: tuple[int, int] | None,
    gpus: tuple[int, int] | None,
) -> None:
    written = HealthReason(
        verdict,
        check,
        detail,
        instance,
        boot,
        context,
        *(job or (None, None)),
        *(gpus or (None, None)),
    )

    text = format_reason(written)
    read = parse_reason(text)

    assert "\n" not in text and '"' not in text and "'" not in text
    assert read is not None
    assert (read.verdict, read.check, read.context) == (verdict, check, context)
    assert (read.instance_id, read.boot) == (instance, boot)
    assert (read.job_id, read.restart_count) == (job or (None, None))
    assert (read.gpus_used, read.gpus_present) == (gpus or (None, None))


@given(st.text())
def test_no_text_makes_the_reader_raise(text: str) -> None:
    parse_reason(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Prolog error",
        "broken fan, ask Ada",
        "slurm-hooks: VM gone",
        "slurm-hooks: pool held until 2026-12-01T10:00:00Z: STOCKOUT",
        "slurm-hooks: EXPLODE row_remap inst=1 boot=0a1b2c3d",
        "slurm-hooks: REPLACE row_remap inst=1 boot=0a1b2c3d, but Ada says no",
        "was slurm-hooks: REPLACE row_remap inst=1 boot=0a1b2c3d",
    ],
)
def test_a_reason_that_no_run_wrote_is_not_read_as_one(text: str) -> None:
    assert parse_reason(text) is None


def test_no_reason_of_a_posted_node_record_is_taken_for_ours() -> None:
    lines = shared_file("data/slurm-node-records.txt").read_text(encoding="utf-8").splitlines()
    reasons = [line.strip().removeprefix("Reason=") for line in lines if "Reason=" in line]

    assert reasons
    assert [reason for reason in reasons if parse_reason(reason) is not None] == []
