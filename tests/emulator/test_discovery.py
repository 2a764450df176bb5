"""The judge itself: recorded answers of the service pass, spoiled ones do not.

What our own client sends passes, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import (
    GroupSpecification,
    Operation,
    RequestReference,
    Scope,
)
from tests.emulator.compute_world import (
    GLOBAL,
    REGIONAL,
    ZONAL,
    ZONES,
    group_reference,
    request_specification,
    template_specification,
)
from tests.emulator.discovery import PREFIX, Discovery
from tests.fakes.canned_server import answer_json, canned_server
from tests.shared_data import shared_file

MODERN_LISTS = [
    "mig-aggregated-list-2025-02",
    "mig-aggregated-list-2025-03-verifying",
    "mig-list-regional-2023",
    "mig-list-zonal-2024-gke",
    "mig-list-zonal-empty-2022",
    "operations-aggregated-list-2025-02",
    "operations-aggregated-list-2025-03-repair",
    "instance-aggregated-list-2025-02-group-members",
    "template-get-2019",
    "operation-get-2026-stockout-running",
    "mig-delete-2019",
]


@pytest.fixture(scope="module")
def discovery() -> Discovery:
    return Discovery()


def recorded(name: str) -> dict[str, Any]:
    exchange: dict[str, Any] = json.loads(
        shared_file(f"data/compute-recorded/{name}.json").read_text()
    )
    return exchange


@pytest.mark.parametrize("name", MODERN_LISTS)
def test_recorded_answers_pass(discovery: Discovery, name: str) -> None:
    exchange = recorded(name)
    method = discovery.method(exchange["method"], exchange["path"])
    assert method is not None
    assert method.response is not None
    assert discovery.wrong_in_answer(method.response, exchange["response"]) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": 7}, ".id: 7 is no string uint64"),
        ({"id": "x"}, ".id: 'x' is no string uint64"),
        ({"progress": "0"}, ".progress: '0' is no integer int32"),
        ({"status": "FINISHED"}, ".status: 'FINISHED' is none of the words"),
        ({"kind": "compute#op"}, ".kind: 'compute#op' is not 'compute#operation'"),
        ({"extra": 1}, ".extra: unknown"),
        ({"error": {"errors": {}}}, ".error.errors: {} is no array"),
        ({"error": []}, ".error: [] is no object"),
    ],
)
def test_a_spoiled_answer_does_not_pass(
    discovery: Discovery, change: dict[str, Any], problem: str
) -> None:
    response = recorded("operation-get-2026-stockout-running")["response"] | change
    assert discovery.wrong_in_answer("Operation", response) == [problem]


def test_a_request_must_not_set_what_only_the_service_sets(discovery: Discovery) -> None:
    method = discovery.method(
        "POST", f"{PREFIX}projects/p/zones/z/instanceGroupManagers/g/resizeRequests"
    )
    assert method is not None
    assert discovery.wrong_in_request(method, {"name": "r", "state": "ACCEPTED"}) == [
        ".state: only the service sets it"
    ]
    assert discovery.wrong_in_request(method, {}) == [".name: missing"]


def test_a_path_of_no_method_has_none(discovery: Discovery) -> None:
    assert discovery.method("GET", f"{PREFIX}projects/p/zones/z/nothing") is None


Call = Callable[[GoogleComputeClient], object]


def calls_in(scope: Scope) -> list[Call]:
    """Every call that our client can make in a zone or region."""
    group = group_reference(scope)
    request = RequestReference(group, "r")
    specification = GroupSpecification(group, "t", "d", ZONES)
    return [
        lambda c: c.insert_group(specification, "x"),
        lambda c: c.insert_resize_request(request_specification(request, "n-0", "n-1"), "x"),
        lambda c: c.get_resize_request(request),
        lambda c: c.cancel_resize_request(request, "x"),
        lambda c: c.delete_resize_request(request, "x"),
        lambda c: c.create_instances(group, ["n-0"], "x"),
        lambda c: c.delete_instances(group, {"n-0": ZONES[0]}, "x"),
        lambda c: c.delete_group(group, "x"),
        lambda c: c.get_operation(Operation("operation-1", scope)),
    ]


# The reduced document lacks the serial port and the list of resource policies.
EVERYWHERE: list[Call] = [
    lambda c: c.insert_template(GLOBAL, template_specification(), "x"),
    lambda c: c.insert_template(REGIONAL, template_specification(), "x"),
    lambda c: c.delete_workload_policy(REGIONAL, "w", "x"),
    lambda c: c.delete_template(GLOBAL, "t", "x"),
    lambda c: c.delete_template(REGIONAL, "t", "x"),
    lambda c: c.get_operation(Operation("operation-1", GLOBAL)),
    lambda c: c.read("demo"),
]


@pytest.mark.slow
def test_what_our_client_sends_passes(discovery: Discovery) -> None:
    calls = [*calls_in(ZONAL), *calls_in(REGIONAL), *EVERYWHERE]
    with canned_server() as server:
        server.will_answer(answer_json({"kind": "any", "name": "operation-1"}))
        client = GoogleComputeClient("demo", server.url, "anonymous")
        for call in calls:
            call(client)
    assert len(server.received) == len(calls) + 1
    for received in server.received:
        method = discovery.method(received.method, received.path)
        assert method is not None, received
        body = received.json if received.body else None
        assert discovery.wrong_in_request(method, body) == []
        assert set(received.query) <= method.query
