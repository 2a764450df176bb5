"""From the service's codes to what can be done about them: data tables, and their fallbacks.

Codes decide, never message text. A code that stands in no table falls back by words that the
service builds its codes from, then by HTTP status; without any status it counts as TRANSIENT, so
that a new word of the service is tried again and never read as success.

Sources: recorded answers of the service ("recorded"), the published GKE autoscaler ("GKE"),
the open-source cluster autoscaler ("CA"), the service's documentation ("docs"); "unverified"
entries are plausible and have no source. Collected November 2026.
"""

from __future__ import annotations

from dataclasses import dataclass

from slurm_hooks.compute.errors import ErrorKind
from slurm_hooks.compute.model import ErrorDetail, Operation


@dataclass(frozen=True, slots=True)
class Entry:
    """One code of the service: what it means for us, and who says that the code exists."""

    code: str
    kind: ErrorKind
    source: str


HTTP_REASONS = (
    Entry("accessNotConfigured", ErrorKind.PERMISSION, "docs"),
    Entry("alreadyExists", ErrorKind.CONFLICT, "docs"),
    Entry("authError", ErrorKind.PERMISSION, "docs"),
    Entry("backendError", ErrorKind.TRANSIENT, "docs"),
    Entry("badRequest", ErrorKind.CONFIG, "unverified"),
    Entry("conditionNotMet", ErrorKind.CONFLICT, "recorded"),
    Entry("conflict", ErrorKind.CONFLICT, "unverified"),
    Entry("forbidden", ErrorKind.PERMISSION, "recorded"),
    Entry("internalError", ErrorKind.TRANSIENT, "docs"),
    Entry("invalid", ErrorKind.CONFIG, "recorded"),
    Entry("invalidParameter", ErrorKind.CONFIG, "unverified"),
    Entry("notFound", ErrorKind.GONE, "recorded"),
    Entry("operationInProgress", ErrorKind.CONFLICT, "unverified"),
    Entry("quotaExceeded", ErrorKind.QUOTA, "docs"),
    Entry("rateLimitExceeded", ErrorKind.RATE, "recorded"),
    Entry("required", ErrorKind.CONFIG, "recorded"),
    Entry("resourceInUseByAnotherResource", ErrorKind.CONFLICT, "recorded"),
    Entry("resourceNotReady", ErrorKind.TRANSIENT, "recorded"),
)
"""`errors[].reason` of an HTTP error answer. 403 is refused, quota or rate by its reason alone."""

CODES = (
    Entry("ALREADY_EXISTS", ErrorKind.CONFLICT, "CA"),
    Entry("INSUFFICIENT_CAPACITY", ErrorKind.STOCKOUT, "docs"),
    Entry("GCE_STOCKOUT", ErrorKind.STOCKOUT, "docs"),
    Entry("INTERNAL_ERROR", ErrorKind.TRANSIENT, "unverified"),
    Entry("INVALID_RESERVATION", ErrorKind.CONFIG, "GKE"),
    Entry("INVALID_USAGE", ErrorKind.CONFIG, "unverified"),
    Entry("IP_SPACE_EXHAUSTED", ErrorKind.QUOTA, "GKE"),
    Entry("IP_SPACE_EXHAUSTED_WITH_DETAILS", ErrorKind.QUOTA, "docs"),
    Entry("LIMIT_EXCEEDED", ErrorKind.STOCKOUT, "GKE"),
    Entry("PERMISSIONS_ERROR", ErrorKind.PERMISSION, "GKE"),
    Entry("QUOTA_EXCEEDED", ErrorKind.QUOTA, "recorded"),
    Entry("REGION_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", ErrorKind.STOCKOUT, "docs"),
    Entry("RESERVATION_CAPACITY_EXCEEDED", ErrorKind.STOCKOUT, "GKE"),
    Entry("RESERVATION_INCOMPATIBLE", ErrorKind.CONFIG, "GKE"),
    Entry("RESERVATION_NOT_FOUND", ErrorKind.CONFIG, "GKE"),
    Entry("RESERVATION_NOT_READY", ErrorKind.TRANSIENT, "GKE"),
    Entry("RESOURCE_ALREADY_EXISTS", ErrorKind.CONFLICT, "docs"),
    Entry("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", ErrorKind.CONFLICT, "recorded"),
    Entry("RESOURCE_NOT_FOUND", ErrorKind.GONE, "recorded"),
    Entry("RESOURCE_NOT_READY", ErrorKind.TRANSIENT, "recorded"),
    Entry("RESOURCE_OPERATION_RATE_EXCEEDED", ErrorKind.RATE, "docs"),
    Entry("RESOURCE_POOL_EXHAUSTED", ErrorKind.QUOTA, "GKE"),
    Entry("SERVICE_ACCOUNT_ACCESS_DENIED", ErrorKind.PERMISSION, "unverified"),
    Entry("STOCKOUT", ErrorKind.STOCKOUT, "docs"),
    Entry("UNSUPPORTED_OPERATION", ErrorKind.CONFIG, "recorded"),
    Entry("VM_MIN_COUNT_NOT_REACHED", ErrorKind.STOCKOUT, "docs"),
    Entry("ZONE_RESOURCE_POOL_EXHAUSTED", ErrorKind.STOCKOUT, "recorded"),
    Entry("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", ErrorKind.STOCKOUT, "recorded"),
    Entry("403", ErrorKind.CONFIG, "GKE"),
    Entry("500", ErrorKind.TRANSIENT, "GKE"),
    Entry("503", ErrorKind.TRANSIENT, "GKE"),
)
"""`error.errors[].code` of operations, resize requests and managed instances.

LIMIT_EXCEEDED is mostly the end of a resize request's time to wait for capacity. The plain
RESOURCE_POOL_EXHAUSTED is the pool of external addresses, and IP_SPACE_EXHAUSTED a full
subnetwork: a limit of the project, not of the machines. 403 as a code is an unknown zone.
"""

