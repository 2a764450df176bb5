"""Google's services as a VM asks them, with the token of its service account.

What a service refuses is refused for good and ends the boot; what it cannot do just now is asked
for again. Neither token nor answer is ever part of a text that somebody reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from slurm_hooks.boot import web
from slurm_hooks.boot.machine import BootError, Machine, NotYet, try_until_done
from slurm_hooks.boot.metadata import read_token

_OK = 200
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


class Services:
    """Google's services for one boot; the token is fetched when it is first needed."""

    def __init__(self, machine: Machine, waiting: Callable[[str], None]) -> None:
        self._machine = machine
        self._waiting = waiting
        self._token = ""

    def get(self, url: str, what: str) -> Mapping[str, Any]:
        """A resource; `what` names it in errors. Raises BootError."""
        limits = self._machine.limits
        self._token = self._token or read_token(self._machine, self._waiting)
        return try_until_done(
            lambda: self._try(url, what), limits.service_seconds, limits.pause_seconds,
            self._waiting,
        )  # fmt: skip

    def _try(self, url: str, what: str) -> Mapping[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            answer = web.get(url, headers, self._machine.limits.try_seconds)
        except (OSError, ValueError) as error:
            raise NotYet(f"{what}: {error}") from None
        if answer.status in _AGAIN:
            raise NotYet(f"{what}: the service answers {answer.status}")
        if answer.status != _OK:
            raise BootError(f"{what}: {answer.status} {_reason(answer.body)}".rstrip())
        try:
            found = json.loads(answer.body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise NotYet(f"{what}: the service's answer is no JSON object")
        return found


def _reason(body: bytes) -> str:
    """What an error of Google's says, in one line."""
    try:
        text = str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""
    return re.sub(r"\s+", " ", text)[:300]
