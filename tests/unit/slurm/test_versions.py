"""Versions are read from any of Slurm's spellings, and each has the rules that it shipped with."""

from __future__ import annotations

import pytest

from slurm_hooks.slurm.versions import SlurmVersion, rules_for


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("slurm-wlm 22.05.8\n", SlurmVersion(22, 5, 8)),
        ("slurm 24.11.5", SlurmVersion(24, 11, 5)),
        ("25.11.6-pre1", SlurmVersion(25, 11, 6)),
        ("slurm 26.05.0-0rc1", SlurmVersion(26, 5, 0)),
        ("24.05", SlurmVersion(24, 5, 0)),
    ],
)
def test_version_is_read(text: str, version: SlurmVersion) -> None:
    assert SlurmVersion.parse(text) == version


def test_text_without_a_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="no Slurm version"):
        SlurmVersion.parse("command not found")


def test_versions_compare_by_time() -> None:
    assert SlurmVersion.parse("23.11.10") > SlurmVersion.parse("23.11.9")
    assert str(SlurmVersion(22, 5, 8)) == "22.05.8"


@pytest.mark.parametrize(
    ("version", "flag"),
    [
        ("21.08.8", ""),
        ("22.05.8", ""),
        ("23.02.7", "--json"),
        ("24.05.3", "--json=v0.0.40"),
        ("24.11.5", "--json=v0.0.42"),
        ("26.05.5", "--json=v0.0.42"),
        ("26.11.0", "--json=v0.0.45"),
        ("31.05.0", "--json=v0.0.45"),
    ],
)
def test_json_flag_is_one_that_the_version_knows(version: str, flag: str) -> None:
    assert rules_for(SlurmVersion.parse(version)).scontrol_json_flag == flag


def test_only_versions_without_json_in_scontrol_need_another_command_for_jobs() -> None:
    assert rules_for(SlurmVersion(22, 5)).jobs_json_command == ("squeue", "--json")
    assert rules_for(SlurmVersion(23, 2)).jobs_json_command == ()


@pytest.mark.parametrize(
    ("version", "keeps"),
    [
        ("22.05.8", False),
        ("24.05.4", False),
        ("24.11.5", True),
        ("25.11.6", False),
        ("26.05.5", False),
    ],
)
def test_reason_that_comes_alone_is_relied_on_only_where_it_was_measured(
    version: str, keeps: bool
) -> None:
    assert rules_for(SlurmVersion.parse(version)).keeps_lone_reason is keeps


@pytest.mark.parametrize(
    ("version", "restarts"),
    [
        ("22.05.8", True),
        ("23.02.7", True),
        ("23.11.0", False),
        ("24.11.5", False),
        ("26.05.5", False),
        ("26.11.0", False),
    ],
)
def test_slurmctld_is_restarted_for_nodes_before_23_11(version: str, restarts: bool) -> None:
    assert rules_for(SlurmVersion.parse(version)).restarts_for_nodes is restarts
