"""Every code of the catalogues, and the safe way out for those that stand in none."""

from __future__ import annotations

import pytest

from slurm_hooks.compute.classify import (
    CODE_WORDS,
    CODES,
    HTTP_REASONS,
    HTTP_STATUSES,
    classify_detail,
    classify_http,
    classify_operation,
)
from slurm_hooks.compute.errors import ErrorKind
from slurm_hooks.compute.model import ErrorDetail, Operation, Scope, ScopeKind

K = ErrorKind

EXPECTED_REASONS = [
    (403, "accessNotConfigured", K.PERMISSION),
    (409, "alreadyExists", K.CONFLICT),
    (401, "authError", K.PERMISSION),
    (503, "backendError", K.TRANSIENT),
    (400, "badRequest", K.CONFIG),
    (412, "conditionNotMet", K.CONFLICT),
    (409, "conflict", K.CONFLICT),
    (403, "forbidden", K.PERMISSION),
    (500, "internalError", K.TRANSIENT),
    (400, "invalid", K.CONFIG),
    (400, "invalidParameter", K.CONFIG),
    (404, "notFound", K.GONE),
    (400, "operationInProgress", K.CONFLICT),
    (403, "quotaExceeded", K.QUOTA),
    (403, "rateLimitExceeded", K.RATE),
    (413, "rateLimitExceeded", K.RATE),
    (429, "rateLimitExceeded", K.RATE),
    (400, "required", K.CONFIG),
    (401, "required", K.PERMISSION),
    (400, "resourceInUseByAnotherResource", K.CONFLICT),
    (409, "resourceInUseByAnotherResource", K.CONFLICT),
    (400, "resourceNotReady", K.TRANSIENT),
]

EXPECTED_CODES = [
    ("ALREADY_EXISTS", K.CONFLICT),
    ("INSUFFICIENT_CAPACITY", K.STOCKOUT),
    ("GCE_STOCKOUT", K.STOCKOUT),
    ("INTERNAL_ERROR", K.TRANSIENT),
    ("INVALID_RESERVATION", K.CONFIG),
    ("INVALID_USAGE", K.CONFIG),
    ("IP_SPACE_EXHAUSTED", K.QUOTA),
    ("IP_SPACE_EXHAUSTED_WITH_DETAILS", K.QUOTA),
    ("LIMIT_EXCEEDED", K.STOCKOUT),
    ("PERMISSIONS_ERROR", K.PERMISSION),
    ("QUOTA_EXCEEDED", K.QUOTA),
    ("REGION_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", K.STOCKOUT),
    ("RESERVATION_CAPACITY_EXCEEDED", K.STOCKOUT),
    ("RESERVATION_INCOMPATIBLE", K.CONFIG),
    ("RESERVATION_NOT_FOUND", K.CONFIG),
    ("RESERVATION_NOT_READY", K.TRANSIENT),
    ("RESOURCE_ALREADY_EXISTS", K.CONFLICT),
    ("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", K.CONFLICT),
    ("RESOURCE_NOT_FOUND", K.GONE),
    ("RESOURCE_NOT_READY", K.TRANSIENT),
    ("RESOURCE_OPERATION_RATE_EXCEEDED", K.RATE),
    ("RESOURCE_POOL_EXHAUSTED", K.QUOTA),
    ("SERVICE_ACCOUNT_ACCESS_DENIED", K.PERMISSION),
    ("STOCKOUT", K.STOCKOUT),
    ("UNSUPPORTED_OPERATION", K.CONFIG),
    ("VM_MIN_COUNT_NOT_REACHED", K.STOCKOUT),
    ("ZONE_RESOURCE_POOL_EXHAUSTED", K.STOCKOUT),
    ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", K.STOCKOUT),
    ("403", K.CONFIG),
    ("500", K.TRANSIENT),
    ("503", K.TRANSIENT),
]


