"""`slurm-hooks check` before an emulated project: each thing broken, named, and mended as told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from slurm_hooks.cli.main import app
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites.google_project import project_client
from slurm_hooks.prerequisites.model import Finding, Outcome
from slurm_hooks.prerequisites.run import check_prerequisites
from slurm_hooks.sandbox.box.provisions import provide, provisions_of
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.broken_projects import AGENT, AGENT_ROLE, CALLER, CASES, IMAGE, Case
from tests.emulator.mending import perform
from tests.emulator.running import emulator_in_thread
from tests.unit.cluster.files import build
from tests.unit.prerequisites.cluster_files import rich_document

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running() -> Iterator[EmulatorControl]:
    with emulator_in_thread() as control:
        yield control


@pytest.fixture
def emulator(running: EmulatorControl, tmp_path: Path) -> EmulatorControl:
    """An emulator whose project has all that the rich cluster needs, and nothing is broken."""
    running.project.reset()
    key = tmp_path / "munge.key"
    key.write_bytes(b"key")
    provide(running, provisions_of(rich_cluster()), key)
    return running


def rich_cluster() -> Cluster:
    return build(rich_document())


def found(control: EmulatorControl) -> dict[str, Finding]:
    """All findings by `CHECK: SUBJECT`."""
    values = {"Project": "", "ApiEndpoint": control.url, "ApiCredentials": "anonymous"}
    cluster = rich_cluster()
    findings = check_prerequisites(cluster, project_client(values, cluster))
    return {f"{one.check}: {one.subject}": one for one in findings}


def not_passed(control: EmulatorControl) -> dict[str, Finding]:
    return {key: one for key, one in found(control).items() if one.outcome is not Outcome.PASS}


def test_a_healthy_project_passes_in_everything(emulator: EmulatorControl) -> None:
    findings = found(emulator)
    assert {one.outcome for one in findings.values()} == {Outcome.PASS}
    assert len(findings) > 25


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_what_is_broken_is_named_with_the_command_that_mends_it(
    emulator: EmulatorControl, case: Case
) -> None:
    for breaks in case.breaks:
        breaks(emulator)
    bad = not_passed(emulator)
    assert bad[case.finding].outcome is case.outcome
    if not case.mends:
        assert set(bad) == {case.finding}
        return
    perform(emulator, bad[case.finding].fix)
    rest = not_passed(emulator)
    assert case.finding not in rest
    assert set(rest) <= case.others


def test_a_role_from_an_organisation_that_may_be_read_counts(emulator: EmulatorControl) -> None:
    emulator.project.revoke(AGENT_ROLE, AGENT)
    emulator.project.grant("roles/editor", AGENT, inherited=True)
    emulator.project.grant("roles/iam.securityReviewer", CALLER, inherited=True)
    emulator.project.set_parent("organizations/1")
    assert not_passed(emulator) == {}


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, ["check", *(str(argument) for argument in arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def files(emulator: EmulatorControl, tmp_path: Path) -> tuple[Path, Path]:
    """The cluster file and the settings of a controller."""
    cluster, settings = tmp_path / "cluster.json", tmp_path / "slurm-hooks.conf"
    cluster.write_text(json.dumps(rich_document()))
    settings.write_text(
        f"ClusterConfig={cluster}\nApiEndpoint={emulator.url}\nApiCredentials=anonymous\n"
    )
    return cluster, settings


def test_the_command_shows_a_table_and_ends_well(files: tuple[Path, Path]) -> None:
    result = run("--settings", files[1])
    assert result.exit_code == 0, result.output
    assert "project demo:" in result.stdout
    assert "failed" not in result.stdout
    assert "own permissions" in result.stdout


def test_the_command_prints_what_to_type_and_fails(
    emulator: EmulatorControl, files: tuple[Path, Path]
) -> None:
    emulator.project.revoke(AGENT_ROLE, AGENT)
    result = run(files[0], "--settings", files[1])
    assert result.exit_code == 1
    assert (
        f"gcloud projects add-iam-policy-binding demo --member={AGENT}"
        " --role=roles/compute.instanceAdmin.v1 --condition=None\n"
    ) in result.stdout
    assert "2 failed" in result.stdout
    answer = json.loads(run("--settings", files[1], "--json").stdout)
    failed = [one for one in answer["findings"] if one["outcome"] == "FAIL"]
    assert (answer["good"], len(failed), failed[0]["fix"][0]) == (False, 2, "gcloud")


def test_what_no_command_mends_is_printed_below_the_table_too(
    emulator: EmulatorControl, files: tuple[Path, Path]
) -> None:
    emulator.project.put_image("demo", "node", architecture="ARM64")
    result = run("--settings", files[1])
    assert f"FAIL {IMAGE}\n  is for ARM64, n2-standard-8 is X86_64\n" in result.stdout


def test_a_service_that_does_not_answer_is_told_once_for_each_thing_and_soon(
    files: tuple[Path, Path],
) -> None:
    files[1].write_text("ApiEndpoint=http://127.0.0.1:9\nApiCredentials=anonymous\n")
    result = run(files[0], "--settings", files[1], "--json")
    outcomes = {one["outcome"] for one in json.loads(result.stdout)["findings"]}
    assert (result.exit_code, outcomes) == (0, {"UNKNOWN"})
