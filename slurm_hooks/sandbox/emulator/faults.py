"""Faults that tests ask for: the next calls that match fail in the given way."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Any

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "*")


class FaultKind(enum.StrEnum):
    """The ways to fail."""

    HTTP = "http"
    DROP = "drop"
    GARBAGE = "garbage"
    OPERATION = "operation"
    STUCK = "stuck"
    PARTIAL = "partial"
    TRUNCATED = "truncated"
    DELAY = "delay"


_METHODS_OF = {
    FaultKind.OPERATION: ("POST", "PUT", "PATCH", "DELETE"),
    FaultKind.STUCK: ("POST", "PUT", "PATCH", "DELETE"),
    FaultKind.PARTIAL: ("GET",),
    FaultKind.TRUNCATED: ("GET",),
}
"""What hits only calls that begin an operation, or only reads."""


@dataclass(slots=True)
class Fault:
    """A fault and how often it has hit. `path` is searched for in the call's path."""

    method: str
    path: re.Pattern[str]
    kind: FaultKind = FaultKind.HTTP
    status: int = 503
    reason: str = "backendError"
    message: str = ""
    code: str = ""
    count: int = 1
    delay_seconds: float = 0.0
    hits: int = 0

    def to_json(self) -> dict[str, Any]:
        """The fault as the control surface shows it."""
        return {
            "method": self.method,
            "path": self.path.pattern,
            "kind": str(self.kind),
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "code": self.code,
            "count": self.count,
            "delaySeconds": self.delay_seconds,
            "hits": self.hits,
        }


def parse(body: dict[str, Any]) -> Fault:
    """Read a fault from the control surface. Raises ValueError saying what is wrong."""
    known = {"method", "path", "kind", "status", "reason", "message", "code", "count"}
    unknown = set(body) - known - {"delaySeconds"}
    if unknown:
        raise ValueError(f"unknown members: {', '.join(sorted(unknown))}")
    method = str(body.get("method", "*")).upper()
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}")
    try:
        pattern = re.compile(str(body.get("path", ".*")))
    except re.error as error:
        raise ValueError(f"path is not a regular expression: {error}") from None
    fault = Fault(
        method=method,
        path=pattern,
        kind=FaultKind(body.get("kind", "http")),
        status=int(body.get("status", 503)),
        reason=str(body.get("reason") or "backendError"),
        message=str(body.get("message", "")),
        code=str(body.get("code", "")),
        count=int(body.get("count", 1)),
        delay_seconds=float(body.get("delaySeconds", 0.0)),
    )
    if fault.kind is FaultKind.OPERATION and not fault.code:
        raise ValueError("a fault of kind operation needs a code")
    return fault


class FaultTable:
    """The faults in the order in which they were set; the first that matches hits."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def take(self, method: str, path: str) -> Fault | None:
        """The fault that this call meets, counted as a hit; None when there is none."""
        for fault in self.faults:
            matches = fault.method in ("*", method) and fault.path.search(path)
            if matches and fault.hits < fault.count:
                if method not in _METHODS_OF.get(fault.kind, METHODS):
                    continue
                fault.hits += 1
                return fault
        return None