@pytest.mark.parametrize(("status", "reason", "kind"), EXPECTED_REASONS)
def test_http_reasons_decide(status: int, reason: str, kind: ErrorKind) -> None:
    assert classify_http(status, reason) is kind


@pytest.mark.parametrize(("code", "kind"), EXPECTED_CODES)
@pytest.mark.parametrize("status", [None, 400, 503])
def test_codes_decide_whatever_the_status(code: str, kind: ErrorKind, status: int | None) -> None:
    assert classify_detail(ErrorDetail(code, "quota stockout text"), status) is kind


def test_every_entry_is_expected_once_and_has_a_source() -> None:
    assert {reason for _, reason, _ in EXPECTED_REASONS} == {e.code for e in HTTP_REASONS}
    assert [code for code, _ in EXPECTED_CODES] == [e.code for e in CODES]
    for table in (HTTP_REASONS, CODES, CODE_WORDS):
        assert len({entry.code for entry in table}) == len(table)
        assert {e.source for e in table} <= {"recorded", "GKE", "CA", "docs", "unverified"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, K.CONFIG),
        (401, K.PERMISSION),
        (403, K.PERMISSION),
        (404, K.CONFIG),
        (408, K.TRANSIENT),
        (409, K.CONFLICT),
        (412, K.CONFLICT),
        (413, K.CONFIG),
        (418, K.CONFIG),
        (429, K.RATE),
        (500, K.TRANSIENT),
        (502, K.TRANSIENT),
        (503, K.TRANSIENT),
        (504, K.TRANSIENT),
        (599, K.TRANSIENT),
    ],
)
@pytest.mark.parametrize("code", ["", "somethingNew"])
def test_an_unknown_code_falls_back_to_the_status(status: int, kind: ErrorKind, code: str) -> None:
    assert classify_http(status, code) is kind
    assert classify_detail(ErrorDetail(code), status) is kind


def test_an_unknown_code_without_status_is_transient() -> None:
    assert classify_detail(ErrorDetail("SOMETHING_NEW")) is K.TRANSIENT
    assert classify_detail(ErrorDetail("")) is K.TRANSIENT


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("REGION_RESOURCE_POOL_EXHAUSTED", K.STOCKOUT),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_NEW", K.STOCKOUT),
        ("SUBNET_IP_SPACE_EXHAUSTED", K.QUOTA),
        ("GPU_QUOTA_GONE", K.QUOTA),
        ("ZONE_STOCKOUT", K.STOCKOUT),
    ],
)
def test_a_new_code_is_known_by_its_words(code: str, kind: ErrorKind) -> None:
    assert classify_detail(ErrorDetail(code), 400) is kind


def test_nothing_but_known_codes_reads_as_gone() -> None:
    assert K.GONE not in HTTP_STATUSES.values()
    assert K.GONE not in {entry.kind for entry in CODE_WORDS}


def test_a_policy_is_told_from_a_late_call() -> None:
    detail = ErrorDetail("CONDITION_NOT_MET")
    assert classify_detail(detail) is K.CONFIG
    assert classify_detail(detail, 412) is K.CONFLICT


def failed_operation(code: str, http_status: int | None) -> Operation:
    scope = Scope(ScopeKind.ZONE, "z")
    return Operation("o", scope, error=ErrorDetail(code), http_status=http_status)


@pytest.mark.parametrize("status", [None, 412])
def test_a_late_cancel_is_a_conflict_with_or_without_status(status: int | None) -> None:
    assert classify_operation(failed_operation("CONDITION_NOT_MET", status)) is K.CONFLICT


def test_operations_are_judged_by_their_error() -> None:
    assert classify_operation(failed_operation("QUOTA_EXCEEDED", 403)) is K.QUOTA
    assert classify_operation(failed_operation("NEW", 400)) is K.CONFIG
    assert classify_operation(Operation("o", Scope(ScopeKind.ZONE, "z"), done=True)) is None
