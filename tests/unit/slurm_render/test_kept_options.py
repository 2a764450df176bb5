"""The settings keep the options of a render, so that what is rendered next is the same."""

from __future__ import annotations

import pytest

from slurm_hooks.slurm.render import RenderError, RenderOptions, with_options
from slurm_hooks.slurm.render.kept_options import options_text

DEFAULTS = RenderOptions(slurm_version=(24, 11))


def test_options_are_read_as_they_were_written() -> None:
    options = RenderOptions(
        slurm_version=(24, 11),
        programs_directory="/opt/bin",
        one_machine_first_port=17001,
        suspend_time_seconds=15,
        contain_jobs=False,
        configless=True,
    )
    text = options_text(options)
    assert "contain_jobs=no" in text.split()
    assert with_options(text, DEFAULTS) == options


def test_defaults_need_no_words() -> None:
    assert options_text(DEFAULTS) == ""
    assert with_options("", DEFAULTS) == DEFAULTS


@pytest.mark.parametrize(
    "text",
    [
        "suspend_time",
        "suspend_tyme_seconds=3",
        "slurm_version=24.11",
        "contain_jobs=maybe",
        "suspend_time_seconds=1.5",
        "suspend_time_seconds=0",
        "programs_directory=bin",
    ],
)
def test_words_that_are_odd_are_refused(text: str) -> None:
    with pytest.raises(RenderError):
        with_options(text, DEFAULTS)
