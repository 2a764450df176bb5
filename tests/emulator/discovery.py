"""The reduced discovery document as a judge of requests and answers of the v1 API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.shared_data import shared_file

PREFIX = "/compute/v1/"
INTEGERS = re.compile(r"-?[0-9]+")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
REGIONAL_TEMPLATES = re.compile("/regions/[^/]+/instanceTemplates")
NOT_REDUCED = {
    "InstanceAggregatedList": "instances",
}
"""Schemas that the reduced document lacks, with the member of their scoped lists."""


UNDOCUMENTED = {
    "selfLinkWithId": "recorded in operations, where the document does not have it",
}
"""Members that the service was seen to send without saying so."""


@dataclass(frozen=True)
class Method:
    """One method of the API; `request` and `response` are schema names, or None."""

    name: str
    request: str | None
    response: str | None
    query: frozenset[str]


class Discovery:
    """Finds methods by HTTP method and path, and lists what is wrong with bodies."""

    def __init__(self) -> None:
        text = shared_file("data/compute-recorded/compute-schemas.json").read_text()
        document = json.loads(text)
        self._schemas: dict[str, Any] = document["schemas"]
        self._methods = [
            (raw["httpMethod"], _pattern(raw["path"]), _method(name, raw))
            for name, raw in document["methods"].items()
        ]

    def method(self, http_method: str, path: str) -> Method | None:
        """The method that a call is; None when the document has none.

        It lacks those of regional templates, which are those of global ones in other places.
        """
        path = REGIONAL_TEMPLATES.sub("/global/instanceTemplates", path)
        for verb, pattern, method in self._methods:
            if verb == http_method and pattern.fullmatch(path):
                return method
        return None

    def wrong_in_answer(self, schema: str, body: object) -> list[str]:
        """What an answer holds that its schema does not allow."""
        if schema in NOT_REDUCED:
            return list(self._wrong_in_scopes(NOT_REDUCED[schema], body))
        return list(self._check({"$ref": schema}, body, ""))

    def wrong_in_request(self, method: Method, body: object) -> list[str]:
        """As for answers, and members that only the service sets or that are missing."""
        if method.request is None:
            return [] if body is None else ["a body where none belongs"]
        if method.request not in self._schemas:
            return []
        problems = list(self._check({"$ref": method.request}, body, ""))
        return problems + list(self._roles({"$ref": method.request}, body, "", method.name))

    def _wrong_in_scopes(self, member: str, body: object) -> Iterator[str]:
        assert isinstance(body, dict)
        for scope, scoped_list in body.get("items", {}).items():
            for item in scoped_list.get(member, []):
                yield from self._check({"$ref": "Instance"}, item, scope)

    def _check(self, schema: dict[str, Any], value: object, path: str) -> Iterator[str]:
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"]]
        kind = schema["type"]
        if kind == "object":
            yield from self._check_object(schema, value, path)
        elif kind == "array":
            yield from self._check_array(schema, value, path)
        elif not _is_scalar(schema, value):
            yield f"{path}: {value!r} is no {kind} {schema.get('format', '')}".strip()
        elif "enum" in schema and value not in schema["enum"]:
            yield f"{path}: {value!r} is none of the words"
        elif path.endswith("kind") and schema.get("default", value) != value:
            yield f"{path}: {value!r} is not {schema['default']!r}"

    def _check_object(self, schema: dict[str, Any], value: object, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is no object"
            return
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for name, item in value.items():
            inner = properties.get(name, others)
            if inner is None and name in UNDOCUMENTED:
                continue
            if inner is None:
                yield f"{path}.{name}: unknown"
            else:
                yield from self._check(inner, item, f"{path}.{name}")

    def _check_array(self, schema: dict[str, Any], value: object, path: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{path}: {value!r} is no array"
            return
        for item in value:
            yield from self._check(schema["items"], item, f"{path}[]")

    def _roles(
        self, schema: dict[str, Any], value: object, path: str, method: str
    ) -> Iterator[str]:
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"]]
        if isinstance(value, list):
            for item in value:
                yield from self._roles(schema["items"], item, f"{path}[]", method)
        if not isinstance(value, dict):
            return
        for name, inner in schema.get("properties", {}).items():
            if name in value and inner.get("readOnly"):
                yield f"{path}.{name}: only the service sets it"
            if name not in value and method in inner.get("requiredFor", ()):
                yield f"{path}.{name}: missing"
            if name in value:
                yield from self._roles(inner, value[name], f"{path}.{name}", method)


def _method(name: str, raw: dict[str, Any]) -> Method:
    return Method(name, raw["request"], raw["response"], frozenset(raw["query"]))


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(PREFIX + re.sub(r"\{[a-zA-Z]+\}", "[^/]+", template))


def _is_scalar(schema: dict[str, Any], value: object) -> bool:
    kind, form = schema["type"], schema.get("format")
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("integer", "number"):
        numbers = int if kind == "integer" else int | float
        return isinstance(value, numbers) and not isinstance(value, bool)
    if not isinstance(value, str):
        return False
    return form not in ("int64", "uint64") or INTEGERS.fullmatch(value) is not None
