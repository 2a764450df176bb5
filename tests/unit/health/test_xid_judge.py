"""Who has the last word on an Xid: the site, then the driver, then the table; and for which job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.xids.cases import XidCase
from slurm_hooks.health.xids.judge import (
    RECENT_SECONDS,
    Circumstances,
    Judgement,
    judge,
    needs_driver,
)
from slurm_hooks.health.xids.table import verdict_of_xid

IN_PROLOG = Circumstances(Context.PROLOG)
IN_BACKGROUND = Circumstances(Context.BACKGROUND)
IN_EPILOG = Circumstances(Context.EPILOG)
OF_JOB = Circumstances(Context.EPILOG, is_of_job=True)
EVERYWHERE = [IN_PROLOG, IN_BACKGROUND, IN_EPILOG, OF_JOB]
DRAINING = [48, 79, 64, 78]


def case(xid: int, count: int = 1) -> XidCase:
    verdict = verdict_of_xid(xid, "", is_repeated=False)
    return XidCase(xid, "0000:9b:00", verdict, count, False, 100.0, "")


def judged(xid: int, around: Circumstances) -> Judgement:
    judgement = judge(case(xid), around)
    assert judgement is not None
    return judgement


@pytest.mark.parametrize("xid", DRAINING)
@pytest.mark.parametrize("around", EVERYWHERE)
def test_fault_of_the_hardware_drains_in_every_context(xid: int, around: Circumstances) -> None:
    assert judged(xid, around).verdict is verdict_of_xid(xid, "", is_repeated=False)


@pytest.mark.parametrize("xid", DRAINING)
def test_job_is_hit_only_by_faults_of_its_own_gpus(xid: int) -> None:
    assert judged(xid, OF_JOB).of_job
    assert not judged(xid, IN_EPILOG).of_job


def test_contained_memory_error_requeues_the_job_that_had_the_gpu() -> None:
    judgement = judged(94, OF_JOB)
    assert (judgement.verdict, judgement.of_job) == (Verdict.REQUEUE, True)


def test_contained_memory_error_does_not_fail_the_next_job() -> None:
    assert judge(case(94), IN_PROLOG) is None


def test_contained_memory_error_is_a_warning_in_the_background() -> None:
    judgement = judged(94, IN_BACKGROUND)
    assert (judgement.verdict, judgement.of_job) == (Verdict.WARN, False)


def test_contained_memory_error_of_another_job_is_left_to_its_own_epilog() -> None:
    assert judge(case(94), IN_EPILOG) is None


def test_contained_memory_error_after_peer_errors_blames_no_gpu_without_ecc_errors() -> None:
    around = replace(OF_JOB, had_peer_errors=True, has_no_ecc_errors=True)
    judgement = judged(94, around)
    assert (judgement.verdict, judgement.of_job) == (Verdict.WARN, False)
    assert "Xid 137" in judgement.detail


@pytest.mark.parametrize(
    "around",
    [replace(OF_JOB, had_peer_errors=True), replace(OF_JOB, has_no_ecc_errors=True)],
)
def test_contained_memory_error_is_not_excused_by_half_the_evidence(around: Circumstances) -> None:
    assert judged(94, around).verdict is Verdict.REQUEUE


@pytest.mark.parametrize("xid", [13, 31, 43, 45])
def test_xid_of_an_application_never_requeues_its_job(xid: int) -> None:
    judgement = judged(xid, OF_JOB)
    assert (judgement.verdict, judgement.of_job) == (Verdict.OK, False)


@pytest.mark.parametrize("xid", [13, 31, 43, 45])
@pytest.mark.parametrize("around", [IN_PROLOG, IN_BACKGROUND, IN_EPILOG])
def test_xid_of_an_application_is_told_of_by_its_own_epilog_alone(
    xid: int, around: Circumstances
) -> None:
    assert judge(case(xid), around) is None


@pytest.mark.parametrize("action", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("xid", DRAINING)
@pytest.mark.parametrize("around", EVERYWHERE)
def test_recovery_action_decides_instead_of_the_xid(
    action: int, xid: int, around: Circumstances
) -> None:
    judgement = judge(case(xid), replace(around, recovery_action=action))
    if around is IN_EPILOG:
        assert judgement is None
        return
    assert judgement is not None
    assert (judgement.verdict, judgement.of_job) == (Verdict.WARN, False)
    assert judgement.detail.endswith(f"recovery action {action} decides")


@pytest.mark.parametrize("action", [0, None])
@pytest.mark.parametrize("xid", DRAINING)
def test_xid_decides_where_the_driver_asks_for_nothing(xid: int, action: int | None) -> None:
    around = replace(IN_PROLOG, recovery_action=action)
    assert judged(xid, around).verdict.drains


def test_changed_recovery_action_counts_only_while_nvml_shows_it() -> None:
    assert judged(154, replace(IN_BACKGROUND, recovery_action=4)).verdict is Verdict.WARN
    assert judge(case(154), replace(IN_BACKGROUND, recovery_action=0)) is None


@pytest.mark.parametrize("around", EVERYWHERE)
def test_site_can_make_an_xid_graver(around: Circumstances) -> None:
    assert judged(45, replace(around, override=Verdict.REPLACE)).verdict is Verdict.REPLACE


@pytest.mark.parametrize("around", [IN_PROLOG, IN_EPILOG])
@pytest.mark.parametrize("override", [Verdict.WARN, Verdict.OK])
def test_site_can_make_an_xid_milder(around: Circumstances, override: Verdict) -> None:
    assert judge(case(79), replace(around, override=override)) is None


def test_site_has_its_way_against_the_recovery_action() -> None:
    around = replace(IN_PROLOG, override=Verdict.MANUAL, recovery_action=1)
    assert judged(48, around).verdict is Verdict.MANUAL


def test_site_can_have_the_jobs_of_an_xid_run_again() -> None:
    judgement = judged(31, replace(OF_JOB, override=Verdict.REQUEUE))
    assert (judgement.verdict, judgement.of_job) == (Verdict.REQUEUE, True)
    assert judge(case(31), replace(IN_PROLOG, override=Verdict.REQUEUE)) is None


@pytest.mark.parametrize("xid", [63, 92, 142])
def test_warning_is_told_in_the_background_while_it_is_recent(xid: int) -> None:
    recent = replace(IN_BACKGROUND, age_seconds=RECENT_SECONDS - 1)
    old = replace(IN_BACKGROUND, age_seconds=RECENT_SECONDS + 1)
    assert judged(xid, recent).verdict is Verdict.WARN
    assert judge(case(xid), old) is None
    assert judge(case(xid), IN_PROLOG) is None


def test_warning_of_the_job_is_told_in_its_epilog_however_old() -> None:
    judgement = judged(63, replace(OF_JOB, age_seconds=RECENT_SECONDS * 100))
    assert (judgement.verdict, judgement.of_job) == (Verdict.WARN, False)


@pytest.mark.parametrize("around", [IN_PROLOG, IN_BACKGROUND])
def test_fault_of_the_hardware_does_not_fade(around: Circumstances) -> None:
    assert judged(79, replace(around, age_seconds=10 * 86_400.0)).verdict is Verdict.REBOOT


def test_detail_begins_with_the_number_and_says_what_and_where() -> None:
    judgement = judge(case(79, count=29), IN_PROLOG)
    assert judgement is not None
    assert judgement.detail == "79 at 0000:9b:00: the GPU fell off the bus, 29 times"


def test_driver_is_asked_only_where_its_answer_matters() -> None:
    assert needs_driver(case(48), None)
    assert needs_driver(case(94), None)
    assert needs_driver(case(154), None)
    assert not needs_driver(case(31), None)
    assert not needs_driver(case(63), None)
    assert not needs_driver(case(48), Verdict.MANUAL)
