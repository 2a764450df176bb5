"""The emulator's other services, seen by Google's own clients."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import google.api_core.exceptions as errors
import pytest

from slurm_hooks.sandbox.emulator.control import EmulatorControl, EmulatorControlError
from slurm_hooks.sandbox.emulator.metadata import TOKEN_PREFIX
from tests.emulator.emulated_project import TEMPLATE, ZONAL_GROUP
from tests.emulator.google_services import client_of
from tests.emulator.http_api import GROUPS, TEMPLATES, Api
from tests.emulator.running import emulator_in_thread

pytestmark = pytest.mark.slow

AGENT = "serviceAccount:123456789012@cloudservices.gserviceaccount.com"
AGENT_ROLE = "roles/compute.instanceGroupManagerServiceAgent"
CALLER = "serviceAccount:slurm-hooks@demo.iam.gserviceaccount.com"
ACCOUNT = "slurm-hooks@demo.iam.gserviceaccount.com"
NODE_ACCOUNT = "nodes@demo.iam.gserviceaccount.com"
SOMEBODY = "user:somebody@example.com"
PROJECT = "projects/demo"
HOME = f"{PROJECT}/locations/us-central1-a/instances/home"
NETWORK = f"{PROJECT}/global/networks/default"


@pytest.fixture(scope="module")
def running() -> Iterator[EmulatorControl]:
    with emulator_in_thread() as control:
        yield control


@pytest.fixture
def emulator(running: EmulatorControl) -> Iterator[EmulatorControl]:
    """One emulator for all tests here; each mends what it has broken."""
    yield running
    running.project.set_caller(CALLER)


def roles_of(policy: Any, member: str) -> set[str]:
    return {one.role for one in policy.bindings if member in one.members}


def test_the_project_tells_its_number_and_who_has_which_role(emulator: EmulatorControl) -> None:
    projects = client_of("projects", emulator.url)
    found = projects.get_project(name=PROJECT)
    assert (found.name, found.project_id) == ("projects/123456789012", "demo")
    policy = projects.get_iam_policy(request={"resource": PROJECT})
    assert roles_of(policy, AGENT) == {AGENT_ROLE}


def test_a_changed_policy_works_at_once_and_a_stale_one_is_refused(
    emulator: EmulatorControl,
) -> None:
    projects = client_of("projects", emulator.url)
    policy = projects.get_iam_policy(request={"resource": PROJECT})
    policy.bindings.add(role="roles/compute.admin", members=[SOMEBODY])
    projects.set_iam_policy(request={"resource": PROJECT, "policy": policy})
    emulator.project.set_caller(SOMEBODY)
    asked = ["compute.instances.create", "secretmanager.versions.access"]
    granted = projects.test_iam_permissions(resource=PROJECT, permissions=asked)
    assert list(granted.permissions) == asked[:1]
    with pytest.raises(errors.Conflict):
        projects.set_iam_policy(request={"resource": PROJECT, "policy": policy})
    assert emulator.project.revoke("roles/compute.admin", SOMEBODY) == 1


def test_an_inherited_role_works_and_is_not_shown(emulator: EmulatorControl) -> None:
    emulator.project.grant("roles/owner", SOMEBODY, inherited=True)
    emulator.project.set_caller(SOMEBODY)
    projects = client_of("projects", emulator.url)
    asked = ["compute.instances.create"]
    assert projects.test_iam_permissions(resource=PROJECT, permissions=asked).permissions == asked
    policy = projects.get_iam_policy(request={"resource": PROJECT})
    assert roles_of(policy, SOMEBODY) == set()
    emulator.project.revoke("roles/owner", SOMEBODY)


@pytest.mark.parametrize(("year", "works"), [(2020, False), (2999, True)])
def test_a_role_with_an_expiry_ends_with_it(
    emulator: EmulatorControl, year: int, works: bool
) -> None:
    expiry = f'request.time < timestamp("{year}-01-01T00:00:00+00:00")'
    emulator.project.grant("roles/compute.admin", SOMEBODY, condition=expiry)
    projects = client_of("projects", emulator.url)
    old = projects.get_iam_policy(request={"resource": PROJECT})
    assert all(not one.condition.expression for one in old.bindings)
    assert "roles/compute.admin" not in roles_of(old, SOMEBODY)
    options = {"requested_policy_version": 3}
    new = projects.get_iam_policy(request={"resource": PROJECT, "options": options})
    assert [one.condition.expression for one in new.bindings if SOMEBODY in one.members] == [expiry]
    emulator.project.set_caller(SOMEBODY)
    asked = ["compute.instances.create"]
    granted = projects.test_iam_permissions(resource=PROJECT, permissions=asked)
    assert bool(granted.permissions) is works
    emulator.project.revoke("roles/compute.admin", SOMEBODY)


def test_who_may_not_look_is_refused(emulator: EmulatorControl) -> None:
    emulator.project.set_caller(SOMEBODY)
    with pytest.raises(errors.Forbidden):
        client_of("projects", emulator.url).get_iam_policy(request={"resource": PROJECT})
    with pytest.raises(errors.Forbidden):
        client_of("secrets", emulator.url).get_secret(name=f"{PROJECT}/secrets/any")


def test_apis_are_listed_page_by_page_and_a_disabled_one_answers_nothing(
    emulator: EmulatorControl,
) -> None:
    services = client_of("services", emulator.url)
    request = {"parent": PROJECT, "filter": "state:ENABLED", "page_size": 3}
    before = [one.config.name for one in services.list_services(request=request)]
    assert "file.googleapis.com" in before
    emulator.project.set_service("file.googleapis.com", enabled=False)
    after = [one.config.name for one in services.list_services(request=request)]
    assert set(before) - set(after) == {"file.googleapis.com"}
    with pytest.raises(errors.Forbidden) as refused:
        client_of("filestores", emulator.url).get_instance(name=HOME)
    assert refused.value.reason == "SERVICE_DISABLED"
    services.enable_service(request={"name": f"{PROJECT}/services/file.googleapis.com"})
    assert "file.googleapis.com" in [
        one.config.name for one in services.list_services(request=request)
    ]


def test_cloud_quotas_knows_what_regions_do_not_list(emulator: EmulatorControl) -> None:
    region = Api(emulator.url).get("/compute/v1/projects/demo/regions/us-east5").body
    assert "PREEMPTIBLE_NVIDIA_H200_GPUS" not in [one["metric"] for one in region["quotas"]]
    emulator.set_quota("us-east5", "PREEMPTIBLE_NVIDIA_H200_GPUS", 24)
    emulator.set_quota("us-east5", "NVIDIA_B200_GPUS", 8)
    quotas = client_of("quotas", emulator.url)
    parent = f"{PROJECT}/locations/global/services/compute.googleapis.com/quotaInfos"
    preemptible = quotas.get_quota_info(
        name=f"{parent}/PREEMPTIBLE-NVIDIA-H200-GPUS-per-project-region"
    )
    values = {one.dimensions["region"]: one.details.value for one in preemptible.dimensions_infos}
    assert values["us-east5"] == 24
    family = quotas.get_quota_info(name=f"{parent}/GPUS-PER-GPU-FAMILY-per-project-region")
    assert [
        one.details.value
        for one in family.dimensions_infos
        if dict(one.dimensions) == {"gpu_family": "NVIDIA_B200", "region": "us-east5"}
    ] == [8]
    with pytest.raises(errors.NotFound):
        quotas.get_quota_info(name=f"{parent}/NVIDIA-B200-GPUS-per-project-region")


def test_a_disabled_compute_engine_refuses_every_call(emulator: EmulatorControl) -> None:
    emulator.project.set_service("compute.googleapis.com", enabled=False)
    answer = Api(emulator.url).get("/compute/v1/projects/demo")
    assert (answer.status, answer.reason) == (403, "accessNotConfigured")
    emulator.project.set_service("compute.googleapis.com", enabled=True)


def test_file_systems_tell_where_they_are(emulator: EmulatorControl) -> None:
    emulator.project.put_filestore("us-central1-a", "home", address="10.0.0.2", share="home")
    emulator.project.put_lustre("us-central1-a", "home", network=NETWORK, share="scratch")
    filestore = client_of("filestores", emulator.url).get_instance(name=HOME)
    assert filestore.state.name == "READY"
    assert [one.name for one in filestore.file_shares] == ["home"]
    assert list(filestore.networks[0].ip_addresses) == ["10.0.0.2"]
    lustre = client_of("lustres", emulator.url).get_instance(name=HOME)
    assert (lustre.state.name, lustre.mount_point) == ("ACTIVE", "10.0.1.2@tcp:/scratch")
    assert lustre.network == NETWORK
    emulator.project.remove("filestores/us-central1-a/home")
    with pytest.raises(errors.NotFound):
        client_of("filestores", emulator.url).get_instance(name=HOME)


def test_a_secret_is_read_by_its_readers_alone(emulator: EmulatorControl) -> None:
    emulator.project.put_secret("munge", b"first")
    assert emulator.project.put_secret("munge", b"\x00key\xff", readers=[SOMEBODY]) == 2
    secrets = client_of("secrets", emulator.url)
    latest = f"{PROJECT}/secrets/munge/versions/latest"
    assert secrets.get_secret_version(name=latest).state.name == "ENABLED"
    with pytest.raises(errors.Forbidden):
        secrets.access_secret_version(name=latest)
    policy = secrets.get_iam_policy(request={"resource": f"{PROJECT}/secrets/munge"})
    assert roles_of(policy, SOMEBODY) == {"roles/secretmanager.secretAccessor"}
    emulator.project.set_caller(SOMEBODY)
    read = secrets.access_secret_version(name=latest)
    assert read.payload.data == b"\x00key\xff"
    assert read.name.endswith("/secrets/munge/versions/2")
    emulator.project.disable_secret_version("munge", 2)
    with pytest.raises(errors.PreconditionFailed):
        secrets.access_secret_version(name=latest)


def test_a_vm_reads_a_secret_as_its_own_service_account(emulator: EmulatorControl) -> None:
    api, latest = Api(emulator.url), f"/v1/{PROJECT}/secrets/key/versions/latest:access"
    emulator.project.put_secret("key", b"secret", readers=[f"serviceAccount:{NODE_ACCOUNT}"])
    template = {**TEMPLATE["properties"], "serviceAccounts": [{"email": NODE_ACCOUNT}]}
    api.do("POST", TEMPLATES, {"name": "t1", "properties": template})
    api.do("POST", GROUPS, ZONAL_GROUP)
    api.make_vms("n-0")
    token = f"{TOKEN_PREFIX}n-0"
    assert api.call("GET", latest).status == 403
    read = api.call("GET", latest, token=token)
    assert base64.b64decode(read.body["payload"]["data"]) == b"secret"
    assert api.call("GET", latest, token=f"{TOKEN_PREFIX}n-1").status == 401


def test_service_accounts_have_policies_of_their_own(emulator: EmulatorControl) -> None:
    api, path = Api(emulator.url), f"/v1/{PROJECT}/serviceAccounts/{ACCOUNT}"
    assert api.get(path).body["email"] == ACCOUNT
    resource = f"serviceAccounts/{ACCOUNT}"
    emulator.project.grant("roles/iam.serviceAccountUser", SOMEBODY, resource=resource)
    policy = api.call("POST", f"{path}:getIamPolicy").body
    assert policy["bindings"] == [{"role": "roles/iam.serviceAccountUser", "members": [SOMEBODY]}]
    emulator.project.set_caller(SOMEBODY)
    asked = {"permissions": ["iam.serviceAccounts.actAs", "iam.serviceAccounts.getIamPolicy"]}
    answer = api.call("POST", f"{path}:testIamPermissions", asked)
    assert answer.body == {"permissions": ["iam.serviceAccounts.actAs"]}
    assert api.call("POST", f"{path}:getIamPolicy").status == 403
    assert api.get(f"/v1/{PROJECT}/serviceAccounts/none@example.com").status == 404
    assert api.get("/v1/projects/-/serviceAccounts/none@example.com").status == 403
    assert api.get(f"/v1/projects/-/serviceAccounts/{ACCOUNT}").status == 200


def test_networks_images_and_reservations_are_there_or_not(emulator: EmulatorControl) -> None:
    api, compute = Api(emulator.url), "/compute/v1/projects/demo"
    assert api.get(f"{compute}/global/networks/own").status == 404
    emulator.project.put_network("own")
    emulator.project.put_subnetwork("us-central1", "part", "own")
    assert api.get(f"{compute}/global/networks/own").body["subnetworks"]
    subnetwork = api.get(f"{compute}/regions/us-central1/subnetworks/part").body
    assert subnetwork["network"].endswith("/projects/demo/global/networks/own")
    emulator.project.remove("networks/own")
    assert api.get(f"{compute}/global/networks/own").status == 404

    image = f"{compute}/global/images/node"
    assert api.get(image).body["architecture"] == "X86_64"
    emulator.project.put_image("demo", "node", deprecated="OBSOLETE")
    assert api.get(image).body["deprecated"] == {"state": "OBSOLETE"}
    assert api.get(f"{compute}/global/images/family/node").status == 404
    emulator.project.put_image("demo", "node", exists=False)
    assert api.get(image).status == 404

    reservation = f"{compute}/zones/us-central1-a/reservations/r1"
    assert api.get(reservation).status == 404
    emulator.project.put_reservation("us-central1-a", "r1", "a4-highgpu-8g", count=3)
    shown = api.get(reservation).body
    assert shown["specificReservation"]["instanceProperties"] == {"machineType": "a4-highgpu-8g"}
    assert shown["specificReservation"]["count"] == "3"


@pytest.mark.parametrize(
    ("collection", "name"),
    [
        ("machineTypes", "a3-ultragpu-8g"),
        ("diskTypes", "hyperdisk-balanced"),
        ("acceleratorTypes", "nvidia-h200-141gb"),
    ],
)
def test_a_zone_does_not_offer_what_it_is_told_not_to(
    emulator: EmulatorControl, collection: str, name: str
) -> None:
    api, path = Api(emulator.url), f"/compute/v1/projects/demo/zones/us-central1-b/{collection}"
    assert api.get(f"{path}/{name}").status == 200
    emulator.project.offer("us-central1-b", collection, name, offered=False)
    assert api.get(f"{path}/{name}").status == 404
    assert name not in [one["name"] for one in api.get(path).body["items"]]
    emulator.project.offer("us-central1-b", collection, name, offered=True)
    assert api.get(f"{path}/{name}").status == 200


def test_control_calls_about_things_that_are_not_there_are_told(
    emulator: EmulatorControl,
) -> None:
    project = emulator.project
    calls: tuple[Callable[[], object], ...] = (
        lambda: project.remove("networks/none"),
        lambda: project.set_service("none.googleapis.com", enabled=True),
        lambda: project.grant("roles/owner", SOMEBODY, resource="secrets/none"),
        lambda: project.offer("us-central1-a", "nothing", "x", offered=True),
    )
    for call in calls:
        with pytest.raises(EmulatorControlError) as refused:
            call()
        assert refused.value.status == 404
