"""Every set of flags that a node can have, without walking each of the two million.

A node's flags are left open. What is decided asks for them one by one; each answer to a question
that was asked is walked both ways, and flags that nobody asked for cannot have mattered. So every
set of flags is covered by exactly one walk, whatever the rules come to ask, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.slurm.model import BaseState, NodeFlag, NodeState
from tests.unit.reconcile.every_state import (
    CASES_A_SNAPSHOT,
    UNKNOWN_WORD,
    Decided,
    Surroundings,
    decide_chunk,
)

OPEN_FLAGS = tuple(flag for flag in NodeFlag if flag is not NodeFlag.CLOUD)
SETS_OF_FLAGS = 2 ** len(OPEN_FLAGS)
UNKNOWN_WORDS = (frozenset[str](), frozenset({UNKNOWN_WORD}))


@dataclass
class OpenState:
    """Stands for a NodeState of which only the flags in `answers` are known yet."""

    base: BaseState
    unknown: frozenset[str]
    answers: dict[NodeFlag, bool] = field(default_factory=dict)
    given: int = 0

    def __post_init__(self) -> None:
        self.answers = {NodeFlag.CLOUD: True, **self.answers}
        self.given = len(self.answers)

    def has(self, *flags: NodeFlag) -> bool:
        """As `NodeState.has`; a flag that was not asked for before is not set."""
        return any(self.answers.setdefault(flag, False) for flag in flags)

    @property
    def flags(self) -> OpenFlags:
        """As `NodeState.flags`, for those who ask whether one flag is among them."""
        return OpenFlags(self)

    @property
    def sets_covered(self) -> int:
        """How many sets of flags would have given the same answers."""
        return 1 << (1 + len(OPEN_FLAGS) - len(self.answers))

    def others(self) -> Iterator[OpenState]:
        """The states in which one question that was new is answered with yes."""
        asked = list(self.answers.items())
        for place in range(self.given, len(asked)):
            flag, _ = asked[place]
            yield OpenState(self.base, self.unknown, {**dict(asked[:place]), flag: True})


@dataclass(frozen=True, slots=True)
class OpenFlags:
    """The flags of an OpenState: asked for one, it answers as `has`."""

    state: OpenState

    def __contains__(self, flag: NodeFlag) -> bool:
        return self.state.has(flag)


Said = tuple[OpenState, str, Surroundings]


def decided_for_every_set(
    reasons: Iterable[str], around: Iterable[Surroundings], cluster: Cluster | None = None
) -> Iterator[Decided]:
    """What is decided for every base state and set of flags, known and unknown, with each reason
    in all surroundings. `case.state` is an OpenState.

    The flags that a rule asks of a case count, too, so it must be asked before the next is taken.
    """
    todo: list[Said] = [
        (OpenState(base, unknown), reason, each)
        for base, unknown, reason, each in itertools.product(
            BaseState, UNKNOWN_WORDS, list(reasons), list(around)
        )
    ]
    while todo:
        chunk, todo = todo[-CASES_A_SNAPSHOT:], todo[:-CASES_A_SNAPSHOT]
        given = cast("list[tuple[NodeState, str, Surroundings]]", chunk)
        yield from decide_chunk(given, cluster)
        for state, reason, each in chunk:
            todo.extend((other, reason, each) for other in state.others())
