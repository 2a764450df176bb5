"""Refusals: errors answered at once, and failures that an accepted operation ends with.

The wording is our own; codes, reasons and statuses follow recorded answers. Clients must match
on codes, never on text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """One entry of an error answer."""

    message: str
    reason: str = "invalid"
    location: str = ""


class ApiError(Exception):
    """A call that is refused at once with an HTTP error."""

    def __init__(
        self,
        status: int,
        refusals: Sequence[Refusal],
        domain: str = "global",
        status_word: str = "",
    ) -> None:
        super().__init__(refusals[0].message)
        self.status = status
        self.refusals = tuple(refusals)
        self.domain = domain
        self.status_word = status_word

    def to_json(self) -> dict[str, Any]:
        """The body of the answer."""
        entries = []
        for refusal in self.refusals:
            entry = {
                "message": refusal.message,
                "domain": self.domain,
                "reason": refusal.reason,
            }
            if refusal.location:
                entry |= {"location": refusal.location, "locationType": "header"}
            entries.append(entry)
        error: dict[str, Any] = {
            "code": self.status,
            "message": self.refusals[0].message,
            "errors": entries,
        }
        if self.status_word:
            error["status"] = self.status_word
        return {"error": error}


def invalid(message: str) -> ApiError:
    """400 `invalid`."""
    return ApiError(400, [Refusal(message)])


def invalid_field(name: str, value: object, why: str) -> ApiError:
    """400 `invalid` for one field, in the recorded wording's form."""
    return invalid(field_message(name, value, why))


def field_message(name: str, value: object, why: str) -> str:
    """What is wrong with a field."""
    return f"Invalid value for field '{name}': '{value}'. {why}"


def required(name: str) -> ApiError:
    """400 `required`."""
    return ApiError(400, [Refusal(f"Required field '{name}' not specified", "required")])


def not_found(path: str) -> ApiError:
    """404 `notFound` for a resource path."""
    return ApiError(404, [Refusal(f"The resource '{path}' was not found", "notFound")])


def already_exists(path: str) -> ApiError:
    """409 `alreadyExists` for a resource path."""
    return ApiError(409, [Refusal(f"The resource '{path}' already exists", "alreadyExists")])


def not_ready(path: str) -> ApiError:
    """400 `resourceNotReady` for a resource path."""
    return ApiError(400, [Refusal(f"The resource '{path}' is not ready", "resourceNotReady")])


def condition_not_met(message: str) -> ApiError:
    """412 `conditionNotMet`."""
    return ApiError(412, [Refusal(message, "conditionNotMet", "If-Match")])


def quota_exceeded(metric: str, limit: float, region: str) -> ApiError:
    """403 `quotaExceeded`."""
    message = quota_message(metric, limit, region)
    return ApiError(403, [Refusal(message, "quotaExceeded")], "usageLimits")


def quota_message(metric: str, limit: float, region: str) -> str:
    """The text of an exceeded quota; the limit is a decimal there."""
    return f"Quota '{metric}' exceeded.  Limit: {float(limit)} in region {region}."


def unreachable(zone: str) -> ApiError:
    """503 `backendError` for a zone that does not answer."""
    return ApiError(503, [Refusal(f"The zone '{zone}' is unreachable.", "backendError")])


def rate_limit_exceeded(group: str, project_number: int) -> ApiError:
    """403 `rateLimitExceeded`, which the API's front end answers with a status word."""
    message = (
        f"Quota exceeded for quota group '{group}' and limit 'Queries per minute' of service "
        f"'compute.googleapis.com' for consumer 'project_number:{project_number}'."
    )
    refusal = Refusal(message, "rateLimitExceeded")
    return ApiError(403, [refusal], "usageLimits", "PERMISSION_DENIED")


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One error of an operation, a resize request or a member. `details` are JSON objects."""

    code: str
    message: str = ""
    details: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The entry as the API shows it."""
        body: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            body["errorDetails"] = list(self.details)
        return body


@dataclass(frozen=True, slots=True)
class OperationFailure:
    """Why an accepted operation failed. `http_status` 0 leaves the HTTP members out."""

    entry: ErrorEntry
    http_status: int = 400

    @property
    def http_message(self) -> str:
        """The status's phrase in capitals."""
        return HTTPStatus(self.http_status).phrase.upper() if self.http_status else ""


HTTP_STATUS_BY_CODE = {
    "ALREADY_EXISTS": 409,
    "RESOURCE_ALREADY_EXISTS": 409,
    "RESOURCE_NOT_FOUND": 404,
    "CONDITION_NOT_MET": 412,
    "QUOTA_EXCEEDED": 403,
    "RESOURCE_OPERATION_RATE_EXCEEDED": 403,
    "PERMISSIONS_ERROR": 403,
    "ZONE_RESOURCE_POOL_EXHAUSTED": 503,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": 503,
    "INTERNAL_ERROR": 500,
}
"""The HTTP status that a failed operation carries for a code; 400 for all others."""


def failure(code: str, message: str, *details: dict[str, Any]) -> OperationFailure:
    """A failure with the HTTP status that belongs to its code."""
    return OperationFailure(ErrorEntry(code, message, details), HTTP_STATUS_BY_CODE.get(code, 400))


def exists_already(path: str) -> OperationFailure:
    """The failure of an operation whose resource was made by another one meanwhile."""
    return failure("ALREADY_EXISTS", f"The resource '{path}' already exists")


@dataclass(slots=True)
class Findings:
    """Collects everything that is wrong with a body, so that one answer names it all."""

    refusals: list[Refusal] = field(default_factory=list)

    def add(self, name: str, value: object, why: str) -> None:
        """Note one bad field."""
        self.refusals.append(Refusal(field_message(name, value, why)))

    def check(self) -> None:
        """Raise ApiError 400 if anything was noted."""
        if self.refusals:
            raise ApiError(400, self.refusals)
