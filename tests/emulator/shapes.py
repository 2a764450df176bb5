"""The form of a JSON value: which members there are and what each looks like.

Two answers have the same form when a client cannot tell them apart but by their content.
"""

from __future__ import annotations

import re
from typing import Any

from tests.emulator.discovery import TIMESTAMP

OFFSET_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d")
OPERATION = re.compile(r"operation-\d+-[0-9a-f]{13}-[0-9a-f]{8}-[0-9a-f]{8}")
HOST = "https://www.googleapis.com/compute/v1/"
PLACES = re.compile(r"(projects|zones|regions|instanceGroupManagers)/[^/]+")
LAST_NAME = re.compile(r"/[^/]+$")


def form(value: object, path: str = "") -> dict[str, set[str]]:
    """The forms seen at each path; a list's items share one path, ending in `[]`."""
    found: dict[str, set[str]] = {path: {kind_of(value, path)}}
    if isinstance(value, dict):
        for name, item in value.items():
            merge(found, form(item, f"{path}.{name}"))
    if isinstance(value, list):
        for item in value:
            merge(found, form(item, f"{path}[]"))
    return found


def merge(into: dict[str, set[str]], more: dict[str, set[str]]) -> None:
    """Add what was seen."""
    for path, kinds in more.items():
        into.setdefault(path, set()).update(kinds)


def kind_of(value: object, path: str) -> str:
    """One word for what a value looks like."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return text_kind(value, path.rpartition(".")[2])
    return {dict: "object", list: "array", type(None): "null"}[type(value)]


def text_kind(text: str, member: str) -> str:
    """Kinds and links are told apart by their words, times and numbers by their form."""
    if member == "kind":
        return text
    if text.startswith("https://"):
        return link_form(text)
    if OPERATION.fullmatch(text):
        return "operation name"
    if OFFSET_TIME.fullmatch(text):
        return "time with milliseconds and offset"
    if TIMESTAMP.fullmatch(text):
        return "other time"
    return "digits" if text.isdigit() else "text"


def link_form(link: str) -> str:
    """A link with the names taken out: `https://…/projects/*/zones/*/instances/*`."""
    return LAST_NAME.sub("/*", PLACES.sub(r"\1/*", link))


def differences(expected: Any, found: Any, allowed: dict[str, str]) -> list[str]:
    """Members of the expected answer that are missing or look different in the found one.

    `allowed` maps paths that may differ, with all below them, to the reason.
    """
    there, here = form(expected), form(found)
    problems = []
    for path, kinds in there.items():
        if any(path == known or path.startswith((f"{known}.", f"{known}[")) for known in allowed):
            continue
        if path not in here:
            problems.append(f"{path}: missing, the service sends {sorted(kinds)}")
        elif not here[path] <= kinds:
            problems.append(f"{path}: {sorted(here[path])} instead of {sorted(kinds)}")
    return problems
