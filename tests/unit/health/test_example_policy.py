"""The example policy shows every key with the default that holds without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import slurm_hooks
from slurm_hooks.health.policy import HealthPolicy
from slurm_hooks.health.policy_file import KEYS, parse_policy
from slurm_hooks.health.registry import all_checks

_FILE = Path(slurm_hooks.__file__).parents[1] / "etc" / "slurm-hooks" / "health.yaml"


@pytest.fixture
def uncommented() -> str:
    """The settings without their comment signs. Text for people has one space behind the sign."""
    lines = _FILE.read_text().splitlines()
    return "\n".join(line[1:] for line in lines if re.match(r"#(  |\S)", line))


def test_as_it_is_the_file_changes_nothing() -> None:
    assert parse_policy(_FILE.read_text(), "health.yaml") == HealthPolicy()


def test_every_line_shows_the_default(uncommented: str) -> None:
    assert parse_policy(uncommented, "health.yaml") == HealthPolicy()


def test_no_key_is_missing(uncommented: str) -> None:
    tree = yaml.safe_load(uncommented)

    assert tuple(tree) == KEYS
    assert list(tree["checks"]) == [check.name for check in all_checks()]
    assert set(tree["thresholds"]) == set(HealthPolicy().thresholds._fields)
    assert set(tree["deadlines"]) == set(HealthPolicy().deadlines._fields)
