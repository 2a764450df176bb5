"""The emulator over HTTP: errors, replay, paging, faults and the control surface."""

from __future__ import annotations

import http.client
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurm_hooks.sandbox.emulator.control import EmulatorControl, EmulatorControlError
from tests.emulator.emulated_project import MACHINE_TYPE, TEMPLATE, ZONAL_GROUP, ZONE
from tests.emulator.http_api import (
    GROUP,
    GROUPS,
    PROJECT,
    REQUESTS,
    TEMPLATES,
    ZONE_PATH,
    Answer,
    Api,
)
from tests.emulator.running import running_emulator
from tests.emulator_process import EmulatorProcess
from tests.waiting import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared_control() -> Iterator[EmulatorControl]:
    """One emulator for the whole module; each test empties it."""
    with running_emulator() as control:
        yield control


@pytest.fixture
def control(shared_control: EmulatorControl) -> Iterator[EmulatorControl]:
    """An emulator without groups, templates, faults, limits and recorded calls."""
    yield shared_control
    shared_control.clear_faults()
    api = Api(shared_control.url)
    for path in (GROUPS, TEMPLATES):
        for item in api.get(path).body.get("items", []):
            api.do("DELETE", f"{path}/{item['name']}")
    shared_control.set_capacity(ZONE, MACHINE_TYPE, None)
    shared_control.set_behaviour(callsPerMinute=0, waitSeconds=120, lateCancel="http")
    shared_control.clear_calls()


@pytest.fixture
def api(control: EmulatorControl) -> Api:
    return Api(control.url)


def request_id() -> str:
    return str(uuid.uuid4())


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/compute/v1/nothing", 404, "notFound"),
        (f"{PROJECT}/zones/{ZONE}/nothing", 404, "notFound"),
        ("/compute/v1/projects/other/global/instanceTemplates", 404, "notFound"),
        (f"{PROJECT}/zones/mars-a/instances", 400, "invalid"),
        (f"{PROJECT}/global/instanceTemplates/none", 404, "notFound"),
        (f"{GROUPS}?maxResults=501", 400, "invalid"),
        (f"{GROUPS}?pageToken=x", 400, "invalid"),
        (f"{GROUPS}?orderBy=size", 400, "invalid"),
        (f"{GROUPS}?filter=name+%3D", 400, "invalid"),
        (f"{GROUPS}?nonsense=1", 400, "invalid"),
        (f"{ZONE_PATH}/operations/none", 404, "notFound"),
    ],
)
def test_bad_path_or_parameter_is_refused_in_the_services_form(
    api: Api, path: str, status: int, reason: str
) -> None:
    answer = api.get(path)
    assert (answer.status, answer.reason) == (status, reason)
    assert answer.body["error"]["code"] == status
    assert answer.body["error"]["message"] == answer.body["error"]["errors"][0]["message"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "required"),
        (b"{", "parseError"),
        ([], "invalid"),
        ({**TEMPLATE, "nonsense": 1}, "invalid"),
        ({"name": "t1", "properties": {"machineTypo": "x"}}, "invalid"),
        ({"name": 7, "properties": {}}, "invalid"),
        ({"name": "t1"}, "required"),
        ({"properties": {}}, "required"),
    ],
)
def test_bad_body_is_refused(api: Api, body: Any, reason: str) -> None:
    answer = api.call("POST", TEMPLATES, body)
    assert (answer.status, answer.reason) == (400, reason)


def test_every_bad_member_of_a_body_has_an_entry_of_its_own(api: Api) -> None:
    answer = api.call("POST", TEMPLATES, {**TEMPLATE, "one": 1, "two": 2})
    messages = [entry["message"] for entry in answer.body["error"]["errors"]]
    assert len(messages) == 2
    assert "resource.one" in messages[0] and "resource.two" in messages[1]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/compute/v1/projects/debian-cloud/global/images/family/debian-12", "image"),
        ("/compute/v1/projects/debian-cloud/global/images/debian-12-v1", "image"),
        (f"{PROJECT}/global/networks/default", "network"),
        (f"{PROJECT}/regions/us-central1/subnetworks/default", "subnetwork"),
        (f"{ZONE_PATH}/diskTypes/pd-ssd", "diskType"),
        (f"{ZONE_PATH}/acceleratorTypes/nvidia-h200-141gb", "acceleratorType"),
        (f"{ZONE_PATH}/machineTypes/{MACHINE_TYPE}", "machineType"),
        (ZONE_PATH, "zone"),
        (f"{PROJECT}/regions/us-central1", "region"),
        (PROJECT, "project"),
        ("/compute/v1/projects/123456789012", "project"),
    ],
)
def test_what_clients_look_up_first_is_there(api: Api, path: str, kind: str) -> None:
    answer = api.get(path)
    assert (answer.status, answer.body["kind"]) == (200, f"compute#{kind}")


