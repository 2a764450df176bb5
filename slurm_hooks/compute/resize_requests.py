"""Resize requests: what we ask for and what we read.

A state that we do not know becomes UNKNOWN and counts as active. The service takes a
`requestedRunDuration` of 600 s to 7 days; a shorter life stands in the template alone.
"""

from __future__ import annotations

from typing import Any

from slurm_hooks.compute.model import (
    ErrorDetail,
    GroupReference,
    RequestReference,
    RequestSpecification,
    RequestState,
    ResizeRequest,
    ScopeKind,
)
from slurm_hooks.compute.names import refuse, require_name, time_utc
from slurm_hooks.compute.operations import first_error

SERVICES = {
    ScopeKind.ZONE: "InstanceGroupManagerResizeRequestsClient",
    ScopeKind.REGION: "RegionInstanceGroupManagerResizeRequestsClient",
}

SHORTEST_RUN_SECONDS = 600
LONGEST_RUN_SECONDS = 604_800
MOST_INSTANCES = 1_000


def request_body(specification: RequestSpecification) -> dict[str, Any]:
    """The InstanceGroupManagerResizeRequest to insert.

    Raises CONFIG for what the service would refuse.
    """
    names = [require_name(name) for name in specification.instances]
    if not 0 < len(names) <= MOST_INSTANCES or len(set(names)) != len(names):
        raise refuse(f"a resize request needs 1 to {MOST_INSTANCES} different VM names")
    body: dict[str, Any] = {
        "name": require_name(specification.reference.name),
        "description": specification.description,
        "instances": [{"name": name} for name in names],
    }
    seconds = specification.run_duration_seconds
    if seconds is not None and seconds > LONGEST_RUN_SECONDS:
        raise refuse(f"a run duration of {seconds} s is over {LONGEST_RUN_SECONDS} s")
    if seconds is not None and seconds >= SHORTEST_RUN_SECONDS:
        body["requested_run_duration"] = {"seconds": seconds}
    return body


def resize_request_from(message: Any, group: GroupReference) -> ResizeRequest:
    """A resize request of a group from its protobuf message."""
    return ResizeRequest(
        reference=RequestReference(group, message.name),
        state=_state(message.state),
        instances=tuple(instance.name for instance in message.instances),
        description=message.description,
        creation_time_utc=time_utc(message.creation_timestamp),
        last_attempt_error=first_error(message.status.last_attempt.error.errors),
        error=_final_error(message),
    )


def _state(word: str) -> RequestState:
    return RequestState(word) if word in RequestState.__members__ else RequestState.UNKNOWN


def _final_error(message: Any) -> ErrorDetail | None:
    return first_error(message.status.error.errors)
