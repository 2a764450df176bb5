"""`slurm-hooks check` as its users meet it before any service is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from slurm_hooks.cli.main import app
from tests.unit.cluster.files import EXAMPLE, changed


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, ["check", *(str(argument) for argument in arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def settings(directory: Path, *lines: str) -> Path:
    path = directory / "slurm-hooks.conf"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_help_teaches_with_examples_and_exit_statuses() -> None:
    shown = run("--help").stdout
    for word in ("slurm-hooks check /etc/slurm-hooks/", "--json", "Exit status", "UNKNOWN"):
        assert word in shown


def test_a_missing_file_is_a_mistake(tmp_path: Path) -> None:
    result = run(tmp_path / "none.json", "--settings", settings(tmp_path))
    assert result.exit_code == 2
    assert "no such file" in result.stderr


def test_mistakes_of_the_cluster_file_come_before_all_questions(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(changed(node_pools__1__zone="<zone>")))
    result = run(path, "--settings", settings(tmp_path), "--json")
    assert result.exit_code == 2
    assert [one["path"] for one in json.loads(result.stdout)["errors"]] == ["node_pools[1].zone"]


def test_without_settings_and_file_it_says_what_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    monkeypatch.setattr("slurm_hooks.settings.SYSTEM_DIRECTORY", str(tmp_path / "etc"))
    result = run()
    assert result.exit_code == 2
    assert "name the cluster file" in result.stderr


@pytest.mark.parametrize("line", ["ApiCredentials=mine", "ApiEndpoint=127.0.0.1:1"])
def test_settings_that_cannot_be_used_are_a_mistake(tmp_path: Path, line: str) -> None:
    result = run(EXAMPLE, "--settings", settings(tmp_path, line))
    assert result.exit_code == 2
    assert "in the settings" in result.stderr
