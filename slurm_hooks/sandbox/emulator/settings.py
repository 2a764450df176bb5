"""How long things take and which of two documented behaviours is shown, all changeable at run time.

Every duration is in emulated seconds. The defaults are shorter than the service's (a group insert
takes 14-23 s there) and of the same order among each other; FAST is for tests.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

_Settings = TypeVar("_Settings", "Latency", "Behaviour")


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds that each step takes."""

    operation_seconds: float = 1.0
    group_insert_seconds: float = 5.0
    request_accept_seconds: float = 2.0
    capacity_check_seconds: float = 5.0
    provisioning_seconds: float = 2.0
    staging_seconds: float = 8.0
    stopping_seconds: float = 5.0
    group_delete_seconds: float = 15.0
    read_seconds: float = 0.02
    host_report_seconds: float = 60.0


FAST = Latency(
    operation_seconds=0.1,
    group_insert_seconds=0.3,
    request_accept_seconds=0.1,
    capacity_check_seconds=0.2,
    provisioning_seconds=0.1,
    staging_seconds=0.2,
    stopping_seconds=0.2,
    group_delete_seconds=0.3,
    read_seconds=0.0,
    host_report_seconds=0.5,
)


class LateCancel(enum.StrEnum):
    """How the answer to a cancel that comes too late looks; the service shows both."""

    HTTP = "http"
    OPERATION = "operation"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Choices and limits. `calls_per_minute` is per group of methods, 0 means no limit."""

    late_cancel: LateCancel = LateCancel.HTTP
    calls_per_minute: int = 1500
    wait_seconds: float = 120.0
    list_lag_seconds: float = 0.0
    shutdown_window_seconds: float = 5.0
    expiry_delay_seconds: float = 10.0
    request_lifetime_seconds: float = 7 * 86400.0
    final_request_retention_seconds: float = 14 * 86400.0
    operation_retention_seconds: float = 14 * 86400.0
    operation_errors_without_http_status: bool = False
    keeps_lost_members: bool = False


def camel_case(name: str) -> str:
    """`operation_seconds` as JSON spells it: `operationSeconds`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def to_json(settings: Latency | Behaviour) -> dict[str, Any]:
    """The settings as the control surface shows them."""
    return {camel_case(field.name): getattr(settings, field.name) for field in fields(settings)}


def changed(settings: _Settings, body: dict[str, Any]) -> _Settings:
    """The settings with the given members replaced. Raises ValueError naming the bad member."""
    known = {camel_case(field.name): field.name for field in fields(settings)}
    changes: dict[str, Any] = {}
    for key, value in body.items():
        if key not in known:
            raise ValueError(f"unknown setting {key!r}; known: {', '.join(sorted(known))}")
        changes[known[key]] = _converted(key, getattr(settings, known[key]), value)
    return replace(settings, **changes)


def _converted(key: str, old: Any, value: Any) -> Any:
    if isinstance(old, LateCancel):
        return LateCancel(value)
    if isinstance(old, bool):
        if isinstance(value, bool):
            return value
        raise ValueError(f"{key} must be true or false")
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ValueError(f"{key} must be a number of at least 0")
    return type(old)(value)
