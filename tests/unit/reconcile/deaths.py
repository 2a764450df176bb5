"""Stories in which the controller dies at every single call: the end must always be the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.unit.reconcile.life import LONGER_THAN_EVERY_GRACE, Life

Story = Callable[[Life], None]

CALLS_OF_A_RECOVERY = 8

STRIDE_OF_A_FIRST_LOOK = 7

IN_DEPTH = (pytest.mark.slow, pytest.mark.thorough)

WAYS_TO_DIE = [
    pytest.param(True, True, id="after the call"),
    pytest.param(True, False, id="after the call that is over at once", marks=IN_DEPTH),
    pytest.param(False, True, id="before the call", marks=pytest.mark.slow),
    pytest.param(False, False, id="before the call that is over at once", marks=IN_DEPTH),
]
"""Whether the call was carried out, and whether operations take time."""


def end_of(story: Story, life: Life) -> tuple[object, ...]:
    """The end state once every grace is over."""
    story(life)
    for _ in range(2):
        life.advance(LONGER_THAN_EVERY_GRACE)
        life.rest()
    return life.end_state()


def assert_death_at_any_call_changes_nothing(
    make: Callable[[], Life], story: Story, *, after_the_call: bool, stride: int = 1
) -> None:
    """One life for each call of the undisturbed one, with a death at that call.

    A longer stride leaves out calls: for a first look only.
    """
    undisturbed = make()
    end = end_of(story, undisturbed)
    for number in range(1, undisturbed.door.calls + 1, stride):
        life = make()
        life.door.deaths_at, life.door.dies_after_the_call = {number}, after_the_call
        assert end_of(story, life) == end, f"died at call {number}"
        assert life.deaths == 1, f"lived through call {number}"


def assert_second_death_changes_nothing(
    make: Callable[[], Life], story: Story, *, after_the_call: bool
) -> None:
    """As above, with a second death while the first is made up for."""
    undisturbed = make()
    end = end_of(story, undisturbed)
    firsts, distances = range(1, undisturbed.door.calls + 1), range(1, CALLS_OF_A_RECOVERY + 1)
    for first, distance in itertools.product(firsts, distances):
        pair = first, first + distance
        life = make()
        life.door.deaths_at, life.door.dies_after_the_call = set(pair), after_the_call
        assert end_of(story, life) == end, f"died at calls {pair}"
        assert life.deaths >= 1, "the first death may save the calls of the second"
