"""Checks request bodies against the API's messages: unknown members, wrong types, wrong words.

What a message may hold is known by slurm_hooks.compute.wire. Members that only answers carry are
accepted and dropped, as clients send back what they have read.
"""

from __future__ import annotations

from typing import Any

from slurm_hooks.compute import wire
from slurm_hooks.compute.wire import Problem, ProblemKind
from slurm_hooks.sandbox.emulator.problems import Findings, invalid_field
from slurm_hooks.sandbox.emulator.records import Json

_OUTPUT_ONLY = frozenset(
    {
        "creationTimestamp",
        "currentActions",
        "id",
        "instanceGroup",
        "kind",
        "region",
        "satisfiesPzi",
        "satisfiesPzs",
        "selfLink",
        "selfLinkWithId",
        "state",
        "status",
        "zone",
    }
)
"""Members at the top of a resource that the service sets and ignores when they are sent."""
_LONG_INTEGERS = frozenset({"diskSizeGb", "provisionedIops", "provisionedThroughput", "seconds"})
"""64-bit integers: JSON numbers on the way in, strings on the way out."""


def checked(message: str, body: Any) -> Json:
    """The body without output-only members. Raises ApiError 400 naming every bad member."""
    if not isinstance(body, dict):
        raise invalid_field("resource", "", "A JSON object is required.")
    findings = Findings()
    for problem in wire.problems(message, body):
        findings.add(f"resource.{problem.path}", _at(body, problem.path), _why(problem))
    findings.check()
    kept = {name: value for name, value in body.items() if name not in _OUTPUT_ONLY}
    cleaned: Json = _clean(kept)
    return cleaned


def warm_up() -> None:
    """Load the messages, which takes a second, before the first call needs them."""
    wire.problems("InstanceTemplate", {})


def _why(problem: Problem) -> str:
    match problem.kind:
        case ProblemKind.UNKNOWN_FIELD:
            return "Unknown field."
        case ProblemKind.WRONG_TYPE:
            return f"The type {problem.expected} is required."
        case ProblemKind.UNKNOWN_WORD:
            return f"Must be one of {problem.expected}."


def _at(body: Any, path: str) -> Any:
    """The bad value for the message when it is at the top; else nothing, as the path says it."""
    value = body.get(path, "")
    return value if isinstance(value, str | int | float) else ""


def _clean(value: Any, name: str = "") -> Any:
    """The value without nulls and with long integers as strings."""
    if isinstance(value, dict):
        return {key: _clean(one, key) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if name in _LONG_INTEGERS and isinstance(value, int):
        return str(value)
    return value
