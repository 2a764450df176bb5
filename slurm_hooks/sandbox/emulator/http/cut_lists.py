"""Lists that lack something, as a fault asks for: with a warning, or without a word."""

from __future__ import annotations

from slurm_hooks.sandbox.emulator.faults import FaultKind
from slurm_hooks.sandbox.emulator.records import Json


def cut_list(body: Json, kind: FaultKind | None) -> Json:
    """The answer without the last half of its items and without its further pages.

    A partial answer says so in a warning; a truncated one looks like the whole list.
    """
    if kind is None:
        return body
    cut = {key: value for key, value in body.items() if key != "nextPageToken"}
    if isinstance(body.get("items"), list):
        cut["items"] = _first_half(body["items"])
    elif isinstance(body.get("items"), dict):
        cut["items"] = {scope: _cut_scope(listed) for scope, listed in body["items"].items()}
    if kind is FaultKind.PARTIAL:
        cut["warning"] = {"code": "PARTIAL_SUCCESS", "message": "Not all results are here."}
    return cut


def _cut_scope(listed: Json) -> Json:
    return {
        member: _first_half(value) if isinstance(value, list) else value
        for member, value in listed.items()
    }


def _first_half(items: list[Json]) -> list[Json]:
    return items[: len(items) // 2]
