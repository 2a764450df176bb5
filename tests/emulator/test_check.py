"""`slurm-hooks check` before an emulated project: each thing broken, named, and mended as told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from slurm_hooks.cli.main import app
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites.google_project import project_client
from slurm_hooks.prerequisites.model import Finding, Outcome
from slurm_hooks.prerequisites.run import check_prerequisites
from slurm_hooks.sandbox.box.provisions import provide, provisions_of
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.mending import perform
from tests.emulator.running import emulator_in_thread
from tests.unit.cluster.files import build
from tests.unit.prerequisites.cluster_files import ACCOUNT, RESERVATION, rich_document

pytestmark = pytest.mark.slow

ZONE = "us-central1-a"
AGENT = "serviceAccount:123456789012@cloudservices.gserviceaccount.com"
AGENT_ROLE = "roles/compute.instanceGroupManagerServiceAgent"
CALLER = "serviceAccount:slurm-hooks@demo.iam.gserviceaccount.com"
USER_ROLE = "roles/iam.serviceAccountUser"
READER_ROLE = "roles/secretmanager.secretAccessor"
Break = Callable[[EmulatorControl], object]


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


@dataclass(frozen=True)
class Case:
    """Something broken: the finding that names it, how it stands, and if the command mends it."""

    name: str
    breaks: tuple[Break, ...]
    finding: str
    outcome: Outcome = Outcome.FAIL
    mends: bool = True
    others: frozenset[str] = frozenset()
    """Findings that cannot be right either."""


def case(name: str, breaks: Break | tuple[Break, ...], finding: str, **more: Any) -> Case:
    return Case(name, breaks if isinstance(breaks, tuple) else (breaks,), finding, **more)


FILESTORE = "Filestore instance: projects/demo/locations/us-central1-a/instances/home"
LUSTRE = "Lustre instance: projects/demo/locations/us-central1-a/instances/scratch"
SECRET = "key secret: projects/demo/secrets/munge/versions/1"
SECRET_READ = "key secret: projects/demo/secrets/munge, read by nodes"
IMAGE = "image: projects/demo/global/images/node"
CREATES = "Google APIs Service Agent: may create VMs"
ATTACHES = f"Google APIs Service Agent: may attach {ACCOUNT}"
CASES = [
    case(
        "agent without a role",
        lambda c: c.project.revoke(AGENT_ROLE, AGENT),
        CREATES,
        others=frozenset({ATTACHES}),
    ),
    case(
        "agent that may create and not attach",
        (
            lambda c: c.project.revoke(AGENT_ROLE, AGENT),
            lambda c: c.project.grant("roles/compute.instanceAdmin.v1", AGENT),
        ),
        ATTACHES,
    ),
    case(
        "agent with a condition",
        (
            lambda c: c.project.revoke(AGENT_ROLE, AGENT),
            lambda c: c.project.grant("roles/editor", AGENT, condition="resource.type == 'x'"),
        ),
        CREATES,
        outcome=Outcome.UNKNOWN,
        others=frozenset({ATTACHES}),
    ),
    case(
        "agent whose role may be inherited",
        (
            lambda c: c.project.revoke(AGENT_ROLE, AGENT),
            lambda c: c.project.grant("roles/editor", AGENT, inherited=True),
            lambda c: c.project.set_parent("organizations/1"),
        ),
        CREATES,
        outcome=Outcome.UNKNOWN,
        others=frozenset({ATTACHES}),
    ),
    case(
        "policy that the caller may not see",
        lambda c: c.project.revoke("roles/browser", CALLER),
        CREATES,
        outcome=Outcome.UNKNOWN,
    ),
    case(
        "caller without its role",
        lambda c: c.project.revoke("roles/compute.instanceAdmin.v1", CALLER),
        "own permissions: slurm-hooks@demo.iam.gserviceaccount.com",
    ),
    case(
        "caller that may not act as the node account",
        lambda c: c.project.revoke(USER_ROLE, CALLER),
        f"node service account: {ACCOUNT}",
    ),
    case(
        "node account that is gone",
        lambda c: c.project.remove(f"serviceAccounts/{ACCOUNT}"),
        f"node service account: {ACCOUNT}",
    ),
    case(
        "API that is disabled",
        lambda c: c.project.set_service("lustre.googleapis.com", enabled=False),
        "enabled API: lustre.googleapis.com",
        others=frozenset({LUSTRE}),
    ),
    case(
        "network that is gone",
        lambda c: c.project.remove("networks/default"),
        "network: projects/demo/global/networks/default",
    ),
    case(
        "subnetwork that is gone",
        lambda c: c.project.remove("subnetworks/us-central1/default"),
        "subnetwork: projects/demo/regions/us-central1/subnetworks/default",
    ),
    case(
        "subnetwork of another network",
        (
            lambda c: c.project.put_network("other"),
            lambda c: c.project.put_subnetwork("us-central1", "default", "other"),
        ),
        "subnetwork: projects/demo/regions/us-central1/subnetworks/default",
        mends=False,
    ),
    case(
        "image that is missing",
        lambda c: c.project.put_image("demo", "node", exists=False),
        IMAGE,
        mends=False,
    ),
    case(
        "image that is withdrawn",
        lambda c: c.project.put_image("demo", "node", deprecated="OBSOLETE"),
        IMAGE,
    ),
    case(
        "image that is deprecated",
        lambda c: c.project.put_image("demo", "node", deprecated="DEPRECATED"),
        IMAGE,
        outcome=Outcome.WARN,
        mends=False,
    ),
    case(
        "image of another architecture",
        lambda c: c.project.put_image("demo", "node", architecture="ARM64"),
        IMAGE,
        mends=False,
    ),
    case(
        "machine type that the zone lacks",
        lambda c: c.project.offer(ZONE, "machineTypes", "a3-ultragpu-8g", offered=False),
        f"machine type: a3-ultragpu-8g in {ZONE}",
        mends=False,
    ),
    case(
        "disk type that the zone lacks",
        lambda c: c.project.offer(ZONE, "diskTypes", "hyperdisk-balanced", offered=False),
        f"disk type: hyperdisk-balanced in {ZONE}",
        mends=False,
    ),
    case(
        "accelerator type that the zone lacks",
        lambda c: c.project.offer(ZONE, "acceleratorTypes", "nvidia-h200-141gb", offered=False),
        f"accelerator type: nvidia-h200-141gb in {ZONE}",
        mends=False,
    ),
    case(
        "no quota of preemptible GPUs",
        lambda c: c.set_quota("us-central1", "PREEMPTIBLE_NVIDIA_H200_GPUS", 0),
        "quota: PREEMPTIBLE_NVIDIA_H200_GPUS in us-central1",
    ),
    case(
        "less quota than all nodes use",
        lambda c: c.set_quota("us-central1", "PREEMPTIBLE_NVIDIA_H200_GPUS", 8),
        "quota: PREEMPTIBLE_NVIDIA_H200_GPUS in us-central1",
        outcome=Outcome.WARN,
    ),
    case(
        "no quota of resize requests",
        lambda c: c.set_quota("us-central1", "ACTIVE_RESIZE_REQUESTS", 0),
        "quota: ACTIVE_RESIZE_REQUESTS in us-central1",
    ),
    case(
        "reservation that is gone",
        lambda c: c.project.remove(f"reservations/{ZONE}/r1"),
        f"reservation: {RESERVATION}",
    ),
    case(
        "reservation that is too small",
        lambda c: c.project.put_reservation(ZONE, "r1", "a4-highgpu-8g", count=1),
        "reservation size: pool a4r",
        outcome=Outcome.WARN,
    ),
    case(
        "reservation of another machine type",
        lambda c: c.project.put_reservation(ZONE, "r1", "a3-ultragpu-8g", count=3),
        f"reservation: {RESERVATION}",
        mends=False,
    ),
    case("home that is gone", lambda c: c.project.remove(f"filestores/{ZONE}/home"), FILESTORE),
    case(
        "home in another network",
        lambda c: c.project.put_filestore(ZONE, "home", network="other"),
        FILESTORE,
        mends=False,
    ),
    case(
        "home that is not ready",
        lambda c: c.project.put_filestore(ZONE, "home", state="REPAIRING"),
        FILESTORE,
        mends=False,
    ),
    case(
        "nodes that may not read where storage is",
        lambda c: c.project.revoke("roles/file.viewer", f"serviceAccount:{ACCOUNT}"),
        "node service account: may read Filestore instances of demo",
    ),
    case("Lustre that is gone", lambda c: c.project.remove(f"lustres/{ZONE}/scratch"), LUSTRE),
    case(
        "secret that is gone",
        lambda c: c.project.remove("secrets/munge"),
        SECRET,
        others=frozenset({SECRET_READ}),
    ),
    case(
        "secret version that is disabled",
        lambda c: c.project.disable_secret_version("munge", 1),
        SECRET,
    ),
    case(
        "secret that nodes may not read",
        lambda c: c.project.revoke(
            READER_ROLE, f"serviceAccount:{ACCOUNT}", resource="secrets/munge"
        ),
        SECRET_READ,
    ),
]


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
