"""Names of resources and references to them, as bodies and query parameters write them."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from slurm_hooks.sandbox.emulator.identifiers import LINK_PREFIX
from slurm_hooks.sandbox.emulator.places import GLOBAL, Scope, ScopeKind
from slurm_hooks.sandbox.emulator.problems import Findings, invalid_field

NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_WORD = r"[-a-z0-9_.:]+"
_SCOPE = rf"(?:zones/(?P<zone>{_WORD})|regions/(?P<region>{_WORD})|(?P<global>global))"
_REFERENCE = re.compile(
    rf"(?:projects/(?P<project>{_WORD})/)?{_SCOPE}/(?P<collection>[a-zA-Z]+)/(?P<rest>[-a-z0-9_./]+)"
)
_HOSTS = re.compile(
    r"https?://(?:www\.googleapis\.com|compute\.googleapis\.com|127\.0\.0\.1:\d+|localhost:\d+)"
    r"/compute/(?:v1|beta|alpha)/"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed URL or partial URL. `project` is empty when it was left out."""

    project: str
    scope: Scope
    collection: str
    name: str

    def link(self, project: str) -> str:
        """The full URL, with `project` where none was given."""
        owner = self.project or project
        return f"{LINK_PREFIX}projects/{owner}/{self.scope}/{self.collection}/{self.name}"


def parse_reference(text: str, collection: str) -> Reference | None:
    """Parse `[https://.../][projects/P/](zones/Z|regions/R|global)/COLLECTION/NAME`."""
    match = _REFERENCE.fullmatch(_HOSTS.sub("", text, count=1))
    if match is None or match["collection"] != collection:
        return None
    if match["zone"]:
        scope = Scope(ScopeKind.ZONE, match["zone"])
    elif match["region"]:
        scope = Scope(ScopeKind.REGION, match["region"])
    else:
        scope = GLOBAL
    return Reference(match["project"] or "", scope, match["collection"], match["rest"])


def check_name(value: object, field: str, findings: Findings) -> None:
    """Note a name that is not RFC 1035 of at most 63 characters."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        findings.add(field, value, f"Must be a match of regex '(?:{NAME.pattern})'")


def checked_request_id(value: str) -> str:
    """A valid request id in lower case; "" when none was given. Raises ApiError 400."""
    if not value:
        return ""
    try:
        parsed = uuid.UUID(value)
    except ValueError:
        raise invalid_field("requestId", value, "The request ID must be a valid UUID.") from None
    if parsed.int == 0:
        raise invalid_field("requestId", value, "The zero UUID is not supported.")
    return str(parsed)
