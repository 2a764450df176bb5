"""Field names before types: one spelling, no strangers, no placeholders left in.

Walks the file along the model, so that only places that may hold something are entered (whatever
an unknown field contains is skipped with it). Returns the tree in snake_case and every mistake.
"""

from __future__ import annotations

import difflib
import re
import typing
from collections import Counter
from dataclasses import dataclass, field

from slurm_hooks.cluster.document import Mapping
from slurm_hooks.cluster.errors import FieldError
from slurm_hooks.cluster.fields import shown
from slurm_hooks.cluster.spec import Spec

_ANGLED = re.compile(r"<[^<>]+>|\$?\{[^{}]+\}")
_UPPER_CASE = re.compile(r"[A-Z][A-Z0-9]*([_-][A-Z0-9]+)*")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,60}")


@dataclass(slots=True)
class Spelled:
    """The tree with snake_case names, without what could not be understood, and the mistakes."""

    tree: dict[str, object]
    errors: list[FieldError] = field(default_factory=list)


def spell(document: Mapping, model: type[Spec]) -> Spelled:
    """Bring a document's field names into the model's spelling."""
    errors: list[FieldError] = []
    return Spelled(_mapping(document, model, "", errors), errors)


def to_snake_case(name: str) -> str:
    """`nodePools` as `node_pools`; snake_case stays as it is."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() if name[:1].islower() else name


def join(path: str, key: str) -> str:
    """The path of a field inside another; a key that is no plain word is shown escaped."""
    part = key if _PLAIN_KEY.fullmatch(key) else shown(key)
    return f"{path}.{part}" if path else part


def _mapping(
    document: dict[str, object], model: type[Spec], path: str, errors: list[FieldError]
) -> dict[str, object]:
    tree: dict[str, object] = {}
    _report_repeated(document, path, errors)
    for key, value in document.items():
        name = to_snake_case(key)
        if name not in model.model_fields:
            errors.append(_unknown(join(path, key), name, model))
        elif value is not None and name not in tree:
            annotation = model.model_fields[name].annotation
            is_literal = name in model.literal
            tree[name] = _value(value, annotation, join(path, name), is_literal, errors)
    return tree


def _value(
    value: object, annotation: object, path: str, is_literal: bool, errors: list[FieldError]
) -> object:
    model = part_of(annotation)
    if isinstance(value, dict) and model is None:
        _report_repeated_keys(value, path, errors)
        return value
    if isinstance(value, dict) and model is not None:
        return _mapping(value, model, path, errors)
    if isinstance(value, list):
        return [
            item
            if isinstance(item, list)
            else _value(item, model or str, f"{path}[{index}]", is_literal, errors)
            for index, item in enumerate(value)
        ]
    if isinstance(value, str) and not is_literal and _is_placeholder(value):
        problem = f"{shown(value)} still holds a placeholder"
        errors.append(FieldError(path, problem, "replace it by the real value"))
    return value


def _report_repeated(document: dict[str, object], path: str, errors: list[FieldError]) -> None:
    twice = set(document.repeated) if isinstance(document, Mapping) else set()
    spellings = Counter(to_snake_case(key) for key in document)
    for name in sorted(twice | {name for name, count in spellings.items() if count > 1}):
        keys = [key for key in document if to_snake_case(key) == name or key == name]
        problem = f"given more than once ({', '.join(shown(key) for key in keys)})"
        errors.append(FieldError(join(path, to_snake_case(name)), problem, "keep one of them"))


def _report_repeated_keys(document: dict[str, object], path: str, errors: list[FieldError]) -> None:
    """For a mapping whose keys are the operator's own words, such as labels."""
    for key in document.repeated if isinstance(document, Mapping) else ():
        errors.append(FieldError(join(path, key), "given more than once", "keep one of them"))


def _unknown(path: str, name: str, model: type[Spec]) -> FieldError:
    if name in model.not_read:
        return FieldError(path, model.not_read[name], "remove it")
    known = list(model.model_fields)
    nearest = difflib.get_close_matches(name, known, n=1)
    remedy = f"did you mean {nearest[0]}?" if nearest else f"known here: {', '.join(known)}"
    return FieldError(path, "unknown field", remedy)


def _is_placeholder(text: str) -> bool:
    words = re.split(r"[/@.:]", text)
    return _ANGLED.search(text) is not None or any(
        len(word) > 2 and _UPPER_CASE.fullmatch(word) for word in words
    )


def part_of(annotation: object) -> type[Spec] | None:
    """The part of the file that an annotation such as `list[NodePoolSpec]` speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return annotation
    models = (part_of(argument) for argument in typing.get_args(annotation))
    return next((model for model in models if model is not None), None)
