"""Hostlists: `expand` reads what Slurm writes, `collapse` writes what every Slurm reads.

Invariant: `expand(collapse(names)) == names`, order and duplicates included. Both agree with
`scontrol show hostnames` and `show hostlist` of 22.05, 24.11 and 26.05 wherever these agree with
each other on a sane input (measured); what they mangle is refused here, since a wrong node name
is worse than an error.

Written here because no library does this: ClusterShell sorts, drops duplicates, pads every item
alike and folds several numbers of a name, which 22.05 cannot read back. A test holds the set of
names against ClusterShell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

MAX_HOSTS_IN_RANGE = 65_536
MAX_HOSTS = 1_000_000
"""More names than any cluster has: a short text must not fill the memory."""

_MAX_NUMBER = 2**64 - 2
_ITEM = re.compile(r"(?:[^\[\]\s,]|\[[^\[\]]*\])+|[\[\]]")
_GROUP = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_NAME = re.compile(r"[^\[\]{}\s,]*?([0-9]{0,18})", re.ASCII)


class HostlistError(ValueError):
    """The text is not a hostlist, or one that Slurm's versions read differently or wrongly."""


def expand(text: str) -> list[str]:
    """The names that a hostlist stands for, in Slurm's order. Raises HostlistError."""
    names: list[str] = []
    for item in _ITEM.findall(text):
        names.extend(_expand_item(item))
        if len(names) > MAX_HOSTS:
            raise HostlistError(f"more than {MAX_HOSTS} names")
    return names


def expand_leniently(text: str) -> tuple[str, ...]:
    """As `expand`; text that is no hostlist counts as one name, which no node has.

    For what users write: it must not make a job unreadable.
    """
    try:
        return tuple(expand(text))
    except HostlistError:
        return (text,)


def collapse(names: Iterable[str]) -> str:
    """The hostlist of the names in the given order; only the last number of a name folds.

    Raises HostlistError for a name that no hostlist can hold.
    """
    parts: list[str] = []
    prefix = ""
    numbers: list[str] = []
    for name in names:
        own_prefix, number = _split_name(name)
        if number and numbers and own_prefix == prefix:
            numbers.append(number)
            continue
        if numbers:
            parts.append(prefix + _fold(numbers))
        numbers = [number] if number else []
        prefix = own_prefix
        if not number:
            parts.append(name)
    if numbers:
        parts.append(prefix + _fold(numbers))
    return ",".join(parts)


def _expand_item(item: str) -> Sequence[str]:
    if item in "[]":
        raise HostlistError("unbalanced brackets")
    if "{" in item or "}" in item:
        raise HostlistError(f"braces in {item[:80]!r}: some versions ask the controller")
    if "[" not in item:
        return (item,)
    pieces = _GROUP.split(item)
    literals, groups = pieces[0::2], [_expand_group(text) for text in pieces[1::2]]
    if len(groups) == 1:
        return [f"{literals[0]}{number}{literals[1]}" for number in groups[0]]
    _check_size(groups)
    return list(_combine(literals, groups))


def _check_size(groups: Sequence[Sequence[str]]) -> None:
    size = 1
    for group in groups:
        size *= len(group)
    if size > MAX_HOSTS:
        raise HostlistError(f"more than {MAX_HOSTS} names")


def _combine(literals: Sequence[str], groups: Sequence[Sequence[str]]) -> Iterator[str]:
    """Slurm's order: the last group runs fastest, then the first, the second and so on."""
    slowest_first = [*reversed(groups[:-1]), groups[-1]]
    for numbers in product(*slowest_first):
        in_text_order = (*reversed(numbers[:-1]), numbers[-1])
        yield literals[0] + "".join(
            number + literal for number, literal in zip(in_text_order, literals[1:], strict=True)
        )


def _expand_group(text: str) -> list[str]:
    numbers: list[str] = []
    for item in text.split(","):
        found = _RANGE.fullmatch(item)
        if not found:
            raise HostlistError(f"not a number or a range: {item[:80]!r}")
        numbers.extend(_expand_range(found.group(1), found.group(2) or found.group(1)))
        if len(numbers) > MAX_HOSTS:
            raise HostlistError(f"more than {MAX_HOSTS} names")
    return numbers


def _expand_range(low_text: str, high_text: str) -> Iterable[str]:
    if max(len(low_text), len(high_text)) > 20:
        raise HostlistError("number too large")
    low, high, width = int(low_text), int(high_text), len(low_text)
    if high > _MAX_NUMBER:
        raise HostlistError("number too large")
    if high < low:
        raise HostlistError(f"range runs backwards: {low_text}-{high_text}")
    if high - low >= MAX_HOSTS_IN_RANGE:
        raise HostlistError(f"more than {MAX_HOSTS_IN_RANGE} hosts in one range")
    return [str(number).zfill(width) for number in range(low, high + 1)]


def _split_name(name: str) -> tuple[str, str]:
    found = _NAME.fullmatch(name)
    if not found or not name:
        raise HostlistError(f"not a node name: {name[:80]!r}")
    number = found.group(1)
    return name[: len(name) - len(number)], number


def _fold(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return numbers[0]
    items: list[str] = []
    low = high = numbers[0]
    for number in numbers[1:]:
        if number == str(int(high) + 1).zfill(len(low)) and _fits_range(low, number):
            high = number
            continue
        items.append(_range_text(low, high))
        low = high = number
    items.append(_range_text(low, high))
    return f"[{','.join(items)}]"


def _fits_range(low: str, high: str) -> bool:
    return int(high) - int(low) < MAX_HOSTS_IN_RANGE


def _range_text(low: str, high: str) -> str:
    return low if low == high else f"{low}-{high}"
