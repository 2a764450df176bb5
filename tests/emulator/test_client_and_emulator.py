"""The real client before the emulator, where size, limits and faults matter.

One emulator serves all tests here, so each makes a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from slurm_hooks.compute.classify import classify_operation
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    GroupReference,
    GroupSpecification,
    Operation,
    RequestReference,
    RequestState,
)
from slurm_hooks.compute.ownership import Mark, encode, labels_of
from slurm_hooks.compute.retry import RetryPolicy
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.compute_world import (
    GLOBAL,
    MACHINE_TYPE,
    ZONAL,
    ZONE,
    request_specification,
    template_specification,
)
from tests.emulator.running import running_emulator
from tests.waiting import eventually

pytestmark = pytest.mark.slow

QUICK = RetryPolicy(attempts=3, transient_pause_seconds=0.01, rate_pause_seconds=0.02)


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorControl]:
    with running_emulator() as control:
        yield control


@pytest.fixture
def client(emulator: EmulatorControl) -> Iterator[GoogleComputeClient]:
    emulator.clear_faults()
    emulator.set_capacity(ZONE, MACHINE_TYPE, None)
    yield GoogleComputeClient("demo", emulator.url, "anonymous", QUICK)
    emulator.clear_faults()
    emulator.set_behaviour(lateCancel="http", operationErrorsWithoutHttpStatus=False)


def finish(client: GoogleComputeClient, operation: Operation) -> Operation:
    return eventually(lambda: client.get_operation(operation), lambda now: now.done)


def make_group(client: GoogleComputeClient, cluster: str) -> GroupReference:
    """A group of a cluster of its own, with its template."""
    mark = Mark(cluster, "a3u", "g1")
    labels = tuple(labels_of(mark).items())
    template = replace(template_specification(f"{cluster}-t"), labels=labels)
    finish(client, client.insert_template(GLOBAL, template, f"{cluster} template"))
    reference = GroupReference(ZONAL, f"{cluster}-g")
    specification = GroupSpecification(reference, template.name, encode(mark))
    assert finish(client, client.insert_group(specification, f"{cluster} group")).error is None
    return reference


def read_with_instances(client: GoogleComputeClient, cluster: str) -> ComputeSnapshot:
    return eventually(lambda: client.read(cluster), lambda found: found.instances)


def make_request(
    client: GoogleComputeClient, group: GroupReference, cluster: str, name: str, *nodes: str
) -> RequestReference:
    reference = RequestReference(group, name)
    specification = request_specification(
        reference, *nodes, description=encode(Mark(cluster, "a3u"))
    )
    operation = client.insert_resize_request(specification, f"{cluster} {name}")
    assert finish(client, operation).error is None
    return reference


def test_more_vms_than_a_page_are_read_in_as_many_calls_as_pages(
    client: GoogleComputeClient, emulator: EmulatorControl
) -> None:
    group = make_group(client, "large")
    nodes = [f"large-a3u-{index}" for index in range(600)]
    make_request(client, group, "large", "r", *nodes)
    eventually(lambda: client.read("large").instances, lambda found: len(found) == len(nodes))
    emulator.clear_calls()
    assert set(client.read("large").instances) == set(nodes)
    paths = [call.path.rpartition("/")[2] for call in emulator.calls()]
    assert paths == ["instanceGroupManagers", "resizeRequests", "instances", "instances"]


def test_two_clusters_in_a_project_do_not_see_each_other(client: GoogleComputeClient) -> None:
    for cluster in ("one", "two"):
        group = make_group(client, cluster)
        make_request(client, group, cluster, "r", f"{cluster}-a3u-0")
    for cluster in ("one", "two"):
        snapshot = read_with_instances(client, cluster)
        assert set(snapshot.instances) == {f"{cluster}-a3u-0"}
        assert {group.name for group in snapshot.groups} == {f"{cluster}-g"}
        assert {request.group.name for request in snapshot.requests} == {f"{cluster}-g"}


def test_too_many_waiting_requests_are_a_matter_of_quota(
    client: GoogleComputeClient, emulator: EmulatorControl
) -> None:
    group = make_group(client, "many")
    emulator.set_capacity(ZONE, MACHINE_TYPE, 0)
    emulator.set_quota("us-central1", "ACTIVE_RESIZE_REQUESTS", 2)
    try:
        for index in range(2):
            make_request(client, group, "many", f"r{index}", f"many-a3u-{index}")
        with pytest.raises(ComputeError) as error:
            make_request(client, group, "many", "r2", "many-a3u-2")
        assert error.value.kind is ErrorKind.QUOTA
    finally:
        emulator.set_quota("us-central1", "ACTIVE_RESIZE_REQUESTS", 100)


def test_a_waiting_request_says_that_there_is_no_capacity(
    client: GoogleComputeClient, emulator: EmulatorControl
) -> None:
    group = make_group(client, "wait")
    emulator.set_capacity(ZONE, MACHINE_TYPE, 0)
    reference = make_request(client, group, "wait", "r", "wait-a3u-0")
    request = eventually(
        lambda: client.get_resize_request(reference),
        lambda found: found is not None and found.last_attempt_error,
    )
    assert request is not None
    assert request.state is RequestState.ACCEPTED
    assert request.last_attempt_error is not None
    assert request.last_attempt_error.code == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"


@pytest.mark.parametrize("without_status", [False, True])
def test_a_late_cancel_refused_by_its_operation_is_a_conflict(
    client: GoogleComputeClient, emulator: EmulatorControl, without_status: bool
) -> None:
    cluster = f"late{int(without_status)}"
    group = make_group(client, cluster)
    reference = make_request(client, group, cluster, "r", f"{cluster}-a3u-0")
    eventually(
        lambda: client.get_resize_request(reference),
        lambda found: found is not None and found.state is RequestState.SUCCEEDED,
    )
    emulator.set_behaviour(lateCancel="operation", operationErrorsWithoutHttpStatus=without_status)
    failed = finish(client, client.cancel_resize_request(reference, f"{cluster} cancel"))
    assert classify_operation(failed) is ErrorKind.CONFLICT
    assert (failed.http_status is None) is without_status


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 403, "reason": "rateLimitExceeded"},
        {"status": 503, "reason": "backendError"},
        {"status": 500, "reason": "internalError"},
        {"kind": "drop"},
        {"kind": "garbage", "status": 200},
        {"kind": "garbage", "status": 502},
    ],
    ids=str,
)
def test_one_stumble_is_not_seen(
    client: GoogleComputeClient, emulator: EmulatorControl, fault: dict[str, str | int]
) -> None:
    emulator.add_fault("GET", ".*/aggregated/instances", **fault)  # type: ignore[arg-type]
    client.read("nobody")
    (met,) = emulator.faults()
    assert met.hits == 1


def test_a_failed_read_is_an_error_and_no_empty_snapshot(
    client: GoogleComputeClient, emulator: EmulatorControl
) -> None:
    emulator.add_fault("GET", ".*/aggregated/instances", status=503, count=10)
    with pytest.raises(ComputeError) as error:
        client.read("nobody")
    assert error.value.kind is ErrorKind.TRANSIENT


def test_an_insert_that_is_tried_again_is_done_once(
    client: GoogleComputeClient, emulator: EmulatorControl
) -> None:
    group = make_group(client, "once")
    emulator.add_fault("POST", ".*/resizeRequests", kind="drop", count=2)
    make_request(client, group, "once", "r", "once-a3u-0")
    assert len(client.read("once").requests) == 1


def test_an_operation_that_fails_is_not_read_as_success(
    client: GoogleComputeClient, emulator: EmulatorControl
) -> None:
    group = make_group(client, "dead")
    emulator.add_fault("POST", ".*/resizeRequests", kind="operation", code="QUOTA_EXCEEDED")
    specification = request_specification(RequestReference(group, "r"), "dead-a3u-0")
    failed = finish(client, client.insert_resize_request(specification, "dead"))
    assert classify_operation(failed) is ErrorKind.QUOTA
