"""Which driver call a process is in, to be seen from outside while it does not answer.

The signs lie in memory that a parent shares with the child it forks: one that hangs in a call can
tell nothing any more, and its parent must know which call that is and whether it is still the same.
"""

from __future__ import annotations

import mmap
import struct
import time
from typing import NamedTuple

_NUMBER_AND_TIME = struct.Struct("=Qd")
_NAME_BYTES = 48
_END = _NUMBER_AND_TIME.size + _NAME_BYTES
_NO_NAME = bytes(_NAME_BYTES)


class Call(NamedTuple):
    """The call that a process is in. `number` counts its calls, `name` is empty between them,
    `began` is by the monotonic clock, 0 where there was no call yet."""

    number: int
    name: str
    began: float


class CallSigns:
    """Written by the process that calls, read by the one that forked it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _END)
        self._number = 0

    def begin(self, name: str) -> None:
        """A call begins."""
        self._number += 1
        head = _NUMBER_AND_TIME.pack(self._number, time.monotonic())
        self._memory[:_END] = head + name.encode()[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0")

    def end(self) -> None:
        """It has come back."""
        self._memory[_NUMBER_AND_TIME.size : _END] = _NO_NAME

    def read(self) -> Call:
        """The call that the other process is in now."""
        signs = self._memory[:_END]
        number, began = _NUMBER_AND_TIME.unpack_from(signs)
        name = signs[_NUMBER_AND_TIME.size :].rstrip(b"\0").decode("ascii", "replace")
        return Call(number, name, began)
