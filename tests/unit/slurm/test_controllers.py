"""Which host's slurmctld is in charge, and when Slurm is asked at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.slurm.client import SlurmUnavailable
from slurm_hooks.slurm.controllers import (
    Charge,
    Controller,
    charge_of_this_host,
    names_several_controllers,
)

TWO = "SlurmctldHost=head1(10.0.0.1)\nSlurmctldHost=head2\n"


def slurm_conf(directory: Path, text: str) -> Path:
    path = directory / "slurm.conf"
    path.write_text(text)
    return path


def charge(directory: Path, answer: Controller | None, host_name: str) -> Charge:
    return charge_of_this_host(slurm_conf(directory, TWO), lambda: answer, host_name)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("head1", "head1"),
        ("head1", "HEAD1.example.com"),
        ("head1.example.com", "head1"),
        ("head1.example.com", "head1.example.com"),
    ],
)
def test_host_that_answers_first_is_in_charge(tmp_path: Path, host: str, here: str) -> None:
    assert charge(tmp_path, Controller("primary", host), here) is Charge.HERE


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("head1", "head2"),
        ("head1", "head10"),
        ("head1.example.com", "head1.example.org"),
        ("localhost", "head2"),
    ],
)
def test_every_other_host_stands_by(tmp_path: Path, host: str, here: str) -> None:
    assert charge(tmp_path, Controller("primary", host), here) is Charge.ELSEWHERE


def test_backup_that_took_over_is_in_charge(tmp_path: Path) -> None:
    assert charge(tmp_path, Controller("backup1", "head2"), "head2") is Charge.HERE


def test_nobody_is_known_to_be_in_charge_where_no_ping_is_answered(tmp_path: Path) -> None:
    def no_command() -> Controller | None:
        raise SlurmUnavailable("no answer within 60 s")

    assert charge(tmp_path, None, "head1") is Charge.UNKNOWN
    path = slurm_conf(tmp_path, TWO)
    assert charge_of_this_host(path, no_command, "head1") is Charge.UNKNOWN


def test_single_controller_is_never_pinged(tmp_path: Path) -> None:
    def ping() -> Controller | None:
        raise AssertionError("asked")

    path = slurm_conf(tmp_path, "ClusterName=x\n#SlurmctldHost=old\n slurmctldhost = head1 # x\n")
    assert charge_of_this_host(path, ping, "another") is Charge.HERE


def test_controllers_of_included_files_count(tmp_path: Path) -> None:
    parts = tmp_path / "slurm.conf.d"
    parts.mkdir()
    (parts / "more.conf").write_text("SlurmctldHost=head2\n")
    text = "SlurmctldHost=head1\nInclude slurm.conf.d/more.conf\n"
    assert names_several_controllers(slurm_conf(tmp_path, text))
    absolute = f"SlurmctldHost=head1\ninclude {parts / 'more.conf'}\n"
    assert names_several_controllers(slurm_conf(tmp_path, absolute))


def test_file_that_cannot_be_read_may_name_several(tmp_path: Path) -> None:
    assert names_several_controllers(tmp_path / "missing.conf")
    assert names_several_controllers(slurm_conf(tmp_path, "SlurmctldHost=a\nInclude missing\n"))


def test_file_that_includes_itself_is_read_to_an_end(tmp_path: Path) -> None:
    assert names_several_controllers(slurm_conf(tmp_path, "Include slurm.conf\n")) is False
