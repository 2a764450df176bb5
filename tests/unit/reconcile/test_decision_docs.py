"""docs/decisions.md says what the code decides, in words that need no code."""

from __future__ import annotations

import enum
from pathlib import Path

import pytest

from slurm_hooks.reconcile.decision_docs import decision_page, member_texts
from slurm_hooks.reconcile.node_table import TABLE
from slurm_hooks.reconcile.phases import Intent, RequestPhase, VmPhase

PAGE = Path(__file__).parents[3] / "docs" / "decisions.md"


def test_page_is_current() -> None:
    assert PAGE.read_text() == decision_page(), "run `make decisions`"


@pytest.mark.parametrize("kind", [Intent, RequestPhase, VmPhase])
def test_every_phase_is_explained(kind: type[enum.StrEnum]) -> None:
    assert [name for name, text in member_texts(kind).items() if not text] == []


def test_page_has_a_line_for_every_row() -> None:
    lines = decision_page().splitlines()
    for row in TABLE:
        assert any(line.endswith(f"| {row.step.value} | {row.why} |") for line in lines)
