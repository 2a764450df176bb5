"""What the value of a slurm.conf parameter may be, by the kind that the table gives it.

Values are literal slurm.conf text. What is refused here keeps slurmctld from starting (measured on
22.05.8) or would be read as something else. Of other words than the listed kinds Slurm itself is
the judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TEXT = re.compile(r'"[^"\\#\x00-\x1f\x7f]*"|[^\s"\\#\x00-\x1f\x7f]+')
_CLOCK = re.compile(r"[0-9]{1,9}(:[0-9]{1,2}){0,2}|[0-9]{1,6}-[0-9]{1,2}(:[0-9]{1,2}){0,2}")
_SHARING = re.compile(r"(?i:no|exclusive|(yes|force)(:[1-9][0-9]{0,4})?)")
_WEIGHTS = re.compile(r"[A-Za-z/_:.-]+=[0-9.]+(,[A-Za-z/_:.-]+=[0-9.]+)*")
_NEVER = ("INFINITE", "UNLIMITED")
_BOOLEANS = ("YES", "NO", "UP", "DOWN", "TRUE", "FALSE", "1", "0")

LONGEST_TIMEOUT_SECONDS = 65_534
"""Slurm keeps timeouts in 16 bits, and from 25.05 on reads 65535 as INFINITE."""


def what_is_right(kind: str, value: str) -> str:
    """Empty when a value fits its kind, else what to write instead."""
    if not (_TEXT.fullmatch(value) and value.isprintable()):
        return 'write one word without blanks, # and \\, or several in "..." within the text'
    name, _, words = kind.partition(":")
    if name == "text":
        return ""
    if name in ("word", "list"):
        return _word_remedy(words.split(","), value, is_list=name == "list")
    if name == "from":
        lowest = int(words)
        return "" if _below(2**32 - 3, lowest=lowest)(value) else f'write "{lowest}" or more'
    fits, remedy = _KINDS[name]
    return "" if fits(value) else remedy


def _word_remedy(words: list[str], value: str, *, is_list: bool) -> str:
    known = {word.lower() for word in words}
    given = value.strip('"').lower().split(",") if is_list else [value.lower()]
    if all(word in known for word in given):
        return ""
    return f"write {'some' if is_list else 'one'} of {', '.join(words)}"


def _below(limit: int, *, lowest: int = 0, or_never: bool = False) -> Callable[[str], bool]:
    def fits(value: str) -> bool:
        if or_never and value.upper() in _NEVER:
            return True
        digits = value.isascii() and value.isdigit() and len(value) <= len(str(limit))
        return digits and lowest <= int(value) <= limit

    return fits


def _is_time(value: str) -> bool:
    return value.upper() in _NEVER or _CLOCK.fullmatch(value) is not None


_KINDS: dict[str, tuple[Callable[[str], bool], str]] = {
    "uint16": (_below(2**16 - 1, or_never=True), 'write a number in quotes, "0" to "65535"'),
    "uint32": (_below(2**32 - 1, or_never=True), "write a whole number in quotes"),
    "uint64": (_below(2**64 - 1, or_never=True), "write a whole number in quotes"),
    "boolean": (lambda value: value.upper() in _BOOLEANS, 'write "YES" or "NO"'),
    "time": (_is_time, 'write minutes or days-hours:minutes:seconds, such as "1-00:00:00"'),
    "timeout": (
        _below(LONGEST_TIMEOUT_SECONDS, lowest=1),
        f'write seconds, "1" to "{LONGEST_TIMEOUT_SECONDS}"',
    ),
    "seconds": (
        _below(2**32 - 3, lowest=1),
        'write seconds from "1": without an end, power saving would be off',
    ),
    "seconds_or_never": (
        _below(2**32 - 3, lowest=1, or_never=True),
        'write seconds from "1", or "INFINITE"',
    ),
    "sharing": (
        lambda value: _SHARING.fullmatch(value) is not None,
        'write "NO", "EXCLUSIVE", "YES:4" or "FORCE:4"',
    ),
    "weights": (
        lambda value: _WEIGHTS.fullmatch(value) is not None,
        'write pairs such as "cpu=100,mem=150"',
    ),
}
