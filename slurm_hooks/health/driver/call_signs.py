"""Which driver call a process is in, to be seen from outside while it does not answer.

The signs lie in memory that a parent shares with the child it forks: one that hangs in a call can
tell nothing any more, and its parent must know which call that is and whether it is still the same.
"""

from __future__ import annotations

import mmap
from typing import NamedTuple

_NUMBER_BYTES = 8
_NAME_BYTES = 56
_END = _NUMBER_BYTES + _NAME_BYTES
_NO_NAME = bytes(_NAME_BYTES)


class Call(NamedTuple):
    """The call that a process is in. `number` counts its calls, `name` is empty between them."""

    number: int
    name: str


class CallSigns:
    """Written by the process that calls, read by the one that forked it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _END)
        self._number = 0

    def begin(self, name: str) -> None:
        """A call begins."""
        self._number += 1
        number = self._number.to_bytes(_NUMBER_BYTES, "big")
        self._memory[:_END] = number + name.encode()[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0")

    def end(self) -> None:
        """It has come back."""
        self._memory[_NUMBER_BYTES:_END] = _NO_NAME

    def read(self) -> Call:
        """The call that the other process is in now."""
        signs = self._memory[:_END]
        name = signs[_NUMBER_BYTES:].rstrip(b"\0").decode("ascii", "replace")
        return Call(int.from_bytes(signs[:_NUMBER_BYTES], "big"), name)
