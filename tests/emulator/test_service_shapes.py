"""What the emulator answers about the project has only members that Google's clients know.

The clients themselves read past members that they do not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.cloud import (
    cloudquotas_v1,
    filestore_v1,
    lustre_v1,
    resourcemanager_v3,
    secretmanager_v1,
)
from google.cloud import service_usage_v1 as service_usage
from google.iam.v1 import policy_pb2
from google.protobuf import json_format

from slurm_hooks.compute import wire
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.http_api import Api
from tests.emulator.running import emulator_in_thread

pytestmark = pytest.mark.slow

COMPUTE = "/compute/v1/projects/demo"
PROJECT = "/v1/projects/demo"
QUOTAS = f"{PROJECT}/locations/global/services/compute.googleapis.com/quotaInfos"
HOME = f"{PROJECT}/locations/us-central1-a/instances/home"
REGION = f"{COMPUTE}/regions/us-central1"
ZONE = f"{COMPUTE}/zones/us-central1-a"


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """An emulator with one of each thing."""
    with emulator_in_thread() as control:
        furnish(control)
        yield Api(control.url)


def furnish(control: EmulatorControl) -> None:
    project = control.project
    project.set_parent("organizations/1")
    project.grant("roles/editor", "user:a@example.com", condition="resource.name == 'x'")
    project.put_filestore("us-central1-a", "home")
    project.put_lustre("us-central1-a", "home", network="projects/demo/global/networks/default")
    project.put_reservation("us-central1-a", "r1", "a4-highgpu-8g")
    project.put_image("demo", "old", deprecated="DEPRECATED")
    project.put_secret("munge", b"key", readers=["user:a@example.com"])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{COMPUTE}/global/networks/default", "Network"),
        (f"{COMPUTE}/global/networks", "NetworkList"),
        (f"{REGION}/subnetworks/default", "Subnetwork"),
        (f"{REGION}/subnetworks", "SubnetworkList"),
        (f"{COMPUTE}/global/images/old", "Image"),
        (f"{COMPUTE}/global/images/family/any", "Image"),
        (f"{ZONE}/reservations/r1", "Reservation"),
        (f"{ZONE}/reservations", "ReservationList"),
        (f"{ZONE}/diskTypes/pd-ssd", "DiskType"),
        (f"{ZONE}/acceleratorTypes/nvidia-b200", "AcceleratorType"),
        (f"{ZONE}/machineTypes/a4x-highgpu-4g", "MachineType"),
        (REGION, "Region"),
        (COMPUTE, "Project"),
    ],
)
def test_answers_of_compute_engine_hold_what_its_messages_allow(
    api: Api, path: str, message: str
) -> None:
    answer = api.get(path)
    assert answer.status == 200
    assert wire.problems(message, answer.body) == []


OPTIONS = {"options": {"requestedPolicyVersion": 3}}


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("GET", "/v3/projects/demo", None, resourcemanager_v3.Project.pb()),
        ("POST", "/v3/projects/demo:getIamPolicy", OPTIONS, policy_pb2.Policy),
        ("GET", f"{PROJECT}/services", None, service_usage.ListServicesResponse.pb()),
        ("GET", f"{PROJECT}/services/file.googleapis.com", None, service_usage.Service.pb()),
        (
            "GET",
            f"{QUOTAS}/GPUS-PER-GPU-FAMILY-per-project-region",
            None,
            cloudquotas_v1.QuotaInfo.pb(),
        ),
        ("GET", HOME, None, filestore_v1.Instance.pb()),
        ("GET", f"/lustre{HOME}", None, lustre_v1.Instance.pb()),
        ("GET", f"/lustre{HOME.rpartition('/')[0]}", None, lustre_v1.ListInstancesResponse.pb()),
        ("GET", f"{PROJECT}/secrets/munge", None, secretmanager_v1.Secret.pb()),
        (
            "GET",
            f"{PROJECT}/secrets/munge/versions/latest",
            None,
            secretmanager_v1.SecretVersion.pb(),
        ),
        ("GET", f"{PROJECT}/secrets/munge:getIamPolicy", None, policy_pb2.Policy),
    ],
)
def test_answers_of_other_services_hold_what_their_messages_allow(
    api: Api, method: str, path: str, body: Any, message: Any
) -> None:
    answer = api.call(method, path, body)
    assert answer.status == 200
    parsed = json_format.ParseDict(answer.body, message())
    assert parsed.ListFields()


def test_an_error_of_another_service_has_its_status_word_and_no_reasons(api: Api) -> None:
    answer = api.get(f"{PROJECT}/secrets/none/versions/1")
    assert (answer.status, answer.body["error"]["status"]) == (404, "NOT_FOUND")
    assert "errors" not in answer.body["error"]
    unknown = api.get(f"{PROJECT}/services?unknown=1")
    assert (unknown.status, unknown.body["error"]["status"]) == (400, "INVALID_ARGUMENT")
    foreign = api.get("/v3/projects/other")
    assert (foreign.status, foreign.body["error"]["status"]) == (403, "PERMISSION_DENIED")
