"""The one list that is read as plain JSON: whole and well formed, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.instance_list import instance_from, read_instances
from slurm_hooks.compute.model import GroupReference, InstanceStatus, Scope, ScopeKind
from slurm_hooks.compute.transport import Transport
from tests.fakes.canned_server import Answer, CannedServer, answer_json
from tests.unit.compute.conftest import QUICK

VM: dict[str, Any] = {
    "name": "demo-a3u-0",
    "id": "4335690972119601373",
    "zone": "https://www.googleapis.com/compute/v1/projects/demo/zones/us-central1-a",
    "status": "RUNNING",
    "labels": {"k": "v"},
    "creationTimestamp": "2025-02-05T01:24:02.564-08:00",
    "metadata": {
        "items": [
            {"key": "other", "value": "projects/1/zones/z/instanceGroupManagers/no"},
            {"key": "created-by", "value": "projects/1/zones/z/instanceGroupManagers/g"},
        ]
    },
    "scheduling": {"terminationTime": "2026-01-01T00:00:00Z"},
    "resourceStatus": {"scheduling": {"terminationTimestamp": "2026-02-02T00:00:00.000Z"}},
}


def unreadable(item: object) -> str:
    with pytest.raises(ComputeError) as error:
        instance_from(item)
    assert error.value.kind is ErrorKind.TRANSIENT
    return error.value.message


def test_a_vm_is_read() -> None:
    instance = instance_from(VM)
    assert (instance.name, instance.instance_id) == ("demo-a3u-0", "4335690972119601373")
    assert (instance.zone, instance.status) == ("us-central1-a", InstanceStatus.RUNNING)
    assert instance.group == GroupReference(Scope(ScopeKind.ZONE, "z"), "g")
    assert instance.labels == {"k": "v"}


def test_the_end_of_life_is_what_the_service_set_before_what_was_asked_for() -> None:
    ends = [instance_from(VM), instance_from(VM | {"resourceStatus": {}})]
    assert [end.termination_time_utc.month for end in ends if end.termination_time_utc] == [2, 1]


def test_a_vm_with_the_least_is_read() -> None:
    instance = instance_from({"name": "n", "id": 7})
    assert (instance.instance_id, instance.status) == ("7", InstanceStatus.UNKNOWN)
    assert (instance.group, instance.termination_time_utc) == (None, None)


def test_an_unknown_state_is_unknown() -> None:
    assert instance_from(VM | {"status": "DREAMING"}).status is InstanceStatus.UNKNOWN


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": 7},
        {"id": ""},
        {"id": "x"},
        {"id": None},
        {"status": 1},
        {"labels": []},
        {"metadata": "x"},
        {"metadata": {"items": {}}},
        {"metadata": {"items": ["x"]}},
        {"resourceStatus": {"scheduling": "x"}},
    ],
)
def test_a_vm_of_another_form_is_unreadable(change: dict[str, Any]) -> None:
    assert unreadable(VM | change)


@pytest.mark.parametrize("item", [None, "x", [], 7])
def test_what_is_no_object_is_unreadable(item: object) -> None:
    assert unreadable(item)


def read(server: CannedServer, *answers: Answer) -> list[str]:
    server.will_answer(*answers)
    transport = Transport(server.url, "anonymous", QUICK)
    return [instance.name for instance in read_instances(transport, "demo", "demo")]


def a_list(**more: Any) -> Answer:
    items = {"zones/a": {"instances": [VM]}, "zones/b": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}
    return answer_json({"kind": "compute#instanceAggregatedList", "items": items} | more)


@pytest.mark.slow
def test_pages_are_followed(server: CannedServer) -> None:
    assert read(server, a_list(nextPageToken="2"), a_list()) == ["demo-a3u-0"] * 2
    filters = [received.query["filter"] for received in server.received]
    assert filters == [["labels.slurm-hooks-cluster=demo"]] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        a_list(warning={"code": "UNREACHABLE"}),
        a_list(unreachables=["zones/c"]),
        a_list(items={"zones/a": {"warning": {"code": "UNREACHABLE"}}}),
        a_list(items=[]),
        a_list(items={"zones/a": []}),
        a_list(items={"zones/a": {"instances": {}}}),
        a_list(nextPageToken="1"),
        a_list(nextPageToken=2),
        answer_json({}),
        answer_json([]),
        answer_json("text"),
        Answer(b"<html>"),
        Answer(b"moved", 302),
        Answer(b'{"error": "busy"}', 503),
        Answer(drops=True),
    ],
)
def test_an_incomplete_or_odd_answer_is_no_answer(server: CannedServer, answer: Answer) -> None:
    with pytest.raises(ComputeError) as error:
        read(server, answer)
    assert error.value.kind is ErrorKind.TRANSIENT
