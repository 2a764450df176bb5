"""Operations: from the service's message to ours, and the ids that make calls repeatable.

An operation has failed as soon as it carries an error, even while it says RUNNING: the service
has answered a stockout in that way. Both forms of an error count, `error.errors` and an HTTP
status of 400 or more. The service replays the old operation for a repeated request id, a dead
one, too: a new attempt needs a new text.
"""

from __future__ import annotations

import uuid
from typing import Any

from slurm_hooks.compute.model import ErrorDetail, Operation, Scope, ScopeKind
from slurm_hooks.compute.names import short_name, time_utc
from slurm_hooks.compute.translate import unreadable

SERVICES = {
    ScopeKind.ZONE: "ZoneOperationsClient",
    ScopeKind.REGION: "RegionOperationsClient",
    ScopeKind.GLOBAL: "GlobalOperationsClient",
}

_REQUEST_IDS = uuid.UUID("5ee80c7a-1c5e-5f0e-9a4c-0d4f2b7a61c3")
_FIRST_ERROR_STATUS = 400


def request_uuid(request_id: str) -> str:
    """The UUID that stands for a text, the same on every controller and after every restart."""
    return str(uuid.uuid5(_REQUEST_IDS, request_id))


def operation_from(message: Any, scope: Scope) -> Operation:
    """An operation from its protobuf message; `scope` is where the call went.

    Raises TRANSIENT for a message without a name: it could never be asked about again.
    """
    if not message.name:
        raise unreadable("an operation without name")
    status = message.http_error_status_code
    return Operation(
        name=message.name,
        scope=scope,
        operation_type=message.operation_type,
        target=short_name(message.target_link),
        done=_status_word(message) == "DONE",
        error=first_error(message.error.errors) or _error_of_status(message),
        http_status=status if status >= _FIRST_ERROR_STATUS else None,
        insert_time_utc=time_utc(message.insert_time),
    )


def first_error(errors: Any) -> ErrorDetail | None:
    """The first of a list of error entries; None when it is empty."""
    return next((ErrorDetail(error.code, error.message) for error in errors), None)


def _error_of_status(message: Any) -> ErrorDetail | None:
    if message.http_error_status_code < _FIRST_ERROR_STATUS:
        return None
    return ErrorDetail(str(message.http_error_status_code), message.http_error_message)


def _status_word(message: Any) -> str:
    """The name of the enum value; empty for one that this version does not know."""
    words = message.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number
    return words[message.status].name if message.status in words else ""