@pytest.mark.parametrize(
    "path",
    [
        f"{ZONE_PATH}/diskTypes/none",
        f"{ZONE_PATH}/acceleratorTypes/none",
        f"{ZONE_PATH}/machineTypes/none",
        f"{PROJECT}/global/networks/No",
    ],
)
def test_what_does_not_exist_is_not_found(api: Api, path: str) -> None:
    assert (api.get(path).status, api.get(path).reason) == (404, "notFound")


def test_used_name_is_a_conflict(api: Api) -> None:
    api.make_group()
    answer = api.call("POST", GROUPS, ZONAL_GROUP)
    assert (answer.status, answer.reason) == (409, "alreadyExists")


def test_repeated_request_id_gives_the_first_operation_again(api: Api) -> None:
    path = f"{TEMPLATES}?requestId={request_id()}"
    first = api.do("POST", path, TEMPLATE)
    again = api.call("POST", path, TEMPLATE)
    assert again.status == 200
    assert again.body["name"] == first["name"]
    assert again.body["status"] == "DONE"
    assert first["clientOperationId"] in path


def test_repeated_request_id_gives_a_dead_operation_again(
    api: Api, control: EmulatorControl
) -> None:
    api.make_group()
    path = f"{GROUP}?requestId={request_id()}"
    control.add_fault("DELETE", "instanceGroupManagers/g1$", kind="operation", code="STUMBLED")
    failed = api.do("DELETE", path)
    assert failed["error"]["errors"][0]["code"] == "STUMBLED"
    assert api.do("DELETE", path)["name"] == failed["name"]
    assert api.get(GROUP).status == 200


def test_request_id_of_another_call_is_refused(api: Api) -> None:
    own = request_id()
    api.do("POST", f"{TEMPLATES}?requestId={own}", TEMPLATE)
    answer = api.call("POST", f"{GROUPS}?requestId={own}", ZONAL_GROUP)
    assert answer.status == 412


@pytest.mark.parametrize("bad", ["7", "00000000-0000-0000-0000-000000000000"])
def test_request_id_must_be_a_uuid_other_than_zero(api: Api, bad: str) -> None:
    answer = api.call("POST", f"{TEMPLATES}?requestId={bad}", TEMPLATE)
    assert (answer.status, answer.reason) == (400, "invalid")


def test_operation_answers_at_once_and_is_done_later(api: Api, control: EmulatorControl) -> None:
    control.set_latency(operationSeconds=0.5)
    try:
        begun = api.call("POST", TEMPLATES, TEMPLATE).body
        assert begun["status"] == "RUNNING" and begun["progress"] == 0
        path = begun["selfLink"].removeprefix("https://www.googleapis.com")
        done = api.call("POST", f"{path}/wait").body
        assert done["status"] == "DONE" and done["progress"] == 100
        assert "endTime" in done and "error" not in done
    finally:
        control.set_latency(operationSeconds=0.1)


def test_wait_returns_when_its_time_is_up(api: Api, control: EmulatorControl) -> None:
    control.set_behaviour(waitSeconds=0.2)
    control.set_latency(operationSeconds=30)
    try:
        begun = api.call("POST", TEMPLATES, TEMPLATE).body
        path = begun["selfLink"].removeprefix("https://www.googleapis.com")
        assert api.call("POST", f"{path}/wait").body["status"] == "RUNNING"
    finally:
        control.set_latency(operationSeconds=0.1)
        control.advance_clock(60)


