"""State words become flags; no word is lost, whatever the version or the source."""

from __future__ import annotations

import re

import pytest

from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from slurm_hooks.slurm.state_words import (
    job_state_from_words,
    node_state_from_text,
    node_state_from_words,
)
from tests.shared_data import shared_file

UNKNOWN_WORDS_IN_SEEN_STATES = {"POWER", "POWERED_UP", "UNDRAIN", "DOWN"}
"""Of versions before 22.05, of other projects' tests, and a second base state."""


def test_every_state_seen_in_public_keeps_all_its_words() -> None:
    rows = shared_file("data/slurm-state-strings.tsv").read_text().splitlines()[1:]
    assert len(rows) > 100
    for row in rows:
        text = row.split("\t")[0]
        state = node_state_from_text(text)
        words = set(re.sub("[*#]", "", text).split("+"))
        assert words <= {state.base, *state.flags, *state.unknown}, text
        assert state.unknown <= UNKNOWN_WORDS_IN_SEEN_STATES, text


def test_two_base_states_leave_the_second_unknown() -> None:
    state = node_state_from_text("MIXED+CLOUD+DOWN+POWERING_UP")
    assert state.base is BaseState.MIXED
    assert state.unknown == {"DOWN"}


@pytest.mark.parametrize(
    ("text", "base", "flag"),
    [
        ("DOWN*+CLOUD", BaseState.DOWN, NodeFlag.NOT_RESPONDING),
        ("ALLOCATED#", BaseState.ALLOCATED, NodeFlag.POWERING_UP),
        ("idle~", BaseState.IDLE, NodeFlag.POWERED_DOWN),
        ("IDLE%", BaseState.IDLE, NodeFlag.POWERING_DOWN),
        ("IDLE!", BaseState.IDLE, NodeFlag.POWER_DOWN),
        ("IDLE~*", BaseState.IDLE, NodeFlag.NOT_RESPONDING),
    ],
)
def test_signs_of_the_short_form_are_flags(text: str, base: BaseState, flag: NodeFlag) -> None:
    state = node_state_from_text(text)
    assert state.base is base
    assert state.has(flag)
    assert not state.unknown


def test_order_of_words_does_not_matter() -> None:
    words = ["POWERED_DOWN", "CLOUD", "IDLE"]
    assert node_state_from_words(words) == node_state_from_words(reversed(words))


def test_word_of_a_newer_version_is_kept_as_unknown() -> None:
    assert node_state_from_text("IDLE+CLOUD+BRAND_NEW").unknown == {"BRAND_NEW"}


def test_state_without_a_base_word_has_an_unknown_base() -> None:
    assert node_state_from_text("CLOUD").base is BaseState.UNKNOWN


def test_empty_state_is_an_error() -> None:
    with pytest.raises(ValueError, match="no state word"):
        node_state_from_text("")


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["RUNNING"], JobState.RUNNING),
        (["RUNNING", "CONFIGURING"], JobState.CONFIGURING),
        (["CONFIGURING", "POWER_UP_NODE"], JobState.CONFIGURING),
        (["PENDING", "COMPLETING"], JobState.COMPLETING),
        (["REQUEUE_HOLD"], JobState.PENDING),
        (["RUNNING", "BRAND_NEW"], JobState.RUNNING),
        (["BRAND_NEW"], JobState.UNKNOWN),
        ([], JobState.UNKNOWN),
        (["OUT_OF_MEMORY"], JobState.OUT_OF_MEMORY),
    ],
)
def test_job_states(words: list[str], state: JobState) -> None:
    assert job_state_from_words(words) is state
