"""What the v1 API's messages may hold: JSON bodies checked against the official client's types.

The service refuses a body with a field that it does not know; so must whatever stands in for it.
Field names and types are read from the protobuf descriptors of google-cloud-compute, so they
are those of the installed client's API version. Where it is not sure this is stricter than the
service, never kinder. Importing the client costs a second, so it is done at the first check.

Most enums of the API are plain string fields: their words stand in a nested enum named after the
field, and a field without such an enum may hold any string.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

INTEGER_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}


class ProblemKind(enum.StrEnum):
    """What is wrong with a part of a body."""

    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    WRONG_TYPE = "WRONG_TYPE"
    UNKNOWN_WORD = "UNKNOWN_WORD"


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a body that the message does not allow.

    `path` is like `versions[0].instanceTemplate`, empty for the body itself; `expected` says
    what may stand there (`object`, `array`, `string`, `int64`, …, or the words of an enum).
    """

    path: str
    kind: ProblemKind
    expected: str = ""


def problems(message_name: str, body: object) -> list[Problem]:
    """Everything in a JSON body that the v1 message of this name does not allow.

    `message_name` is the client's class, such as `InstanceGroupManager`. A null counts as an
    absent field. Raises ValueError when there is no such message.
    """
    return list(_check_message(_descriptor(message_name), body, ""))


def unknown_fields(message_name: str, body: object) -> list[str]:
    """The paths of the fields in a body that the message does not have. Raises as `problems`."""
    found = problems(message_name, body)
    return [problem.path for problem in found if problem.kind is ProblemKind.UNKNOWN_FIELD]


def wrong_values(message_name: str, body: object) -> list[Problem]:
    """The fields of a body with a wrong type or an unknown word. Raises as `problems`."""
    found = problems(message_name, body)
    return [problem for problem in found if problem.kind is not ProblemKind.UNKNOWN_FIELD]


@functools.cache
def _descriptor(message_name: str) -> Any:
    from google.cloud import compute_v1

    message: Any = getattr(compute_v1, message_name, None)
    if not hasattr(message, "pb"):
        raise ValueError(f"the v1 API has no message {message_name}")
    return message.pb().DESCRIPTOR


def _check_message(descriptor: Any, body: object, path: str) -> Iterator[Problem]:
    if not isinstance(body, dict):
        yield Problem(path, ProblemKind.WRONG_TYPE, "object")
        return
    fields = _fields_by_json_name(descriptor)
    for name, value in body.items():
        field_path = f"{path}.{name}" if path else str(name)
        if name not in fields:
            yield Problem(field_path, ProblemKind.UNKNOWN_FIELD)
        elif value is not None:
            yield from _check_field(fields[name], value, field_path)


@functools.cache
def _fields_by_json_name(descriptor: Any) -> dict[str, Any]:
    return {field.json_name: field for field in descriptor.fields}


def _check_field(field: Any, value: object, path: str) -> Iterator[Problem]:
    if _is_map(field):
        yield from _check_map(field, value, path)
    elif field.is_repeated:
        yield from _check_array(field, value, path)
    else:
        yield from _check_value(field, value, path)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _check_map(field: Any, value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem(path, ProblemKind.WRONG_TYPE, "object")
        return
    value_field = field.message_type.fields_by_name["value"]
    for key, item in value.items():
        yield from _check_value(value_field, item, f"{path}.{key}")


def _check_array(field: Any, value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield Problem(path, ProblemKind.WRONG_TYPE, "array")
        return
    for index, item in enumerate(value):
        yield from _check_value(field, item, f"{path}[{index}]")


def _check_value(field: Any, value: object, path: str) -> Iterator[Problem]:
    if field.message_type is not None:
        yield from _check_message(field.message_type, value, path)
        return
    expected = _scalar_name(field)
    if not _has_type(expected, value):
        yield Problem(path, ProblemKind.WRONG_TYPE, expected)
        return
    words = _words_of(field)
    if words and value not in words:
        yield Problem(path, ProblemKind.UNKNOWN_WORD, ", ".join(sorted(words)))


def _scalar_name(field: Any) -> str:
    names = {
        field.TYPE_BOOL: "boolean",
        field.TYPE_DOUBLE: "number",
        field.TYPE_ENUM: "string",
        field.TYPE_FLOAT: "number",
        field.TYPE_INT32: "int32",
        field.TYPE_INT64: "int64",
        field.TYPE_STRING: "string",
        field.TYPE_UINT32: "uint32",
        field.TYPE_UINT64: "uint64",
    }
    return names[field.type]


def _has_type(expected: str, value: object) -> bool:
    if expected in INTEGER_RANGES:
        return _is_integer(expected, value)
    if expected == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, bool if expected == "boolean" else str)


def _is_integer(expected: str, value: object) -> bool:
    """Only 64-bit integers may come as strings; both kinds may come as numbers."""
    if isinstance(value, str) and expected.endswith("64"):
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(2**64)):
            return False
        value = int(value)
    lowest, highest = INTEGER_RANGES[expected]
    return type(value) is int and lowest <= value <= highest


@functools.cache
def _words_of(field: Any) -> frozenset[str]:
    """The words that an enum field may hold; empty when any string is allowed."""
    words = field.enum_type
    if words is None and field.type == field.TYPE_STRING:
        enum_name = "".join(part.capitalize() for part in field.name.split("_"))
        words = field.containing_type.enum_types_by_name.get(enum_name)
    if words is None:
        return frozenset()
    return frozenset(v.name for v in words.values if not v.name.startswith("UNDEFINED_"))