CODE_WORDS = (
    Entry("IP_SPACE_EXHAUSTED", ErrorKind.QUOTA, "GKE"),
    Entry("RESOURCE_POOL_EXHAUSTED", ErrorKind.STOCKOUT, "GKE"),
    Entry("QUOTA", ErrorKind.QUOTA, "GKE"),
    Entry("STOCKOUT", ErrorKind.STOCKOUT, "docs"),
)
"""Parts of codes, tried in this order for a code that stands in no table."""

HTTP_STATUSES = {
    401: ErrorKind.PERMISSION,
    403: ErrorKind.PERMISSION,
    408: ErrorKind.TRANSIENT,
    409: ErrorKind.CONFLICT,
    412: ErrorKind.CONFLICT,
    429: ErrorKind.RATE,
}
"""What a status means beside an unknown code. 404 is not here: a page that does not exist says
nothing about a resource, only `notFound` does."""

CONDITION_NOT_MET = "CONDITION_NOT_MET"

_KIND_BY_REASON = {entry.code: entry.kind for entry in HTTP_REASONS}
_KIND_BY_CODE = {entry.code: entry.kind for entry in CODES}


def classify_http(http_status: int, reason: str) -> ErrorKind:
    """What an HTTP error answer means. `reason` is `errors[0].reason`, empty when it has none."""
    if http_status == 401:
        return ErrorKind.PERMISSION
    return _KIND_BY_REASON.get(reason) or _of_status(http_status)


def classify_detail(detail: ErrorDetail, http_status: int | None = None) -> ErrorKind:
    """What one error entry of a resize request, a managed instance or an operation means.

    `http_status` is an operation's `httpErrorStatusCode`, None for the others. With a status
    CONDITION_NOT_MET is a call that came at the wrong time; without, it is an organisation
    policy that forbids the VM. For operations `classify_operation` knows the difference.
    """
    if detail.code == CONDITION_NOT_MET:
        return ErrorKind.CONFIG if http_status is None else ErrorKind.CONFLICT
    kind = _KIND_BY_CODE.get(detail.code) or _of_words(detail.code)
    return kind or _of_status(http_status)


def classify_operation(operation: Operation) -> ErrorKind | None:
    """What a failed operation means; None when it has not failed."""
    if operation.error is None:
        return None
    if operation.error.code == CONDITION_NOT_MET:
        return ErrorKind.CONFLICT
    return classify_detail(operation.error, operation.http_status)


def _of_words(code: str) -> ErrorKind | None:
    return next((entry.kind for entry in CODE_WORDS if entry.code in code), None)


def _of_status(http_status: int | None) -> ErrorKind:
    if http_status is None or http_status >= 500:
        return ErrorKind.TRANSIENT
    return HTTP_STATUSES.get(http_status, ErrorKind.CONFIG)
