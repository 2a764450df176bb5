"""Plain and aggregated lists in the service's frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from slurm_hooks.sandbox.emulator.http.dispatch import ApiCall
from slurm_hooks.sandbox.emulator.http.paging import Item, Listable, page_of, read_query
from slurm_hooks.sandbox.emulator.http.shapes import link, without_unset
from slurm_hooks.sandbox.emulator.places import Scope
from slurm_hooks.sandbox.emulator.problems import unreachable
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.world import World


@dataclass(frozen=True, slots=True)
class Frame:
    """How a list names itself. `path` stands below the project."""

    kind: str
    path: str


def plain_list(
    world: World,
    query: Mapping[str, str],
    frame: Frame,
    items: Iterable[Listable[Item]],
    shape: Callable[[Item], Json],
) -> Json:
    """One page of a list. An empty list has no `items` member."""
    page = page_of(_visible(world, items), read_query(query), shape)
    return without_unset(
        {
            "kind": frame.kind,
            "id": world.path(frame.path),
            "items": [shown for _, shown in page.entries] or None,
            "nextPageToken": page.next_token or None,
            "selfLink": link(world, frame.path),
        }
    )


@dataclass(frozen=True, slots=True)
class Scoped(Generic[Item]):
    """An item of an aggregated list with its scope."""

    scope: Scope
    item: Item


def aggregated_list(
    world: World,
    call: ApiCall,
    frame: Frame,
    scopes: Sequence[Scope],
    items: Iterable[Listable[Scoped[Item]]],
    shape: Callable[[Item], Json],
) -> Json:
    """One page of an aggregated list; a scope without an item on it carries a warning.

    Raises ApiError 503 if a zone is unreachable and the caller does not take partial answers.
    """
    lost = _lost_scopes(world, call, scopes)
    order = {scope: f"{index:06d}" for index, scope in enumerate(scopes)}
    placed = [
        Listable(one.item, f"{order[one.item.scope]}/{one.name}", one.created)
        for one in _visible(world, items)
        if one.item.scope not in lost
    ]
    page = page_of(placed, read_query(call.query), lambda one: shape(one.item))
    member = frame.path.rpartition("/")[2]
    by_scope: dict[Scope, list[Json]] = {}
    for one, shown in page.entries:
        by_scope.setdefault(one.scope, []).append(shown)
    return without_unset(
        {
            "kind": frame.kind,
            "id": world.path(frame.path),
            "items": {
                str(scope): {member: by_scope[scope]}
                if scope in by_scope
                else _nothing(scope, scope in lost)
                for scope in scopes
            },
            "nextPageToken": page.next_token or None,
            "selfLink": link(world, frame.path),
            "unreachables": [world.path(str(scope)) for scope in scopes if scope in lost] or None,
        }
    )


def _visible(world: World, items: Iterable[Listable[Item]]) -> list[Listable[Item]]:
    """The items that lists show already; a fresh one is only found by its name at first."""
    newest = world.now.timestamp() - world.behaviour.list_lag_seconds
    return [item for item in items if item.created <= newest]


def _lost_scopes(world: World, call: ApiCall, scopes: Sequence[Scope]) -> set[Scope]:
    lost = {scope for scope in scopes if scope.name in world.unreachable_zones}
    if lost and call.query.get("returnPartialSuccess", "").lower() != "true":
        raise unreachable(sorted(scope.name for scope in lost)[0])
    return lost


def _nothing(scope: Scope, is_lost: bool) -> Json:
    code = "UNREACHABLE" if is_lost else "NO_RESULTS_ON_PAGE"
    return {
        "warning": {
            "code": code,
            "message": f"No results for the scope '{scope}'.",
            "data": [{"key": "scope", "value": str(scope)}],
        }
    }
