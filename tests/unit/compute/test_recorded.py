"""Recorded answers of the service, replayed to the real client and read into our own types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from slurm_hooks.compute.classify import classify_detail, classify_operation
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.groups import group_from
from slurm_hooks.compute.instance_list import read_instances
from slurm_hooks.compute.model import (
    ErrorDetail,
    GroupReference,
    InstanceStatus,
    Operation,
    RequestReference,
    RequestSpecification,
    RequestState,
    Scope,
    ScopeKind,
)
from slurm_hooks.compute.ownership import CLUSTER_LABEL, Mark, encode
from slurm_hooks.compute.transport import Transport
from tests.fakes.canned_server import Answer, CannedServer, answer_error, answer_json
from tests.shared_data import shared_file
from tests.unit.compute.conftest import QUICK

pytestmark = pytest.mark.slow

WEST = Scope(ScopeKind.ZONE, "us-west4-a")
EUROPE = Scope(ScopeKind.ZONE, "europe-west4-a")
GROUP = GroupReference(WEST, "mig-name")
EMPTY = answer_json({"kind": "compute#instanceAggregatedList"})


@dataclass(frozen=True)
class Recording:
    status: int
    response: Any

    @property
    def answer(self) -> Answer:
        return answer_json(self.response, self.status)


def recording(name: str) -> Recording:
    exchange = json.loads(shared_file(f"data/compute-recorded/{name}.json").read_text())
    return Recording(exchange["status"], exchange["response"])


def groups_in(server: CannedServer, name: str) -> dict[str, Any]:
    """The groups of a recorded aggregated list, from the real client's messages."""
    server.will_answer(recording(name).answer)
    transport = Transport(server.url, "anonymous", QUICK)
    service, request = "InstanceGroupManagersClient", {"project": "demo"}
    scopes = (
        s
        for page in transport.pages(service, "aggregated_list", request)
        for s in page.items.values()
    )
    groups = [group_from(message) for s in scopes for message in s.instance_group_managers]
    return {group.reference.name: group for group in groups}


def instances_in(server: CannedServer, name: str) -> dict[str, Any]:
    """The VMs of a recorded aggregated list."""
    server.will_answer(recording(name).answer)
    transport = Transport(server.url, "anonymous", QUICK)
    return {vm.name: vm for vm in read_instances(transport, "demo", "demo")}


def test_recorded_groups_are_read(server: CannedServer) -> None:
    groups = groups_in(server, "mig-aggregated-list-2025-02")
    mig, gke = groups["mig"], groups["gke-gke1-default-pool-35923fbc-grp"]
    assert mig.reference == GroupReference(EUROPE, "mig")
    assert (mig.template, mig.target_size, mig.description) == ("mig-template", 2, "")
    assert mig.creation_time_utc == datetime(2025, 2, 5, 9, 23, 38, 353000, tzinfo=UTC)
    assert gke.template == "gke-gke1-default-pool-35923fbc"


def test_a_recorded_regional_group_is_read(server: CannedServer) -> None:
    groups = groups_in(server, "mig-aggregated-list-2017-regional")
    (group,) = [g for g in groups.values() if g.reference.scope.kind is ScopeKind.REGION]
    assert group.reference.scope == Scope(ScopeKind.REGION, "us-central1")


def test_recorded_members_are_read_with_their_group(server: CannedServer) -> None:
    instances = instances_in(server, "instance-aggregated-list-2025-02-group-members")
    instance = instances["mig-bzvx"]
    assert instance.group == GroupReference(EUROPE, "mig")
    assert instance.instance_id == "4335690972119601373"
    assert (instance.zone, instance.status) == ("europe-west4-a", InstanceStatus.RUNNING)
    assert instance.labels == {"gcpdiag-test": "mig"}
    assert instance.termination_time_utc is None


def test_recorded_members_of_a_regional_group_are_read(server: CannedServer) -> None:
    instances = instances_in(server, "instance-aggregated-list-2018-group-members")
    kinds = {instance.group.scope.kind for instance in instances.values() if instance.group}
    assert kinds == {ScopeKind.ZONE, ScopeKind.REGION}


def test_a_recorded_spot_vm_is_terminated(server: CannedServer) -> None:
    instances = instances_in(server, "instance-aggregated-list-2025-spot-terminated")
    assert InstanceStatus.TERMINATED in {i.status for i in instances.values()}


def test_what_others_own_is_not_read(client: GoogleComputeClient, server: CannedServer) -> None:
    server.will_answer(
        recording("mig-aggregated-list-2025-02").answer,
        recording("instance-aggregated-list-2025-02-group-members").answer,
    )
    snapshot = client.read("demo")
    assert (snapshot.groups, snapshot.requests, snapshot.instances) == ({}, {}, {})