def test_call_on_a_vm_is_pending_before_it_runs(api: Api) -> None:
    api.make_group()
    api.make_vms("n-0")
    begun = api.call("DELETE", f"{ZONE_PATH}/instances/n-0").body
    assert begun["status"] == "PENDING" and "startTime" not in begun


def test_lists_come_in_pages(api: Api) -> None:
    api.make_group()
    api.make_vms(*(f"n-{index}" for index in range(5)))
    seen: list[str] = []
    token = ""
    pages = 0
    while token or not pages:
        path = f"{ZONE_PATH}/instances?maxResults=2&pageToken={token}"
        body = api.get(path).body
        seen += [item["name"] for item in body["items"]]
        token = body.get("nextPageToken", "")
        pages += 1
    assert seen == [f"n-{index}" for index in range(5)]
    assert pages == 3


def test_aggregated_list_names_every_scope_and_warns_for_empty_ones(api: Api) -> None:
    api.make_group()
    api.make_vms("n-0", "n-1")
    first = api.get(f"{PROJECT}/aggregated/instances?maxResults=1").body
    items = first["items"]
    assert [vm["name"] for vm in items[f"zones/{ZONE}"]["instances"]] == ["n-0"]
    assert items["zones/us-central1-b"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"
    token = first["nextPageToken"]
    rest = api.get(f"{PROJECT}/aggregated/instances?pageToken={token}").body
    assert [vm["name"] for vm in rest["items"][f"zones/{ZONE}"]["instances"]] == ["n-1"]


def test_empty_list_has_no_items(api: Api) -> None:
    body = api.get(GROUPS).body
    assert body["kind"] == "compute#instanceGroupManagerList"
    assert "items" not in body


def test_filters_choose_vms_by_label_and_name(api: Api) -> None:
    api.make_group()
    api.make_vms("n-0", "n-1")

    def names(text: str) -> list[str]:
        body = api.get(f"{ZONE_PATH}/instances?filter={text}").body
        return [item["name"] for item in body.get("items", [])]

    assert names("labels.cluster%3Ddemo") == ["n-0", "n-1"]
    assert names("labels.cluster%3Dother") == []
    assert names("name+eq+n-1") == ["n-1"]
    assert names("(labels.cluster%3Ddemo)+(name%3Dn-0)") == ["n-0"]


def test_waiting_request_always_has_a_status(api: Api, control: EmulatorControl) -> None:
    control.set_capacity(ZONE, MACHINE_TYPE, 0)
    api.make_group()
    api.do("POST", REQUESTS, {"name": "r1", "instances": [{"name": "n-0"}]})
    assert "status" in api.get(f"{REQUESTS}/r1").body
    request = eventually(
        lambda: api.get(f"{REQUESTS}/r1").body,
        lambda body: body["status"].get("lastAttempt"),
    )
    (error,) = request["status"]["lastAttempt"]["error"]["errors"]
    assert error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert error["errorDetails"][0]["errorInfo"]["metadatas"]["vmType"] == MACHINE_TYPE
    (member,) = api.call("POST", f"{GROUP}/listManagedInstances").body["managedInstances"]
    assert member["currentAction"] == "CREATING"
    assert "id" not in member and "instanceStatus" not in member


def test_grant_ignores_capacity(api: Api, control: EmulatorControl) -> None:
    control.set_capacity(ZONE, MACHINE_TYPE, 0)
    api.make_group()
    api.do("POST", REQUESTS, {"name": "r1", "instances": [{"name": "n-0"}]})
    eventually(lambda: api.get(f"{REQUESTS}/r1").body["state"], lambda state: state == "ACCEPTED")
    control.grant_resize_request("r1")
    eventually(lambda: api.get(f"{REQUESTS}/r1").body["state"], lambda state: state == "SUCCEEDED")
    assert control.capacities()[0].used == 1


def test_fail_moves_a_request_to_failed(api: Api, control: EmulatorControl) -> None:
    control.set_capacity(ZONE, MACHINE_TYPE, 0)
    api.make_group()
    api.do("POST", REQUESTS, {"name": "r1", "instances": [{"name": "n-0"}]})
    control.fail_resize_request("r1", "PERMISSIONS_ERROR", "no")
    request = api.get(f"{REQUESTS}/r1").body
    assert request["state"] == "FAILED"
    assert request["status"]["error"]["errors"][0]["code"] == "PERMISSIONS_ERROR"
    assert api.get(GROUP).body["targetSize"] == 0


def test_faults_hit_as_often_as_asked_and_then_no_more(api: Api, control: EmulatorControl) -> None:
    control.add_fault(
        "GET", "instanceGroupManagers", status=403, reason="rateLimitExceeded", count=2
    )
    answers = [api.get(GROUPS) for _ in range(3)]
    assert [answer.status for answer in answers] == [403, 403, 200]
    assert answers[0].reason == "rateLimitExceeded"
    assert answers[0].body["error"]["errors"][0]["domain"] == "usageLimits"
    assert control.faults()[0].hits == 2


def test_drop_closes_the_connection_without_an_answer(api: Api, control: EmulatorControl) -> None:
    control.add_fault("GET", ".*", kind="drop")
    host, _, port = control.url.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("GET", GROUPS)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        connection.getresponse()
    connection.close()
    assert api.get(GROUPS).status == 200
    assert [call.status for call in control.calls()][-2:] == [0, 200]


def test_garbage_is_not_json(api: Api, control: EmulatorControl) -> None:
    control.add_fault("GET", ".*", kind="garbage", status=200)
    with pytest.raises(ValueError):
        api.get(GROUPS)


def test_delay_holds_the_answer_back(api: Api, control: EmulatorControl) -> None:
    control.add_fault("GET", ".*", kind="delay", delay_seconds=0.3)
    started = time.monotonic()
    assert api.get(GROUPS).status == 200
    assert time.monotonic() - started >= 0.3


def test_rate_limit_refuses_calls_beyond_it(api: Api, control: EmulatorControl) -> None:
    control.set_behaviour(callsPerMinute=2)

    def refused() -> Answer | None:
        answers = [api.get(GROUPS) for _ in range(3)]
        return next((answer for answer in answers if answer.status != 200), None)

    answer = eventually(refused, lambda found: found is not None)
    assert answer is not None
    assert (answer.status, answer.reason) == (403, "rateLimitExceeded")
    assert answer.body["error"]["status"] == "PERMISSION_DENIED"


def test_quota_set_by_control_shows_in_the_region(api: Api, control: EmulatorControl) -> None:
    control.set_quota("us-central1", "INSTANCES", 7)
    try:
        quotas = api.get(f"{PROJECT}/regions/us-central1").body["quotas"]
        (found,) = [quota for quota in quotas if quota["metric"] == "INSTANCES"]
        assert found["limit"] == 7
    finally:
        control.set_quota("us-central1", "INSTANCES", 24_000)


def test_unreachable_zone_makes_aggregated_lists_partial(
    api: Api, control: EmulatorControl
) -> None:
    api.make_group()
    api.make_vms("n-0")
    control.set_unreachable_zones(ZONE)
    try:
        whole = api.get(f"{PROJECT}/aggregated/instances")
        partial = api.get(f"{PROJECT}/aggregated/instances?returnPartialSuccess=true")
        zonal = api.get(f"{ZONE_PATH}/instances")
    finally:
        control.set_unreachable_zones()
    assert (whole.status, whole.reason) == (503, "backendError")
    assert zonal.status == 503
    assert partial.body["items"][f"zones/{ZONE}"]["warning"]["code"] == "UNREACHABLE"
    assert partial.body["unreachables"] == [f"projects/demo/zones/{ZONE}"]
    assert api.get(f"{PROJECT}/aggregated/instances").status == 200


def test_lists_may_lag_behind_what_is_found_by_name(api: Api, control: EmulatorControl) -> None:
    api.make_group()
    control.set_behaviour(listLagSeconds=3600)
    try:
        assert "items" not in api.get(GROUPS).body
        assert api.get(GROUP).status == 200
    finally:
        control.set_behaviour(listLagSeconds=0)
    assert [item["name"] for item in api.get(GROUPS).body["items"]] == ["g1"]


def test_clock_moves_vms_to_their_end_of_life(api: Api, control: EmulatorControl) -> None:
    api.make_group()
    api.make_vms("n-0")
    control.advance_clock(86400 + 60)
    answer = eventually(
        lambda: api.get(f"{ZONE_PATH}/instances/n-0"), lambda answer: answer.status == 404
    )
    assert answer.reason == "notFound"
    assert api.get(GROUP).body["targetSize"] == 0


def test_labels_are_set_only_with_their_fingerprint(api: Api) -> None:
    api.make_group()
    api.make_vms("n-0")
    path = f"{ZONE_PATH}/instances/n-0"
    current = api.get(path).body["labelFingerprint"]
    stale = api.call("POST", f"{path}/setLabels", {"labels": {}, "labelFingerprint": "x"})
    assert (stale.status, stale.reason) == (412, "conditionNotMet")
    api.do("POST", f"{path}/setLabels", {"labels": {"a": "b"}, "labelFingerprint": current})
    assert api.get(path).body["labels"] == {"a": "b"}


@pytest.mark.parametrize("verb", ["stop", "suspend", "start"])
def test_vm_cannot_be_stopped_only_deleted(api: Api, verb: str) -> None:
    api.make_group()
    api.make_vms("n-0")
    assert api.call("POST", f"{ZONE_PATH}/instances/n-0/{verb}").status == 400


def test_links_name_the_public_host_and_numbers_are_strings(api: Api) -> None:
    api.make_group()
    api.make_vms("n-0")
    vm = api.get(f"{ZONE_PATH}/instances/n-0").body
    prefix = "https://www.googleapis.com/compute/v1/projects/demo"
    assert vm["selfLink"] == f"{prefix}/zones/{ZONE}/instances/n-0"
    assert vm["id"].isdigit()
    assert vm["scheduling"]["maxRunDuration"]["seconds"] == "86400"
    assert vm["resourceStatus"]["scheduling"]["terminationTimestamp"].endswith("-08:00")


def send_batch(url: str, *paths: str) -> str:
    """GET several paths in one batch; the whole answer."""
    parts = "".join(
        f"--b\r\nContent-Type: application/http\r\nContent-ID: <x+{number}>\r\n\r\n"
        f"GET {path} HTTP/1.1\r\n\r\n\r\n"
        for number, path in enumerate(paths)
    )
    host, _, port = url.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    try:
        connection.request("POST", "/batch/compute/v1", f"{parts}--b--\r\n", headers)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def test_call_dropped_in_a_batch_drops_the_batch(api: Api, control: EmulatorControl) -> None:
    control.add_fault("GET", "none$", kind="drop")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        send_batch(control.url, GROUPS, f"{GROUPS}/none")
    assert api.get(GROUPS).status == 200


def test_batch_answers_each_call_on_its_own(api: Api, control: EmulatorControl) -> None:
    answer = send_batch(control.url, GROUPS, f"{GROUPS}/none")
    assert answer.index("<response-x+0>") < answer.index("HTTP/1.1 200")
    assert answer.index("<response-x+1>") < answer.index("HTTP/1.1 404")


def test_control_mistakes_are_told(control: EmulatorControl) -> None:
    mistakes: tuple[Callable[[], object], ...] = (
        lambda: control.set_latency(nonsenseSeconds=1),
        lambda: control.set_latency(operationSeconds=-1),
        lambda: control.set_capacity("mars-a", MACHINE_TYPE, 1),
        lambda: control.set_capacity(ZONE, MACHINE_TYPE, -1),
        lambda: control.add_fault("GET", "("),
        lambda: control.add_fault("GET", kind="operation"),
        lambda: control.vanish_instance("none"),
        lambda: control.fail_resize_request("none", "X"),
        lambda: control.advance_clock(-1),
    )
    for mistake in mistakes:
        with pytest.raises(EmulatorControlError) as told:
            mistake()
        assert told.value.status in (400, 404)


def test_status_counts_what_there_is(api: Api, control: EmulatorControl) -> None:
    api.make_group()
    api.make_vms("n-0", "n-1")
    status = control.status()
    assert status.ready and status.project == "demo" and status.project_number == 123456789012
    counted = (status.groups, status.templates, status.resize_requests, status.instances)
    assert counted == (1, 1, 1, 2)


def test_shutdown_call_ends_an_idle_emulator_every_time() -> None:
    for _ in range(5):
        with EmulatorProcess() as emulator:
            emulator.control.shutdown()
            assert emulator.wait() == 0
