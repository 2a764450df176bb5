"""Ids, operation names, links, fingerprints and times in the service's forms.

Links name www.googleapis.com whatever host was called, and times have milliseconds and an
offset, as recorded answers show.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from slurm_hooks.sandbox.emulator.places import Scope

LINK_PREFIX = "https://www.googleapis.com/compute/v1/"
_SERVICE_OFFSET = timezone(timedelta(hours=-8))
_SUFFIX_LETTERS = string.ascii_lowercase + string.digits


def timestamp(moment: datetime) -> str:
    """A time as the API writes it, e.g. `2026-01-05T09:15:30.250-08:00`."""
    return moment.astimezone(_SERVICE_OFFSET).isoformat(timespec="milliseconds")


def utc_timestamp(moment: datetime) -> str:
    """A time in UTC with `Z`, as the metadata server and the control surface write it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fingerprint(value: Any) -> str:
    """A short base64 text that changes with the value."""
    digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
    return base64.urlsafe_b64encode(digest[:8]).decode()


@dataclass(slots=True)
class Identifiers:
    """Makes names and numbers for one project. `source` is seeded in tests."""

    project: str
    project_number: int
    source: random.Random = field(default_factory=random.Random)
    _last_id: int = 0

    def unique_id(self) -> int:
        """A new uint64 of about nineteen digits."""
        self._last_id += 1
        return self.source.randrange(10**18, 9 * 10**18) // 1000 * 1000 + self._last_id % 1000

    def operation_name(self, now: datetime, prefix: str = "operation") -> str:
        """`operation-MILLISECONDS-13 hex-8 hex-8 hex`."""
        milliseconds = int(now.timestamp() * 1000)
        parts = [f"{self.source.getrandbits(4 * digits):0{digits}x}" for digits in (13, 8, 8)]
        return "-".join([prefix, str(milliseconds), *parts])

    def suffix(self) -> str:
        """The four characters that end an automatic VM name."""
        return "".join(self.source.choices(_SUFFIX_LETTERS, k=4))

    def path(self, scope: Scope, *parts: str) -> str:
        """`projects/P/zones/Z/instances/N`, as messages name a resource."""
        return "/".join(["projects", self.project, str(scope), *parts])

    def link(self, scope: Scope, *parts: str) -> str:
        """The full URL of a resource."""
        return LINK_PREFIX + self.path(scope, *parts)

    def numbered_path(self, scope: Scope, *parts: str) -> str:
        """A path with the project's number, as instance metadata names a resource."""
        return "/".join(["projects", str(self.project_number), str(scope), *parts])
