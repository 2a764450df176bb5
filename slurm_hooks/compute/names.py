"""Names and links of the v1 API: short names from URLs, places from links, and name checks.

Links come with whatever host and version the service likes, with a project id or number, and in
metadata without a host. Only their last parts mean something to us.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import GroupReference, Scope, ScopeKind

INVALID = "invalid"
LONGEST_BASE_INSTANCE_NAME = 58

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_GROUP_LINK = re.compile(r"(zones|regions)/([^/]+)/instanceGroupManagers/([^/]+)$")
_SCOPE_FIELDS = {ScopeKind.ZONE: "zone", ScopeKind.REGION: "region"}


def refuse(message: str) -> ComputeError:
    """The error for what can never work, found before anything was sent."""
    return ComputeError(ErrorKind.CONFIG, INVALID, message)


def require_name(name: str) -> str:
    """The name itself. Raises CONFIG when the service could not have such a resource name."""
    if not _NAME.fullmatch(name):
        raise refuse(f"{name!r} is not a resource name of Compute Engine")
    return name


def location(scope: Scope) -> dict[str, Any]:
    """The request field that says where: `zone`, `region`, or nothing for the whole project."""
    if scope.kind is ScopeKind.GLOBAL:
        return {}
    return {_SCOPE_FIELDS[scope.kind]: require_name(scope.name)}


def short_name(link: str) -> str:
    """The last part of a link; a name stays as it is."""
    return link.rpartition("/")[2]


def group_of_link(link: str) -> GroupReference | None:
    """The group that a link or a VM's `created-by` metadata names; None for anything else."""
    match = _GROUP_LINK.search(link)
    if match is None:
        return None
    kind, place, name = match.groups()
    return GroupReference(Scope(ScopeKind(kind), place), name)


def base_instance_name(group: str) -> str:
    """The prefix of automatic VM names, cut to what the service takes."""
    return group[:LONGEST_BASE_INSTANCE_NAME].rstrip("-")


def time_utc(text: str) -> datetime | None:
    """An RFC 3339 time in UTC; None when it is absent, unreadable or has no offset."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.astimezone(UTC) if time.tzinfo is not None else None
