"""The Xid lines of the kernel's own log, /dev/kmsg: bounded, without doubles, never waiting.

Each read gives one record, `priority,sequence,microseconds,flags;text`, and lines that begin with
a space belong to the record before. The log is a ring: it holds this boot alone, and its oldest
records go as new ones come. Records that a program wrote have another facility than the kernel's
and are left out, so nobody can put an Xid into a node's log who is not its kernel.
"""

from __future__ import annotations

import errno
import os
import re
import time
from typing import NamedTuple

_READ_BYTES = 8192
"""The longest record. A shorter buffer would fail."""
_LOOK_AT_CLOCK_EVERY = 256
_FACILITY_SHIFT = 3
_XID = b";NVRM: Xid ("
_XID_RECORD = rb"(?m)^([0-9]{1,9}),([0-9]{1,19}),([0-9]{1,19}),[^;\n]*;(NVRM: Xid \([^\n]*)"


class Since(NamedTuple):
    """From where on records count: those after a sequence number, or after a number of
    microseconds since boot. None is no bound."""

    sequence: int | None = None
    microseconds: int | None = None

    def includes(self, sequence: int, microseconds: int) -> bool:
        """Whether a record counts."""
        if self.sequence is not None and sequence <= self.sequence:
            return False
        return self.microseconds is None or microseconds > self.microseconds


class Limits(NamedTuple):
    """How much is read at most: seconds, bytes, and different Xid lines to be kept apart. Beyond
    the last, lines that differ in their text alone count as one, so that no storm of one Xid
    hides another."""

    seconds: float = 1.5
    bytes: int = 128 * 1024 * 1024
    texts: int = 1_000


class LoggedXid(NamedTuple):
    """One Xid line and how many times it stood in the log: the whole first and last record."""

    first: str
    last: str
    times: int = 1


class KernelLog(NamedTuple):
    """What was read. `problem` says what is missing from it, and is empty if nothing is.

    The sequence numbers are those of the oldest and the newest record of all, None without one.
    """

    xids: tuple[LoggedXid, ...] = ()
    first_sequence: int | None = None
    last_sequence: int | None = None
    problem: str = ""


def read_kernel_log(path: str, since: Since, limits: Limits | None = None) -> KernelLog:
    """Read the log once from its beginning. Never raises and never waits for new records.

    A log that is absent, empty or in another form is a problem, never an empty answer.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return KernelLog(problem=f"the kernel log cannot be read: {error.strerror}")
    reader = _Reader(since, limits or Limits())
    try:
        reader.read(descriptor)
    except OSError as error:
        reader.problem = f"the kernel log cannot be read: {error.strerror}"
    finally:
        os.close(descriptor)
    return reader.result()


class _Reader:
    """Most records are not about Xids, so they are not taken apart: a Prolog pays for each."""

    def __init__(self, since: Since, limits: Limits) -> None:
        self.problem = ""
        self._since = since
        self._limits = limits
        self._until = time.monotonic() + limits.seconds
        self._found: dict[bytes, LoggedXid] = {}
        self._first = b""
        self._last = b""
        self._rest = b""

    def read(self, descriptor: int) -> None:
        """Take in records until there are no more or a limit is reached."""
        reads = size = 0
        while not self.problem:
            try:
                data = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EPIPE:
                    raise
                data = b"\n"
            if not data:
                break
            reads += 1
            size += len(data)
            self._take(data)
            if reads % _LOOK_AT_CLOCK_EVERY == 0:
                self.problem = self._limit_reached(size)
        if self._rest and not self.problem:
            self._take(b"\n")

    def result(self) -> KernelLog:
        """What was read, with the problem that it is empty."""
        first, last = _sequences(self._first), _sequences(self._last)
        problem = self.problem or ("" if last else "the kernel log has no records")
        return KernelLog(
            xids=tuple(self._found.values()),
            first_sequence=first[0] if first else None,
            last_sequence=last[-1] if last else None,
            problem=problem,
        )

    def _limit_reached(self, size: int) -> str:
        if time.monotonic() > self._until:
            return f"the kernel log takes more than {self._limits.seconds:g} s to read"
        if size > self._limits.bytes:
            return f"the kernel log has more than {self._limits.bytes} bytes"
        return ""

    def _take(self, data: bytes) -> None:
        """A record of /dev/kmsg comes whole; of a plain file, what is cut off is kept for later."""
        if self._rest:
            data = self._rest + data
            self._rest = b""
        if not data.endswith(b"\n"):
            data, _, self._rest = data.rpartition(b"\n")
            self._rest = self._rest[:_READ_BYTES]
        if len(data) > 1:
            self._first = self._first or data
            self._last = data
        if _XID in data:
            for record in re.finditer(_XID_RECORD, data):
                self._take_xid(record)

    def _take_xid(self, record: re.Match[bytes]) -> None:
        is_of_a_program = int(record[1]) >> _FACILITY_SHIFT != 0
        if is_of_a_program or not self._since.includes(int(record[2]), int(record[3])):
            return
        text = record[4]
        if text not in self._found and len(self._found) >= self._limits.texts:
            text = text.partition(b",")[0]
        line = record[0].decode("utf-8", "replace")
        found = self._found.get(text)
        if found is None:
            self._found[text] = LoggedXid(line, line)
        else:
            self._found[text] = LoggedXid(found.first, line, found.times + 1)


def _sequences(data: bytes) -> list[int]:
    """The sequence numbers of some records."""
    heads = [line.partition(b";")[0].split(b",") for line in data.split(b"\n") if b";" in line]
    return [int(head[1]) for head in heads if len(head) > 3 and _are_numbers(head[:3])]


def _are_numbers(fields: list[bytes]) -> bool:
    return all(number.isdigit() and len(number) < 20 for number in fields)