def ours(response: Any, members: str) -> Any:
    """The same recorded answer, had its things been made by us."""
    text = json.dumps(response)
    changed = json.loads(text)
    for scoped_list in changed["items"].values():
        for item in scoped_list.get(members, []):
            item["description"] = encode(Mark("demo", "a3u"))
            item["labels"] = {CLUSTER_LABEL: "demo"}
    return changed


def test_a_read_asks_once_for_groups_once_for_vms_and_once_a_group(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    groups = ours(recording("mig-aggregated-list-2025-02").response, "instanceGroupManagers")
    vms = ours(recording("instance-aggregated-list-2025-02-group-members").response, "instances")
    no_requests = answer_json({"kind": "compute#instanceGroupManagerResizeRequestList"})
    server.will_answer(answer_json(groups), no_requests, no_requests, answer_json(vms))
    snapshot = client.read("demo")
    assert len(snapshot.groups) == 2
    assert set(snapshot.instances) == {"mig-bzvx", "mig-l40g"}
    assert len(server.received) == 4
    assert server.received[-1].query == {"filter": ["labels.slurm-hooks-cluster=demo"]}


def test_a_group_that_vanishes_between_the_lists_is_left_out(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    groups = ours(recording("mig-aggregated-list-2025-02").response, "instanceGroupManagers")
    gone = recording("template-get-404-2019").answer
    no_requests = answer_json({"kind": "compute#instanceGroupManagerResizeRequestList"})
    server.will_answer(answer_json(groups), gone, no_requests, EMPTY)
    assert len(client.read("demo").groups) == 1


@pytest.mark.parametrize("code", ["UNREACHABLE", "PARTIAL_SUCCESS", "LIST_OVERHEAD_QUOTA_EXCEED"])
@pytest.mark.parametrize("place", ["list", "scope"])
def test_a_partial_answer_is_no_answer(
    client: GoogleComputeClient, server: CannedServer, code: str, place: str
) -> None:
    response = recording("mig-aggregated-list-2025-02").response
    part = response if place == "list" else response["items"]["zones/us-central1-a"]
    part["warning"] = {"code": code, "message": "text"}
    server.will_answer(answer_json(response), EMPTY)
    with pytest.raises(ComputeError) as error:
        client.read("demo")
    assert (error.value.kind, error.value.code) == (ErrorKind.TRANSIENT, code)


def test_an_unreachable_scope_is_no_answer(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    response = recording("mig-aggregated-list-2025-02").response
    response["unreachables"] = ["zones/us-central1-b"]
    server.will_answer(answer_json(response), EMPTY)
    with pytest.raises(ComputeError, match="UNREACHABLE"):
        client.read("demo")


def test_pages_are_followed_to_the_end(client: GoogleComputeClient, server: CannedServer) -> None:
    first = ours(recording("instance-aggregated-list-2025-02-group-members").response, "instances")
    second = json.loads(json.dumps(first).replace('"mig-', '"next-'))
    first["nextPageToken"] = "two"
    server.will_answer(EMPTY, answer_json(first), answer_error(503, ""), answer_json(second))
    assert len(client.read("demo").instances) == 4
    assert [received.query.get("pageToken") for received in server.received] == [
        None,
        None,
        ["two"],
        ["two"],
    ]


def test_a_page_that_repeats_is_an_error(client: GoogleComputeClient, server: CannedServer) -> None:
    page = {"kind": "compute#instanceGroupManagerAggregatedList", "nextPageToken": "again"}
    server.will_answer(answer_json(page))
    with pytest.raises(ComputeError, match="repeats"):
        client.read("demo")


def requests_in(client: GoogleComputeClient, server: CannedServer, name: str) -> dict[str, Any]:
    """Recorded requests, one by one through the client's get."""
    found = {}
    for item in recording(name).response["items"]:
        server.will_answer(answer_json(item))
        request = client.get_resize_request(RequestReference(GROUP, item["name"]))
        assert request is not None
        found[request.reference.name] = request
    return found


def test_recorded_requests_are_read(client: GoogleComputeClient, server: CannedServer) -> None:
    requests = requests_in(client, server, "resizerequest-list-states")
    failed, stockout = requests["failed"], requests["waiting-stockout"]
    assert failed.state is RequestState.FAILED
    assert failed.error == ErrorDetail("403", "us-central1-h does not exist")
    assert failed.last_attempt_error is None
    assert stockout.state is RequestState.ACCEPTED
    assert stockout.error is None
    assert classify_detail(stockout.last_attempt_error) is ErrorKind.STOCKOUT
    assert classify_detail(requests["waiting-quota"].last_attempt_error) is ErrorKind.QUOTA
    assert stockout.creation_time_utc == datetime(2022, 11, 12, 13, 14, 15, tzinfo=UTC)


@pytest.mark.parametrize("state", ["PROVISIONING", "SOMETHING_NEW", "", None])
def test_a_request_in_an_unknown_state_is_active(
    client: GoogleComputeClient, server: CannedServer, state: str | None
) -> None:
    server.will_answer(answer_json({"name": "r", "state": state}))
    request = client.get_resize_request(RequestReference(GROUP, "r"))
    assert request is not None
    assert request.state is RequestState.UNKNOWN
    assert request.state.is_active


@pytest.mark.parametrize(
    ("name", "error", "done", "kind"),
    [
        ("resizerequest-insert", None, False, None),
        ("resizerequest-cancel-operation-error", "CONDITION_NOT_MET", True, ErrorKind.CONFLICT),
        (
            "operation-get-2026-stockout-running",
            "ZONE_RESOURCE_POOL_EXHAUSTED",
            False,
            ErrorKind.STOCKOUT,
        ),
        (
            "operation-error-2026-stockout-alternatives",
            "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
            None,
            ErrorKind.STOCKOUT,
        ),
        ("operation-get-2020-quota", "QUOTA_EXCEEDED", True, ErrorKind.QUOTA),
        (
            "operation-get-in-use",
            "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
            True,
            ErrorKind.CONFLICT,
        ),
        ("operation-get-2016-not-ready", "RESOURCE_NOT_READY", True, ErrorKind.TRANSIENT),
        (
            "operation-get-2018-setmachinetype-error",
            "UNSUPPORTED_OPERATION",
            True,
            ErrorKind.CONFIG,
        ),
        ("mig-createinstances-error-2021", "CONDITION_NOT_MET", True, ErrorKind.CONFLICT),
    ],
)
def test_recorded_operations_are_read(
    client: GoogleComputeClient,
    server: CannedServer,
    name: str,
    error: str | None,
    done: bool | None,
    kind: ErrorKind | None,
) -> None:
    response = {"name": "o"} | recording(name).response
    response.pop("targetId", None)  # one recording has text in place of the number
    server.will_answer(answer_json(response))
    operation = client.get_operation(Operation("o", WEST))
    assert (operation.error.code if operation.error else None) == error
    assert classify_operation(operation) is kind
    if done is not None:
        assert operation.done is done


def test_a_recorded_insert_names_its_target_and_time(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    server.will_answer(recording("resizerequest-insert").answer)
    reference = RequestReference(GROUP, "r")
    operation = client.insert_resize_request(RequestSpecification(reference, ("n",), ""), "x")
    assert operation.scope == WEST
    assert operation.operation_type == "compute.instanceGroupManagerResizeRequests.insert"
    assert operation.target == "qwert12345qwert12345qwert12345asdfg09876asdfg09876asdfg09876lkj"
    assert operation.insert_time_utc == datetime(2022, 11, 23, 15, 1, 7, 788000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("resizerequest-cancel-412", ErrorKind.CONFLICT, "conditionNotMet"),
        ("http-403-forbidden-2021", ErrorKind.PERMISSION, "forbidden"),
        ("instance-insert-403-2025-audit", ErrorKind.PERMISSION, "forbidden"),
        ("http-403-rate-limit-2021", ErrorKind.RATE, "rateLimitExceeded"),
        ("http-400-not-ready-2021", ErrorKind.TRANSIENT, "resourceNotReady"),
        ("http-400-required-2026", ErrorKind.CONFIG, "required"),
        ("http-400-invalid-2020-regional-group", ErrorKind.CONFIG, "invalid"),
        ("http-400-invalid-2019-two-errors", ErrorKind.CONFIG, "invalid"),
        ("template-get-404-2019", ErrorKind.GONE, "notFound"),
    ],
)
def test_recorded_errors_are_read(
    client: GoogleComputeClient, server: CannedServer, name: str, kind: ErrorKind, code: str
) -> None:
    recorded = recording(name)
    server.will_answer(recorded.answer)
    with pytest.raises(ComputeError) as error:
        client.cancel_resize_request(RequestReference(GROUP, "r"), "x")
    assert (error.value.kind, error.value.code) == (kind, code)
    assert error.value.http_status == recorded.status


def test_the_last_page_of_requests_is_asked_for_with_its_token(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    groups = ours(recording("mig-aggregated-list-2025-02").response, "instanceGroupManagers")
    del groups["items"]["zones/europe-west4-a"]["instanceGroupManagers"][1]
    page = recording("resizerequest-list-page1").response
    token = page["nextPageToken"]
    last = page | {"nextPageToken": ""}
    server.will_answer(answer_json(groups), answer_json(page), answer_json(last), EMPTY)
    client.read("demo")
    assert server.received[2].query == {"pageToken": [token]}
