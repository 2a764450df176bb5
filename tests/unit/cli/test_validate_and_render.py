"""`slurm-hooks validate` and `slurm-hooks render` as their users meet them."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from slurm_hooks.cli.main import app
from tests.unit.cluster.files import EXAMPLE, changed

VERSION = ("--slurm-version", "24.11")


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def rendered(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_good_file_is_summed_up() -> None:
    result = run("validate", EXAMPLE)
    assert result.exit_code == 0
    for word in ("good", "flexvm", "a3-ultragpu-8g", "FLEX_START", "604800s", "0 to 2", "login"):
        assert word in result.stdout


def test_all_mistakes_are_printed_with_remedies_and_exit_status_2(tmp_path: Path) -> None:
    document = changed(node_pools__1__zoone="x", node_pools__0__zone="<zone>")
    result = run("validate", write(tmp_path / "cluster.json", document))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "2 mistakes" in result.stderr
    assert "node_pools[1].zoone" in result.stderr
    assert "did you mean zone?" in result.stderr
    assert "node_pools[0].zone" in result.stderr


def test_mistakes_in_json_are_for_programs(tmp_path: Path) -> None:
    path = write(tmp_path / "cluster.json", changed(node_pools__1__zone="<zone>"))
    result = run("validate", path, "--json")
    assert result.exit_code == 2
    answer = json.loads(result.stdout)
    assert answer["valid"] is False
    assert [error["path"] for error in answer["errors"]] == ["node_pools[1].zone"]


def test_summary_in_json_is_for_programs() -> None:
    answer = json.loads(run("validate", EXAMPLE, "--json").stdout)
    assert answer["valid"] is True
    assert answer["cluster_id"] == "flexvm"
    assert [pool["id"] for pool in answer["pools"]] == ["login", "a3u"]


def test_cluster_id_option_wins() -> None:
    assert (
        json.loads(run("validate", EXAMPLE, "--cluster-id", "b2", "--json").stdout)["cluster_id"]
        == "b2"
    )
    assert run("validate", EXAMPLE, "--cluster-id", "no-hyphen").exit_code == 2


@pytest.mark.parametrize("command", ["validate", "render"])
def test_missing_file_and_directory_are_mistakes_not_tracebacks(
    tmp_path: Path, command: str
) -> None:
    more = ("--output", str(tmp_path), *VERSION) if command == "render" else ()
    for path, problem in ((tmp_path / "none", "no such file"), (tmp_path, "is a directory")):
        result = run(command, path, *more)
        assert result.exit_code == 2
        assert problem in result.stderr


def test_control_characters_of_a_file_do_not_reach_the_terminal(tmp_path: Path) -> None:
    document = changed(display_name="\x1b[2J\ud800", **{"node_pools__1__\x1b]0;x\x07": 1})
    result = run("validate", write(tmp_path / "cluster.json", document))
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr + result.stdout


def test_help_teaches_with_an_example() -> None:
    for command in ("validate", "render"):
        assert f"slurm-hooks {command} /etc/slurm-hooks/" in run(command, "--help").stdout


def test_help_imports_neither_google_nor_a_web_server() -> None:
    code = (
        "import sys, slurm_hooks.cli.main as m; "
        "print([n for n in ('google', 'starlette', 'uvicorn', 'pydantic') if n in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout == "[]\n"


def test_render_writes_everything_and_names_the_includes(tmp_path: Path) -> None:
    result = run("render", EXAMPLE, "--output", tmp_path / "slurm", *VERSION)
    assert result.exit_code == 0
    assert rendered(tmp_path / "slurm") == {
        "gres.conf",
        "slurm-hooks.conf",
        "slurm.conf.d/nodes.conf",
        "slurm.conf.d/partitions.conf",
        "slurm.conf.d/power_save.conf",
        "slurm.conf.d/scheduler.conf",
        "slurm.conf.d/health.conf",
    }
    assert "Include slurm.conf.d/power_save.conf" in result.stdout
    for name in rendered(tmp_path / "slurm"):
        mode = stat.S_IMODE((tmp_path / "slurm" / name).stat().st_mode)
        assert mode == 0o644, "Slurm's commands read these files as any user"


def test_render_again_changes_only_what_is_new(tmp_path: Path) -> None:
    run("render", EXAMPLE, "--output", tmp_path, *VERSION)
    arguments = ("--suspend-time", "60", "--json")
    answer = json.loads(run("render", EXAMPLE, "--output", tmp_path, *VERSION, *arguments).stdout)
    written = {name for name, state in answer["files"].items() if state == "written"}
    assert written == {"slurm-hooks.conf", "slurm.conf.d/power_save.conf"}
    assert "SuspendTime=60\n" in (tmp_path / "slurm.conf.d" / "power_save.conf").read_text()


def test_script_that_left_the_cluster_file_is_removed_and_a_persons_own_is_not(
    tmp_path: Path,
) -> None:
    document = json.loads(EXAMPLE.read_text())
    slurm_spec = document["orchestrator_spec"]["slurm_spec"]
    file, output = tmp_path / "cluster.json", tmp_path / "slurm"
    slurm_spec["prolog_bash_scripts"] = ["echo 1", "echo 2"]
    file.write_text(json.dumps(document))
    assert run("render", file, "--output", output, *VERSION).exit_code == 0
    (output / "prolog.d" / "50-own.sh").write_text("echo own\n")
    slurm_spec["prolog_bash_scripts"] = ["echo 1"]
    file.write_text(json.dumps(document))
    result = run("render", file, "--output", output, *VERSION)
    assert result.exit_code == 0
    assert sorted(path.name for path in (output / "prolog.d").iterdir()) == ["01.sh", "50-own.sh"]
    assert re.search(r"removed +\S*prolog\.d/02\.sh", result.output)


def test_nodes_may_have_programs_elsewhere_and_do_without_cgroups(tmp_path: Path) -> None:
    arguments = ("--node-programs-directory", "/opt/node/bin", "--no-contain")
    assert run("render", EXAMPLE, "--output", tmp_path, *VERSION, *arguments).exit_code == 0
    text = (tmp_path / "slurm.conf.d" / "health.conf").read_text()
    assert "\nProlog=/opt/node/bin/slurm-hooks-prolog\n" in text
    assert "\nPrologFlags=Alloc,DeferBatch" in text


def test_foreign_and_edited_files_are_kept_and_then_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "gres.conf").write_text("NodeName=mine Name=gpu File=/dev/nvidia0\n")
    result = run("render", EXAMPLE, "--output", tmp_path, *VERSION)
    assert result.exit_code == 2
    assert "gres.conf" in result.stderr
    assert rendered(tmp_path) == {"gres.conf"}

    assert run("render", EXAMPLE, "--output", tmp_path, *VERSION, "--force").exit_code == 0
    nodes = tmp_path / "slurm.conf.d" / "nodes.conf"
    edited = nodes.read_text().replace("Weight=10", "Weight=20")
    nodes.write_text(edited)
    result = run("render", EXAMPLE, "--output", tmp_path, "--slurm-version", "22.05")
    assert result.exit_code == 2
    assert "nodes.conf" in result.stderr
    assert nodes.read_text() == edited


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--slurm-version", "20.11"), "before 22.05"),
        (("--slurm-version", "x"), "no Slurm version"),
        ((*VERSION, "--programs-directory", "bin"), "programs_directory"),
        ((*VERSION, "--suspend-time", "0"), "suspend_time_seconds"),
    ],
)
def test_options_that_cannot_be_rendered_are_mistakes(
    tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    result = run("render", EXAMPLE, "--output", tmp_path, *options)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert rendered(tmp_path) == set()


def test_output_that_cannot_be_a_directory_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("render", EXAMPLE, "--output", tmp_path / "file", *VERSION)
    assert result.exit_code == 2
    assert os.strerror(20) in result.stderr
