"""docs/health.md names every check, verdict and key, and only proofs that there are."""

from __future__ import annotations

import re
from pathlib import Path

import slurm_hooks
from slurm_hooks.health.model import Verdict
from slurm_hooks.health.policy_file import KEYS
from slurm_hooks.health.registry import all_checks

_PROJECT = Path(slurm_hooks.__file__).parents[1]
_TEXT = (_PROJECT / "docs" / "health.md").read_text()


def _section(title: str) -> str:
    return _TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _first_column(title: str) -> list[str]:
    return re.findall(r"^\| `?([\w-]+)`? \|", _section(title), re.MULTILINE)


def test_every_check_has_its_row_in_order_of_authority() -> None:
    rows = [row for row in _first_column("Checks") if row != "check"]

    assert rows == [check.name for check in all_checks()]
    for check in all_checks():
        assert f"| {check.summary} |" in _section("Checks")


def test_every_verdict_says_what_an_operator_does() -> None:
    assert _first_column("Verdicts")[1:] == [str(verdict) for verdict in Verdict]


def test_every_key_of_the_policy_has_its_row() -> None:
    assert tuple(_first_column("Policy")[1:]) == KEYS


def test_every_behaviour_has_its_row_and_every_proof_exists() -> None:
    section = _section("Behaviours that defects of other systems teach")
    assert re.findall(r"^\| ([0-9]+) \|", section, re.MULTILINE) == [str(n) for n in range(1, 27)]

    sources = "\n".join(path.read_text() for path in (_PROJECT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", section))
    assert {name for name in named if f"def {name}(" not in sources} == set()
