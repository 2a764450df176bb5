"""The kinds of values that a cluster file holds, and what is said when one does not fit.

Facts: the managed service's field tables and its published examples, which write booleans and
numbers as text now and then.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, StringConstraints
from pydantic_core import PydanticCustomError

from slurm_hooks.cluster.topology import (
    ConfidentialInstanceType,
    ProvisioningModel,
    ReservationAffinityType,
)

MINIMUM_RUN_DURATION_SECONDS = 30
MAXIMUM_RUN_DURATION_SECONDS = 604_800

MOST_DAYS = 90
"""As long as events are kept."""

_Words = TypeVar("_Words", bound=enum.StrEnum)

_DURATION = re.compile(r"([0-9]{1,10})s")
_DIGITS = re.compile(r"[0-9]{1,18}")
_SIGNAL = re.compile(r"[A-Z][A-Z0-9]{1,9}")


def refusal(problem: str, remedy: str) -> PydanticCustomError:
    """The error of a value that does not fit, in the words that the operator will read."""
    return PydanticCustomError("cluster_field", "{problem}", {"problem": problem, "remedy": remedy})


def shown(value: object) -> str:
    """A value as an error text may show it: short, one line, never a whole subtree."""
    if isinstance(value, str):
        return ascii(value if len(value) <= 60 else value[:57] + "...")
    return str(value)[:60] if isinstance(value, int | float) else f"a {type(value).__name__}"


def parse_duration_seconds(value: object) -> int:
    """Read a run duration such as `604800s`, 30 s to 7 days. Raises PydanticCustomError."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    remedy = "write seconds with an s, from 30s to 604800s (7 days)"
    if match is None:
        raise refusal(f"{shown(value)} is no duration", remedy)
    seconds = int(match.group(1))
    if not MINIMUM_RUN_DURATION_SECONDS <= seconds <= MAXIMUM_RUN_DURATION_SECONDS:
        raise refusal(f"{shown(value)} is out of range", remedy)
    return seconds


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise refusal(f"{shown(value)} is neither true nor false", "write true or false")


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    raise refusal(f"{shown(value)} is no whole number", "write digits only")


def _within(least: int, most: int) -> Callable[[object], int]:
    """Reads a whole number of a range."""

    def read(value: object) -> int:
        number = _integer(value)
        if not least <= number <= most:
            raise refusal(f"{number} is out of range", f"write {least} to {most}")
        return number

    return read


def _word_of(words: type[_Words], kind: str) -> Callable[[object], _Words]:
    def read(value: object) -> _Words:
        if not isinstance(value, str) or value not in words.__members__:
            raise refusal(f"{shown(value)} is no {kind}", f"write one of {', '.join(words)}")
        return words(value)

    return read


def _config(value: object) -> dict[str, object]:
    """A map of parameters; what they are is checked where the place of the map is known."""
    if isinstance(value, dict):
        return dict(value)
    raise refusal(f"{shown(value)} is no map of parameters", 'write {"Parameter": "value"}')


def _signal(value: object) -> str:
    if isinstance(value, str) and (not value or _SIGNAL.fullmatch(value)):
        return value
    raise refusal(f"{shown(value)} is no signal", "write a name such as USR1, or nothing for none")


def _labels(value: object) -> dict[str, object]:
    """A map of labels; what each may be is checked one by one, so that all mistakes are told."""
    if isinstance(value, dict):
        return dict(value)
    raise refusal(f"{shown(value)} is no map of labels", 'write {"key": "value"}')


Text = Annotated[str, StringConstraints(min_length=1)]
Boolean = Annotated[bool, BeforeValidator(_boolean)]
Integer = Annotated[int, BeforeValidator(_integer)]
Count = Annotated[int, BeforeValidator(_within(0, 1_000_000))]
Positive = Annotated[int, BeforeValidator(_within(1, 1_000_000))]
Percent = Annotated[int, BeforeValidator(_within(0, 100))]
Days = Annotated[int, BeforeValidator(_within(1, MOST_DAYS))]
WindowSeconds = Annotated[int, BeforeValidator(_within(1, 86_400))]
DurationSeconds = Annotated[int, BeforeValidator(parse_duration_seconds)]
Signal = Annotated[str, BeforeValidator(_signal)]
Model = Annotated[
    ProvisioningModel, BeforeValidator(_word_of(ProvisioningModel, "provisioning model"))
]
ReservationType = Annotated[
    ReservationAffinityType, BeforeValidator(_word_of(ReservationAffinityType, "kind of affinity"))
]
ConfidentialType = Annotated[
    ConfidentialInstanceType,
    BeforeValidator(_word_of(ConfidentialInstanceType, "confidential instance type")),
]
Config = Annotated[dict[str, object], BeforeValidator(_config)]
Labels = Annotated[dict[str, object], BeforeValidator(_labels)]
