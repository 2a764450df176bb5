"""Errors of Compute Engine, named by what can be done about them.

Codes decide, never message text. `classify_*` live beside the client; decisions need only this.
"""

from __future__ import annotations

import enum


class ErrorKind(enum.StrEnum):
    """What an error means for the caller."""

    RATE = "RATE"
    """Too many calls: retry after the minute turns."""
    TRANSIENT = "TRANSIENT"
    """The service or the network stumbled: retry."""
    STOCKOUT = "STOCKOUT"
    """No capacity: keep waiting, or back off."""
    QUOTA = "QUOTA"
    """The project may have no more: hold and say so."""
    PERMISSION = "PERMISSION"
    """Not allowed: fail now and say what to grant."""
    CONFIG = "CONFIG"
    """The request can never work as it is: fail now and say what to fix."""
    CONFLICT = "CONFLICT"
    """Something of that name exists or is still going away: wait for it."""
    GONE = "GONE"
    """The thing is not there: success when deleting."""


class ComputeError(Exception):
    """A failed call or operation of Compute Engine.

    `kind` says what to do, `code` is the service's own code or reason, `http_status` is None
    when no answer came.
    """

    def __init__(
        self, kind: ErrorKind, code: str, message: str, http_status: int | None = None
    ) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.kind = kind
        self.code = code
        self.message = message
        self.http_status = http_status
