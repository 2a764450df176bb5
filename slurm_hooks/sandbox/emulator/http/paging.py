"""Lists in pages. A page token names the last item's position, so it survives changes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from slurm_hooks.sandbox.emulator.http import filters
from slurm_hooks.sandbox.emulator.problems import invalid_field

MAX_RESULTS = 500
Item = TypeVar("Item")
Position = tuple[float | str, ...]


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The list parameters of a call."""

    keep: filters.Predicate
    max_results: int
    after: Position | None
    newest_first: bool


@dataclass(frozen=True, slots=True)
class Listable(Generic[Item]):
    """An item with what it is ordered by."""

    item: Item
    name: str
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page: the chosen items with their JSON, and the token of the next page or ""."""

    entries: list[tuple[Item, dict[str, Any]]]
    next_token: str


def read_query(query: Mapping[str, str]) -> PageQuery:
    """Read and check the list parameters. Raises ApiError 400."""
    text = query.get("maxResults", str(MAX_RESULTS))
    if not text.isascii() or not text.isdigit() or int(text) > MAX_RESULTS:
        raise invalid_field("maxResults", text, "Must be from 0 to 500.")
    order = query.get("orderBy", "name")
    if order not in ("", "name", "name asc", "creationTimestamp desc"):
        raise invalid_field("orderBy", order, "Only name and creationTimestamp desc are known.")
    return PageQuery(
        keep=filters.parse(query.get("filter", "")),
        max_results=int(text) or MAX_RESULTS,
        after=_decoded(query["pageToken"]) if query.get("pageToken") else None,
        newest_first=order == "creationTimestamp desc",
    )


def page_of(
    items: Iterable[Listable[Item]], query: PageQuery, shape: Callable[[Item], dict[str, Any]]
) -> Page[Item]:
    """The page that the query asks for."""
    placed = sorted(((_position(item, query), item) for item in items), key=lambda pair: pair[0])
    entries: list[tuple[Item, dict[str, Any]]] = []
    last: Position = ()
    for position, listable in placed:
        if query.after is not None and position <= query.after:
            continue
        shown = shape(listable.item)
        if not query.keep(shown):
            continue
        if len(entries) == query.max_results:
            return Page(entries, _encoded(last))
        entries.append((listable.item, shown))
        last = position
    return Page(entries, "")


def _position(item: Listable[Any], query: PageQuery) -> Position:
    return (-item.created if query.newest_first else 0.0, item.name)


def _encoded(position: Position) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def _decoded(token: str) -> Position:
    try:
        created, name = json.loads(base64.urlsafe_b64decode(token.encode()))
        return (float(created), str(name))
    except (binascii.Error, ValueError, TypeError):
        raise invalid_field("pageToken", token, "The page token is malformed.") from None
