"""The emulator's answers look like the service's: recorded ones are held beside them.

A scenario is played through plain HTTP, so that what is judged is what any client would see.
Every request and answer of it must be one that the discovery document allows, and the answers
must have the members, types, times, numbers and links of recorded answers of the same thing.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.compute_world import MACHINE_TYPE, REGION, ZONE
from tests.emulator.discovery import PREFIX, Discovery
from tests.emulator.running import running_emulator
from tests.emulator.shapes import differences
from tests.flex_start import FLEX_START
from tests.shared_data import shared_file
from tests.waiting import eventually

pytestmark = pytest.mark.slow

PROJECT = f"{PREFIX}projects/demo"
ZONAL = f"{PROJECT}/zones/{ZONE}"
REGIONAL = f"{PROJECT}/regions/{REGION}"
GROUPS = "instanceGroupManagers"
TEMPLATE = {
    "name": "t",
    "properties": {
        "machineType": MACHINE_TYPE,
        **FLEX_START,
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "type": "PERSISTENT",
                "mode": "READ_WRITE",
                "deviceName": "boot",
                "initializeParams": {
                    "sourceImage": "projects/debian-cloud/global/images/family/debian-12",
                    "diskSizeGb": "200",
                    "diskType": "hyperdisk-balanced",
                },
            }
        ],
        "networkInterfaces": [
            {
                "network": "projects/demo/global/networks/default",
                "nicType": "GVNIC",
                "accessConfigs": [
                    {"name": "nat", "type": "ONE_TO_ONE_NAT", "networkTier": "PREMIUM"}
                ],
            }
        ],
        "canIpForward": False,
        "serviceAccounts": [
            {
                "email": "nodes@demo.iam.gserviceaccount.com",
                "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
            }
        ],
        "labels": {"k": "v"},
        "metadata": {"items": [{"key": "k", "value": "v"}]},
        "tags": {"items": ["tag"]},
    },
}
GROUP = {
    "name": "g",
    "versions": [{"instanceTemplate": "projects/demo/global/instanceTemplates/t"}],
    "targetSize": 0,
    "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
}
REGIONAL_GROUP = GROUP | {
    "distributionPolicy": {
        "zones": [{"zone": f"zones/{ZONE}"}],
        "targetShape": "ANY_SINGLE_ZONE",
    },
    "updatePolicy": {"instanceRedistributionType": "NONE"},
}
REQUEST = {
    "name": "r",
    "instances": [{"name": "n-0"}, {"name": "n-1"}],
    "requestedRunDuration": {"seconds": "3600"},
}


@dataclass(frozen=True)
class Exchange:
    """One call, as JSON."""

    method: str
    path: str
    request: Any
    status: int
    response: Any


@dataclass
class Scenario:
    """Plays calls and keeps them, with the answers that later tests judge by name."""

    control: EmulatorControl
    exchanges: list[Exchange] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    def call(self, method: str, path: str, body: object = None, query: str = "") -> Any:
        """One call; its answer, whatever the status."""
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.control.url}{path}{query}"
        request = urllib.request.Request(url, data, method=method)
        request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=30) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read()
        response = json.loads(text)
        self.exchanges.append(Exchange(method, path, body, status, response))
        return response

    def keep(self, name: str, method: str, path: str, body: object = None) -> Any:
        """One call whose answer a test judges."""
        self.answers[name] = self.call(method, path, body)
        return self.answers[name]

    def finish(self, scope: str, operation: Any) -> Any:
        """The operation as it ends."""
        path = f"{scope}/operations/{operation['name']}"
        return eventually(lambda: self.call("GET", path), lambda now: now["status"] == "DONE")

    def do(self, name: str, method: str, scope: str, path: str, body: object = None) -> None:
        """A call that starts an operation; its first answer and its end are kept."""
        first = self.keep(name, method, f"{scope}/{path}", body)
        assert first["kind"] == "compute#operation", first
        self.answers[f"{name}-done"] = self.finish(scope, first)


def play(scenario: Scenario) -> None:
    """Everything that is judged below, once."""
    control = scenario.control
    control.set_capacity(ZONE, MACHINE_TYPE, 0)
    scenario.do("template-insert", "POST", f"{PROJECT}/global", "instanceTemplates", TEMPLATE)
    scenario.keep("template", "GET", f"{PROJECT}/global/instanceTemplates/t")
    scenario.keep("templates", "GET", f"{PROJECT}/global/instanceTemplates")
    scenario.keep("groups-empty", "GET", f"{ZONAL}/{GROUPS}")
    scenario.do("group-insert", "POST", ZONAL, GROUPS, GROUP)
    scenario.do("regional-group-insert", "POST", REGIONAL, GROUPS, REGIONAL_GROUP)
    play_requests(scenario)
    play_members(scenario)
    play_refusals(scenario)
    play_lists(scenario)
    play_ends(scenario)


def play_requests(scenario: Scenario) -> None:
    path = f"{GROUPS}/g/resizeRequests"
    scenario.do("request-insert", "POST", ZONAL, path, REQUEST)
    waiting = eventually(
        lambda: scenario.call("GET", f"{ZONAL}/{path}/r"),
        lambda request: request["status"].get("lastAttempt", {}).get("error"),
    )
    scenario.answers["request-waiting"] = waiting
    scenario.keep("members-waiting", "POST", f"{ZONAL}/{GROUPS}/g/listManagedInstances")
    scenario.keep("requests", "GET", f"{ZONAL}/{path}")
    scenario.keep("requests-regional-empty", "GET", f"{REGIONAL}/{path}")
    scenario.do(
        "cancelled-insert",
        "POST",
        ZONAL,
        path,
        REQUEST | {"name": "c", "instances": [{"name": "c-0"}]},
    )
    scenario.do("request-cancel", "POST", ZONAL, f"{path}/c/cancel")
    scenario.keep("late-cancel", "POST", f"{ZONAL}/{path}/c/cancel")
    scenario.do("request-delete", "DELETE", ZONAL, f"{path}/c")
    scenario.control.set_capacity(ZONE, MACHINE_TYPE, None)
    eventually(
        lambda: scenario.keep("request-done", "GET", f"{ZONAL}/{path}/r"),
        lambda request: request["state"] == "SUCCEEDED",
    )


def play_members(scenario: Scenario) -> None:
    eventually(
        lambda: scenario.keep("instance", "GET", f"{ZONAL}/instances/n-0"),
        lambda instance: instance.get("status") == "RUNNING",
    )
    eventually(
        lambda: scenario.keep("members", "POST", f"{ZONAL}/{GROUPS}/g/listManagedInstances"),
        lambda answer: {m["currentAction"] for m in answer["managedInstances"]} == {"NONE"},
    )
    scenario.keep("group", "GET", f"{ZONAL}/{GROUPS}/g")
    scenario.keep("regional-group", "GET", f"{REGIONAL}/{GROUPS}/g")
    scenario.keep("errors", "GET", f"{ZONAL}/{GROUPS}/g/listErrors")


def play_refusals(scenario: Scenario) -> None:
    path = f"{ZONAL}/{GROUPS}/g/resizeRequests"
    scenario.keep("404", "GET", f"{PROJECT}/global/instanceTemplates/nothing")
    scenario.keep("409", "POST", path, REQUEST)
    scenario.keep("400", "POST", path, REQUEST | {"name": "x", "resizeBy": 1})
    scenario.control.add_fault(
        "GET", ".*/instances", status=403, reason="rateLimitExceeded", message="text"
    )
    scenario.keep("403-rate", "GET", f"{ZONAL}/instances")
    again = {"instances": [{"name": "n-0"}]}
    scenario.do("create-again", "POST", ZONAL, f"{GROUPS}/g/createInstances", again)
    scenario.do("in-use", "DELETE", f"{PROJECT}/global", "instanceTemplates/t")


def play_lists(scenario: Scenario) -> None:
    scenario.keep("groups-aggregated", "GET", f"{PROJECT}/aggregated/{GROUPS}")
    scenario.keep("groups-regional", "GET", f"{REGIONAL}/{GROUPS}")
    scenario.keep("groups", "GET", f"{ZONAL}/{GROUPS}")
    scenario.keep("instances-aggregated", "GET", f"{PROJECT}/aggregated/instances")
    scenario.keep("instances", "GET", f"{ZONAL}/instances")
    scenario.keep("operations-aggregated", "GET", f"{PROJECT}/aggregated/operations")
    scenario.keep("operations", "GET", f"{ZONAL}/operations")


def play_ends(scenario: Scenario) -> None:
    members = {"instances": [f"zones/{ZONE}/instances/n-1"]}
    scenario.do("members-delete", "POST", ZONAL, f"{GROUPS}/g/deleteInstances", members)
    created = {"instances": [{"name": "m-0"}]}
    scenario.do("members-create", "POST", ZONAL, f"{GROUPS}/g/createInstances", created)
    scenario.do("instance-delete", "DELETE", ZONAL, "instances/n-0")
    deletion = scenario.keep("group-delete", "DELETE", f"{ZONAL}/{GROUPS}/g")
    scenario.keep("group-while-deleting", "GET", f"{ZONAL}/{GROUPS}")
    scenario.answers["group-delete-done"] = scenario.finish(ZONAL, deletion)
    scenario.do("regional-group-delete", "DELETE", REGIONAL, f"{GROUPS}/g")
    scenario.do("template-delete", "DELETE", f"{PROJECT}/global", "instanceTemplates/t")


@pytest.fixture(scope="module")
def scenario() -> Iterator[Scenario]:
    """The scenario, played once."""
    with running_emulator() as control:
        played = Scenario(control)
        play(played)
        yield played


@pytest.fixture(scope="module")
def discovery() -> Discovery:
    return Discovery()


def test_every_request_and_answer_is_one_of_the_api(
    scenario: Scenario, discovery: Discovery
) -> None:
    problems = []
    for exchange in scenario.exchanges:
        method = discovery.method(exchange.method, exchange.path)
        assert method is not None, exchange.path
        if exchange.status != 200:
            continue
        assert method.response is not None
        found = discovery.wrong_in_request(method, exchange.request)
        found += discovery.wrong_in_answer(method.response, exchange.response)
        problems += [f"{method.name}{problem}" for problem in found]
    if problems:
        pytest.fail("\n".join(sorted(set(problems))))


def recorded(name: str) -> Any:
    text = shared_file(f"data/compute-recorded/{name}.json").read_text()
    return json.loads(text)["response"]


def scoped(answer: Any, member: str) -> list[Any]:
    """All items of an aggregated list."""
    return [item for part in answer["items"].values() for item in part.get(member, [])]


def must_look_alike(theirs: Any, ours: Any, allowed: dict[str, str]) -> None:
    """Fails with a line for each member that is missing or has another form."""
    problems = differences(theirs, ours, allowed)
    if problems:
        pytest.fail("\n".join(problems))


OPTIONAL = {
    ".satisfiesPzi": "only some projects have it",
    ".satisfiesPzs": "only some projects have it",
    ".user": "the caller has no identity here",
}
OPERATION = OPTIONAL | {".selfLinkWithId": "only some answers have it"}
INSERTED_REQUEST = OPERATION | {
    ".targetLink": "gcloud expects the group's link here, against this fixture",
}
FAILED_OPERATION = OPERATION | {".name": "of an older form"}
SCOPE_WORDS = {"zones", "regions", "global"}
NORMALISED = OPERATION | {
    ".endTime": "replaced by the recorder",
    ".insertTime": "replaced by the recorder",
    ".name": "replaced by the recorder",
    ".startTime": "replaced by the recorder",
    ".targetId": "replaced by the recorder",
    ".targetLink": "another kind of resource in use",
}
REGIONAL_LIST = {
    ".items[].status.autoscaler": "ours has none",
    ".items[].namedPorts": "ours has none",
}
OF_REGION = OPTIONAL | {
    ".zone": "regional groups have a region instead",
    ".selfLink": "of its region",
    ".instanceGroup": "of its region",
}
VM = OPTIONAL | {
    ".disks[].licenses": "of the image",
    ".disks[].guestOsFeatures": "of the image",
    ".labels": "of the template",
}
MEMBER = {
    ".managedInstances[].version.name": "ours has no name",
    ".managedInstances[].lastAttempt.errors": "ours had no error",
}
WAITING_MEMBER = MEMBER | {
    ".managedInstances[].id": "no VM yet",
    ".managedInstances[].instanceStatus": "no VM yet",
    ".managedInstances[].version.instanceTemplate": "the recording has a link of beta",
}


@pytest.mark.parametrize(
    ("ours", "theirs", "allowed"),
    [
        ("request-insert", "resizerequest-insert", INSERTED_REQUEST),
        ("request-cancel", "resizerequest-cancel", OPERATION),
        ("request-delete", "resizerequest-delete", OPERATION),
        ("group-delete", "mig-delete-2019", OPERATION),
        ("template-delete", "template-delete-2019", OPERATION),
        ("instance-delete", "instance-delete-2018", OPERATION),
        ("template", "template-get-2019", OPTIONAL),
        ("groups-empty", "mig-list-zonal-empty-2022", OPTIONAL),
        ("groups-regional", "mig-list-regional-2023", REGIONAL_LIST),
        ("members-waiting", "mig-listmanagedinstances-creating", WAITING_MEMBER),
        ("members", "mig-listmanagedinstances-2017", MEMBER),
        ("group-while-deleting", "mig-list-while-deleting-2019", REGIONAL_LIST),
        ("create-again-done", "mig-createinstances-error-2021", FAILED_OPERATION),
        ("404", "template-get-404-2019", {}),
        ("400", "http-400-invalid-2020-regional-group", {}),
        ("403-rate", "http-403-rate-limit-2021", {}),
        ("late-cancel", "resizerequest-cancel-412", {}),
        ("in-use-done", "operation-get-in-use", NORMALISED),
    ],
)
def test_an_answer_looks_like_a_recorded_one(
    scenario: Scenario, ours: str, theirs: str, allowed: dict[str, str]
) -> None:
    must_look_alike(recorded(theirs), scenario.answers[ours], allowed)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("groups-aggregated", "mig-aggregated-list-2025-02"),
        ("instances-aggregated", "instance-aggregated-list-2025-02-group-members"),
        ("operations-aggregated", "operations-aggregated-list-2025-02"),
    ],
)
def test_aggregated_lists_have_the_recorded_frame(
    scenario: Scenario, ours: str, theirs: str
) -> None:
    expected, found = recorded(theirs), dict(scenario.answers[ours])
    for answer in (expected, found):
        assert {scope.partition("/")[0] for scope in answer["items"]} <= SCOPE_WORDS
        answer["items"] = {}
    must_look_alike(expected, found, {})


def test_a_waiting_request_says_why_as_in_the_recording(scenario: Scenario) -> None:
    items = recorded("resizerequest-list-states")["items"]
    (theirs,) = [item["status"] for item in items if item["name"] == "waiting-stockout"]
    expected = theirs["lastAttempt"]["error"]["errors"][0]
    found = scenario.answers["request-waiting"]["status"]["lastAttempt"]["error"]["errors"][0]
    must_look_alike(expected, found, {})
    assert found["code"] == expected["code"]


def test_groups_look_like_recorded_ones(scenario: Scenario) -> None:
    (theirs,) = [
        group
        for group in scoped(recorded("mig-aggregated-list-2025-02"), GROUPS)
        if group["name"] == "mig"
    ]
    must_look_alike(theirs, scenario.answers["group"], OPTIONAL)
    found = scoped(scenario.answers["groups-aggregated"], GROUPS)
    for group in found:
        must_look_alike(theirs, group, OF_REGION)


def test_scopes_without_groups_carry_the_recorded_warning(scenario: Scenario) -> None:
    theirs = recorded("mig-aggregated-list-2025-02")["items"]["regions/us-central1"]
    empty = scenario.answers["groups-aggregated"]["items"]["zones/europe-west4-a"]
    must_look_alike(theirs, empty, {})


def test_instances_look_like_recorded_ones(scenario: Scenario) -> None:
    theirs = scoped(recorded("instance-aggregated-list-2025-02-group-members"), "instances")[0]
    must_look_alike(theirs, scenario.answers["instance"], VM)


def test_finished_operations_look_like_recorded_ones(scenario: Scenario) -> None:
    theirs = scoped(recorded("operations-aggregated-list-2025-02"), "operations")
    for operation_type, ours in (
        ("compute.instanceGroupManagers.insert", "group-insert-done"),
        ("compute.instanceGroupManagers.delete", "group-delete-done"),
        ("compute.instanceTemplates.insert", "template-insert-done"),
    ):
        examples = [o for o in theirs if o["operationType"] == operation_type]
        assert examples
        for example in examples:
            must_look_alike(example, scenario.answers[ours], OPERATION)
            assert scenario.answers[ours]["operationType"] == operation_type


def test_waiting_members_have_a_link_but_neither_id_nor_status(scenario: Scenario) -> None:
    members = scenario.answers["members-waiting"]["managedInstances"]
    assert {member["name"] for member in members} == {"n-0", "n-1"}
    for member in members:
        assert member["currentAction"] == "CREATING"
        assert member["instance"].startswith("https://www.googleapis.com/compute/v1/")
        assert not {"id", "instanceStatus"} & member.keys()


def test_every_request_has_a_status(scenario: Scenario) -> None:
    for request in [*scenario.answers["requests"]["items"], scenario.answers["request-done"]]:
        assert "status" in request


def test_an_empty_list_has_no_items(scenario: Scenario) -> None:
    assert "items" not in scenario.answers["groups-empty"]
    assert "items" not in scenario.answers["requests-regional-empty"]
