"""The steps of an apply, how it may end, and who is told."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol


class Step(enum.StrEnum):
    """The steps in their order."""

    CLUSTER_FILE = "cluster file"
    NODES_THAT_LEAVE = "nodes that leave"
    FILES = "rendered files"
    SLURMCTLD = "slurmctld"
    RUNNING = "cluster"


class Outcome(enum.StrEnum):
    """How an apply ended."""

    DONE = "done"
    HELD_UP = "held up"
    NEEDS_HANDS = "needs a person"
    """slurmctld must be restarted, or slurm.conf changed, by someone who may."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an apply ended, at which step, and what holds it up or is to be done."""

    outcome: Outcome
    step: Step
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """`timeout_seconds` is for all waiting together; `waits_until_running` for the last step."""

    restarts_slurmctld: bool = False
    overwrites_files: bool = False
    waits_until_running: bool = True
    timeout_seconds: float = 1800.0


class Standing(Protocol):
    """How the cluster stands: whether it runs, and what holds it up."""

    @property
    def is_running(self) -> bool:
        """Whether all that must be there is there."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What holds it up."""


class Progress(Protocol):
    """Who is told of the steps."""

    def begins(self, step: Step) -> None:
        """A step begins."""

    def says(self, step: Step, lines: tuple[str, ...]) -> None:
        """What a step waits for now."""

    def ends(self, step: Step) -> None:
        """A step is done."""
