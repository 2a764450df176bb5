"""The unmodified command line client of Compute Engine drives the emulator.

A call takes gcloud seconds, so this is one story in two tests rather than one test a command.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.compute_world import GLOBAL, MACHINE_TYPE, ZONE, template_specification
from tests.waiting import eventually

GCLOUD = shutil.which("gcloud")
CALL_SECONDS = 90

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(GCLOUD is None, reason="gcloud is not installed"),
]

Gcloud = Callable[..., Any]


@pytest.fixture
def gcloud(emulator: EmulatorControl, tmp_path: Path) -> Gcloud:
    """Runs `gcloud compute instance-groups managed …` in one zone and gives its JSON answer."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{emulator.url}/compute/v1/",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "CLOUDSDK_CORE_PROJECT": "demo",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "NO_PROXY": "127.0.0.1",
    }

    def run(*words: str) -> Any:
        command = [str(GCLOUD), "compute", "instance-groups", "managed", *words]
        done = subprocess.run(
            [*command, f"--zone={ZONE}", "--format=json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=CALL_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run


@pytest.fixture
def template(emulator: EmulatorControl) -> str:
    """The name of a FLEX_START template."""
    client = GoogleComputeClient("demo", emulator.url, "anonymous")
    operation = client.insert_template(GLOBAL, template_specification(), "template")
    done = eventually(lambda: client.get_operation(operation), lambda now: now.done)
    assert done.error is None
    return "a3u-g1"


def make_group(gcloud: Gcloud, template: str) -> Any:
    return gcloud(
        "create",
        "g",
        "--size=0",
        f"--template={template}",
        "--default-action-on-vm-failure=do-nothing",
    )


def make_request(gcloud: Gcloud, name: str) -> Any:
    flags = (f"--resize-request={name}", "--resize-by=2", "--requested-run-duration=1h")
    return gcloud("resize-requests", "create", "g", *flags)


def test_a_request_waits_and_is_cancelled(
    gcloud: Gcloud, emulator: EmulatorControl, template: str
) -> None:
    emulator.set_capacity(ZONE, MACHINE_TYPE, 0)
    make_group(gcloud, template)
    assert gcloud("describe", "g")["targetSize"] == 0
    make_request(gcloud, "r")
    request = gcloud("resize-requests", "describe", "g", "--resize-request=r")
    assert request["state"] in ("CREATING", "ACCEPTED")
    assert request["resizeBy"] == 2
    assert request["requestedRunDuration"]["seconds"] == "3600"
    gcloud("resize-requests", "cancel", "g", "--resize-requests=r")
    (listed,) = gcloud("resize-requests", "list", "g")
    assert (listed["name"], listed["state"]) == ("r", "CANCELLED")
    gcloud("resize-requests", "delete", "g", "--resize-requests=r")
    assert gcloud("resize-requests", "list", "g") == []


def test_granted_vms_are_listed_and_deleted(
    gcloud: Gcloud, emulator: EmulatorControl, template: str
) -> None:
    make_group(gcloud, template)
    make_request(gcloud, "r")
    eventually(emulator.status, lambda status: status.instances == 2)
    members = gcloud("list-instances", "g")
    assert len(members) == 2
    first = members[0]["instance"].rpartition("/")[2]
    gcloud("delete-instances", "g", f"--instances={first}")
    eventually(emulator.status, lambda status: status.instances == 1)
    assert gcloud("describe", "g")["targetSize"] == 1
