"""The commands that check prints are ones that gcloud takes; some are carried out by it."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks.compute.google_session import GoogleSession
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.facts import QuotaName, ZonalName
from slurm_hooks.prerequisites.google_project import GoogleProject
from slurm_hooks.prerequisites.permissions import ACT_AS
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.unit.prerequisites.cluster_files import INSTANCES, RESERVATION, SECRET_VERSION

GCLOUD = shutil.which("gcloud")
SECONDS = 90
NETWORK = "projects/demo/global/networks/n"
SUBNETWORK = "projects/demo/regions/us-central1/subnetworks/s"
IMAGE = "projects/demo/global/images/i"
SECRET = "projects/demo/secrets/munge"
ACCOUNT = "nodes@demo.iam.gserviceaccount.com"
MEMBER = f"serviceAccount:{ACCOUNT}"
DISK = ZonalName("us-central1-a", "pd-ssd")
EXAMPLES: list[tuple[Callable[..., commands.Command], tuple[Any, ...]]] = [
    (
        commands.grant,
        (
            "demo",
            MEMBER,
            "roles/viewer",
        ),
    ),
    (
        commands.grant_on_account,
        (
            "demo",
            ACCOUNT,
            MEMBER,
            "roles/viewer",
        ),
    ),
    (
        commands.grant_on_secret,
        (
            SECRET,
            MEMBER,
            "roles/viewer",
        ),
    ),
    (
        commands.create_account,
        (
            "demo",
            ACCOUNT,
        ),
    ),
    (
        commands.enable,
        (
            "demo",
            "file.googleapis.com",
        ),
    ),
    (
        commands.create_network,
        (
            NETWORK,
            True,
        ),
    ),
    (
        commands.create_network,
        (
            NETWORK,
            False,
        ),
    ),
    (
        commands.create_subnetwork,
        (
            SUBNETWORK,
            NETWORK,
        ),
    ),
    (commands.list_images, (IMAGE,)),
    (commands.restore_image, (IMAGE,)),
    (
        commands.list_zones_with,
        (
            "demo",
            "disk-types",
            DISK,
        ),
    ),
    (
        commands.list_zones_with,
        (
            "demo",
            "machine-types",
            DISK,
        ),
    ),
    (
        commands.list_zones_with,
        (
            "demo",
            "accelerator-types",
            DISK,
        ),
    ),
    (
        commands.raise_quota,
        (
            "demo",
            "us-central1",
            QuotaName("GPUS_PER_GPU_FAMILY", "NVIDIA_H200"),
            16,
        ),
    ),
    (
        commands.raise_quota,
        (
            "demo",
            "",
            QuotaName("GPUS_ALL_REGIONS"),
            16,
        ),
    ),
    (
        commands.create_reservation,
        (
            RESERVATION,
            "a4-highgpu-8g",
            3,
        ),
    ),
    (
        commands.resize_reservation,
        (
            f"{RESERVATION}/reservationBlocks/b1",
            3,
        ),
    ),
    (
        commands.create_filestore,
        (
            f"{INSTANCES}/home",
            "n",
        ),
    ),
    (
        commands.create_lustre,
        (
            f"{INSTANCES}/scratch",
            NETWORK,
        ),
    ),
    (
        commands.describe_file_system,
        (
            "filestore",
            f"{INSTANCES}/home",
        ),
    ),
    (
        commands.describe_file_system,
        (
            "lustre",
            f"{INSTANCES}/scratch",
        ),
    ),
    (
        commands.create_secret,
        (
            SECRET_VERSION,
            "/etc/munge/munge.key",
        ),
    ),
    (
        commands.add_secret_version,
        (
            SECRET_VERSION,
            "/etc/munge/munge.key",
        ),
    ),
    (commands.enable_secret_version, (SECRET_VERSION,)),
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(GCLOUD is None, reason="gcloud is not installed"),
]


def gcloud(directory: Path, arguments: Sequence[str], **environment: str) -> str:
    """Run gcloud with no settings but these; its standard output."""
    done = subprocess.run(
        [str(GCLOUD), *arguments],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "CLOUDSDK_CONFIG": str(directory / "gcloud"),
            "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def test_every_command_has_an_example_here() -> None:
    made = {
        function
        for _, function in inspect.getmembers(commands, inspect.isfunction)
        if function.__annotations__["return"] == "Command"
    }
    assert {function for function, _ in EXAMPLES} == made


def test_gcloud_takes_every_command_that_check_can_print(tmp_path: Path) -> None:
    file = tmp_path / "commands.json"
    wanted = [{"command_string": shlex.join(make(*arguments))} for make, arguments in EXAMPLES]
    file.write_text(json.dumps(wanted))
    answer = gcloud(tmp_path, ["meta", "lint-gcloud-commands", f"--commands-file={file}"])
    checked = json.loads(answer)
    wrong = [(one["command_string"], one["error_message"]) for one in checked if not one["success"]]
    assert wrong == []
    assert len(checked) == len(EXAMPLES)


def test_gcloud_grants_and_enables_in_the_emulated_project_what_check_says(
    emulator: EmulatorControl, tmp_path: Path
) -> None:
    somebody = "user:somebody@example.com"
    emulator.project.put_service_account(ACCOUNT)
    emulator.project.put_secret("munge", b"key")
    emulator.project.set_service("file.googleapis.com", enabled=False)
    services = ("CLOUDRESOURCEMANAGER", "SERVICEUSAGE", "SECRETMANAGER", "IAM")
    places = {
        f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{service}": f"{emulator.url}/" for service in services
    }
    environment = {
        **places,
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "NO_PROXY": "127.0.0.1",
    }
    for command in (
        commands.grant("demo", somebody, "roles/compute.instanceAdmin.v1"),
        commands.grant_on_account("demo", ACCOUNT, somebody, "roles/iam.serviceAccountUser"),
        commands.grant_on_secret(SECRET, somebody, "roles/secretmanager.secretAccessor"),
        commands.enable("demo", "file.googleapis.com"),
    ):
        gcloud(tmp_path, command[1:], **environment)
    emulator.project.set_caller(somebody)
    client = GoogleProject("demo", GoogleSession(emulator.url, "anonymous"))
    asked = ["compute.instances.create"]
    assert client.permissions(asked) == set(asked)
    assert client.account_permissions(ACCOUNT, [ACT_AS]) == {ACT_AS}
    emulator.project.grant("roles/serviceusage.serviceUsageViewer", somebody)
    assert "file.googleapis.com" in client.services()
    emulator.project.grant("roles/secretmanager.viewer", somebody)
    assert client.secret_policy(SECRET)[0].members == (somebody,)
