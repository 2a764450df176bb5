"""Allow policies: who has which role on a resource, and what that comes to.

A binding that is `inherited` was made at a folder or the organisation, or through a group: it
works, and no policy of the resource shows it. Of conditions only an expiry is understood,
`request.time < timestamp("...")`; a binding with any other never works here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from slurm_hooks.sandbox.emulator import roles
from slurm_hooks.sandbox.emulator.identifiers import fingerprint
from slurm_hooks.sandbox.emulator.records import Json

VERSION_WITH_CONDITIONS = 3
_EXPIRY = re.compile(r'request\.time < timestamp\("(?P<time>[^"]+)"\)')
_EVERYBODY = ("allUsers", "allAuthenticatedUsers")


@dataclass(frozen=True, slots=True)
class Binding:
    """One member's role. `condition` is an expression, empty for a role without one."""

    role: str
    member: str
    condition: str = ""
    title: str = ""
    inherited: bool = False

    def allows(self, member: str, permission: str, now: datetime) -> bool:
        """Whether it lets a member do something."""
        if self.member != member and self.member not in _EVERYBODY:
            return False
        return roles.allows(self.role, permission) and self._holds(now)

    def _holds(self, now: datetime) -> bool:
        match = _EXPIRY.fullmatch(self.condition)
        if match is not None:
            return now < datetime.fromisoformat(match["time"])
        return not self.condition


@dataclass(slots=True)
class Policy:
    """The bindings of one resource."""

    bindings: list[Binding] = field(default_factory=list)

    @classmethod
    def of(cls, *pairs: tuple[str, str]) -> Policy:
        """A policy of (role, member) pairs."""
        return cls([Binding(role, member) for role, member in pairs])

    @property
    def etag(self) -> str:
        """A text that changes with what the policy shows."""
        return fingerprint([[b.role, b.member, b.condition] for b in self._shown])

    @property
    def _shown(self) -> list[Binding]:
        return [binding for binding in self.bindings if not binding.inherited]

    def allows(self, member: str, permission: str, now: datetime) -> bool:
        """Whether a member may do something on this resource, by its own policy."""
        return any(binding.allows(member, permission, now) for binding in self.bindings)

    def grant(self, binding: Binding) -> None:
        """Add a binding; one that is there stays as it is."""
        if binding not in self.bindings:
            self.bindings.append(binding)

    def revoke(self, role: str, member: str) -> int:
        """Remove all bindings of a role to a member; how many there were."""
        kept = [one for one in self.bindings if (one.role, one.member) != (role, member)]
        removed = len(self.bindings) - len(kept)
        self.bindings = kept
        return removed

    def replace(self, bindings: Iterable[Binding]) -> None:
        """Let the policy show these bindings; what is inherited stays."""
        inherited = [binding for binding in self.bindings if binding.inherited]
        self.bindings = [*dict.fromkeys(bindings), *inherited]

    def inherited(self) -> Policy:
        """What the policy above shows, of which these bindings are inherited."""
        return Policy([replace(one, inherited=False) for one in self.bindings if one.inherited])

    def to_json(self, version: int) -> Json:
        """The policy as getIamPolicy answers. Below version 3 a condition is left out, and its
        role has a name that nobody takes for the role itself."""
        members: dict[tuple[str, str, str], list[str]] = {}
        for one in self._shown:
            members.setdefault((one.role, one.condition, one.title), []).append(one.member)
        shows_conditions = version >= VERSION_WITH_CONDITIONS
        has_condition = any(condition for _, condition, _ in members)
        bindings = [
            _shown_binding(role, condition, title, found, shows_conditions)
            for (role, condition, title), found in members.items()
        ]
        shown_version = VERSION_WITH_CONDITIONS if has_condition and shows_conditions else 1
        body: Json = {"version": shown_version, "etag": self.etag}
        return body | ({"bindings": bindings} if bindings else {})


def _shown_binding(
    role: str, condition: str, title: str, members: list[str], shows_conditions: bool
) -> Json:
    if not condition:
        return {"role": role, "members": members}
    if not shows_conditions:
        digest = hashlib.sha256(condition.encode()).hexdigest()[:20]
        return {"role": f"{role}_withcond_{digest}", "members": members}
    shown = {"title": title, "expression": condition}
    return {"role": role, "members": members, "condition": shown}


def bindings_from(body: Json) -> list[Binding]:
    """The bindings of a policy that was sent. Raises KeyError or TypeError for a malformed one."""
    return [
        Binding(
            str(entry["role"]),
            str(member),
            str(entry.get("condition", {}).get("expression", "")),
            str(entry.get("condition", {}).get("title", "")),
        )
        for entry in body.get("bindings", [])
        for member in entry["members"]
    ]
