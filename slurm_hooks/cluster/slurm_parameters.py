"""What slurm.conf parameters there are, by the place that they belong in: a table as data.

Names are compared without regard to case and underscores, as the managed service compares them.
Source and date stand in the tables themselves.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources


class Place(enum.StrEnum):
    """Where a parameter stands: by itself, on a NodeName= or PartitionName= line, or elsewhere."""

    GLOBAL = "global"
    NODE = "node"
    PARTITION = "partition"
    SLURMDBD = "slurmdbd"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter at one place.

    `kind` is what its value may be (cluster/slurm_values.py), `since` the first Slurm version that
    can know it. A parameter with a `reserved_for` is not the cluster file's to set: that is why,
    and `remedy` is what to do instead.
    """

    place: Place
    name: str
    kind: str
    since: tuple[int, int]
    reserved_for: str = ""
    remedy: str = ""


def folded(key: str) -> str:
    """A key as it is compared: `DefMemPerCPU` and `def_mem_per_cpu` are one."""
    return key.replace("_", "").lower()


def find_parameter(place: Place, key: str) -> Parameter | None:
    """The parameter of that place that a key names; None when it has no such parameter."""
    return _table().get((place, folded(key)))


def places_of(key: str) -> tuple[Place, ...]:
    """All places that have a parameter of that name."""
    return tuple(place for place in Place if find_parameter(place, key) is not None)


def nearest_parameter(place: Place, key: str) -> str:
    """The name at that place that is most like a key; empty when none is like it."""
    known = {
        name: parameter.name
        for (where, name), parameter in _table().items()
        if where is place and not parameter.reserved_for
    }
    found = difflib.get_close_matches(folded(key), known, n=1)
    return known[found[0]] if found else ""


def all_parameters() -> tuple[Parameter, ...]:
    """The whole table."""
    return tuple(_table().values())


@cache
def _table() -> dict[tuple[Place, str], Parameter]:
    reserved = {
        (Place(place), folded(name)): (reason, remedy)
        for place, name, reason, remedy in _rows("reserved_parameters.tsv")
    }
    table = {}
    for place, name, kind, since in _rows("slurm_parameters.tsv"):
        key = Place(place), folded(name)
        major, _, minor = since.partition(".")
        reason, remedy = reserved.get(key, ("", ""))
        table[key] = Parameter(key[0], name, kind, (int(major), int(minor)), reason, remedy)
    return table


def _rows(file_name: str) -> Iterator[list[str]]:
    text = resources.files(__package__).joinpath(file_name).read_text(encoding="utf-8")
    return (line.split("\t") for line in text.splitlines() if line and line[0] != "#")
