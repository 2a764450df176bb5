"""Resize requests: their states, all or nothing, and what each end leaves behind."""

from __future__ import annotations

import pytest

from slurm_hooks.sandbox.emulator import deletions, instances, request_states, resize_requests
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.problems import ApiError, ErrorEntry
from slurm_hooks.sandbox.emulator.records import (
    InstanceStatus,
    MemberAction,
    RequestState,
    ResizeRequest,
)
from slurm_hooks.sandbox.emulator.settings import Behaviour, LateCancel, Latency
from tests.emulator.emulated_project import (
    MACHINE_TYPE,
    REGIONAL,
    REGIONAL_GROUP,
    TEMPLATE,
    EmulatedProject,
    with_change,
)

Project = EmulatedProject


def state(request: ResizeRequest) -> RequestState:
    """The state as it is now; a call, so that no earlier look at it is remembered."""
    return request.state


def test_request_shows_its_members_before_any_vm_exists() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(0)
    request = project.ask(group, "n-0", "n-1")

    assert state(request) is RequestState.CREATING
    assert group.target_size == 2
    assert [member.action for member in request.members] == [MemberAction.CREATING] * 2
    assert all(member.instance is None for member in request.members)


def test_request_waits_accepted_and_says_why() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(1)
    request = project.ask(group, "n-0", "n-1")
    project.pass_time(60)

    assert state(request) is RequestState.ACCEPTED
    assert request.last_attempt_error is not None
    assert request.last_attempt_error.code == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert project.names() == []


def test_request_gets_all_its_vms_at_once_when_capacity_comes() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(1)
    request = project.ask(group, "n-0", "n-1")
    project.pass_time(60)
    project.set_capacity(2)
    project.pass_until(lambda: request.granted)

    assert project.names() == ["n-0", "n-1"]
    assert state(request) is RequestState.ACCEPTED
    assert project.instance("n-0").status is InstanceStatus.PROVISIONING

    project.pass_time(60)
    assert state(request) is RequestState.SUCCEEDED
    assert request.last_attempt_error is None
    assert project.instance("n-0").status is InstanceStatus.RUNNING
    assert [member.action for member in request.members] == [MemberAction.NONE] * 2


def test_waiting_requests_are_served_in_order_of_creation() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(0)
    project.ask(group, "n-1", request="second-by-name-first-in-time")
    project.pass_time(1)
    project.ask(group, "n-0", request="a-later-one")
    project.pass_time(30)
    project.set_capacity(1)
    project.pass_time(60)

    assert project.names() == ["n-1"]


def test_capacity_comes_back_only_when_a_vm_is_gone() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(1)
    project.ask(group, "n-0")
    project.pass_time(60)
    waiting = project.ask(group, "n-1", request="r2")
    instances.delete(project.world, project.instance("n-0"))
    project.pass_time(project.world.latency.stopping_seconds - 0.1)
    assert state(waiting) is RequestState.ACCEPTED and not waiting.granted

    project.pass_time(60)
    assert state(waiting) is RequestState.SUCCEEDED
    assert project.names() == ["n-1"]


def test_request_waits_for_quota_and_names_metric_limit_and_region() -> None:
    project = Project()
    group = project.add_group()
    metric = "PREEMPTIBLE_NVIDIA_H200_GPUS"
    project.world.quotas.limits["us-central1", metric] = 8
    request = project.ask(group, "n-0", "n-1")
    project.pass_time(60)

    error = request.last_attempt_error
    assert state(request) is RequestState.ACCEPTED and error is not None
    assert error.code == "QUOTA_EXCEEDED"
    assert metric in error.message and "8.0" in error.message and "us-central1" in error.message


def test_failed_request_is_rolled_back() -> None:
    project = Project()
    group = project.add_group()
    request = project.ask(group, "n-0", "n-1")
    project.pass_time(project.world.latency.request_accept_seconds)
    assert project.names() == ["n-0", "n-1"]

    request_states.fail(project.world, request, ErrorEntry("LIMIT_EXCEEDED", "too slow"))
    assert state(request) is RequestState.FAILED
    assert group.target_size == 0
    project.pass_time(60)
    assert project.names() == [] and group.members == {}
    assert request.error is not None and request.error.code == "LIMIT_EXCEEDED"


def test_vm_lost_while_the_set_is_made_fails_the_request() -> None:
    project = Project()
    group = project.add_group()
    request = project.ask(group, "n-0", "n-1")
    project.pass_time(project.world.latency.request_accept_seconds)
    instances.vanish(project.world, project.instance("n-0"))
    project.pass_time(60)

    assert state(request) is RequestState.FAILED
    assert project.names() == []


def test_request_that_waits_too_long_fails_with_limit_exceeded() -> None:
    project = Project()
    project.world.behaviour = Behaviour(request_lifetime_seconds=100)
    group = project.add_group()
    project.set_capacity(0)
    request = project.ask(group, "n-0")
    project.pass_time(120)

    assert state(request) is RequestState.FAILED
    assert request.error is not None and request.error.code == "LIMIT_EXCEEDED"
    assert group.target_size == 0


def test_request_beyond_the_size_of_a_group_fails_after_its_creation() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(0)
    project.ask(group, body={"name": "big", "resizeBy": 999})
    request = project.ask(group, "n-0", "n-1")
    project.pass_time(5)

    assert state(request) is RequestState.FAILED
    assert group.target_size == 999


def test_final_request_disappears_after_fourteen_days() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(13 * 86400)
    assert "r1" in group.requests
    project.pass_time(2 * 86400)
    assert group.requests == {}


def test_cancelled_request_leaves_nothing() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(0)
    request = project.ask(group, "n-0", "n-1")
    project.pass_time(10)
    operation = resize_requests.cancel(project.world, Call(), group, "r1")
    assert state(request) is RequestState.ACCEPTED

    project.finish(operation)
    assert operation.failure is None
    assert state(request) is RequestState.CANCELLED
    assert group.target_size == 0 and group.members == {}


def test_cancel_of_a_final_request_is_refused_at_once_or_in_its_operation() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    with pytest.raises(ApiError) as refused:
        resize_requests.cancel(project.world, Call(), group, "r1")
    assert refused.value.status == 412
    assert refused.value.refusals[0].reason == "conditionNotMet"

    project.world.behaviour = Behaviour(late_cancel=LateCancel.OPERATION)
    operation = project.finish(resize_requests.cancel(project.world, Call(), group, "r1"))
    assert operation.failure is not None
    assert operation.failure.entry.code == "CONDITION_NOT_MET"
    assert operation.failure.http_status == 412


def test_cancel_while_vms_are_made_fails_in_its_operation() -> None:
    project = Project(Latency(provisioning_seconds=600))
    group = project.add_group()
    request = project.ask(group, "n-0")
    project.pass_time(project.world.latency.request_accept_seconds)
    assert state(request) is RequestState.ACCEPTED
    operation = project.finish(resize_requests.cancel(project.world, Call(), group, "r1"))

    assert operation.failure is not None
    assert operation.failure.entry.code == "CONDITION_NOT_MET"
    project.pass_time(600)
    assert state(request) is RequestState.SUCCEEDED


def test_only_a_final_request_can_be_deleted_and_its_vms_stay() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    with pytest.raises(ApiError) as refused:
        resize_requests.delete(project.world, Call(), group, "r1")
    assert refused.value.status == 412

    project.pass_time(60)
    project.finish(resize_requests.delete(project.world, Call(), group, "r1"))
    assert group.requests == {}
    assert project.names() == ["n-0"]


def test_name_of_a_vm_on_its_way_out_fails_the_insert_operation() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    instances.delete(project.world, project.instance("n-0"))
    body = {"name": "r2", "instances": [{"name": "n-0"}]}
    operation = project.finish(resize_requests.insert(project.world, Call(), group, body))

    assert operation.failure is not None
    assert operation.failure.entry.code == "ALREADY_EXISTS"
    assert operation.failure.http_status == 409
    assert "r2" not in group.requests


def test_used_request_name_is_refused() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    with pytest.raises(ApiError) as refused:
        project.ask(group, "n-1")
    assert refused.value.status == 409
    assert refused.value.refusals[0].reason == "alreadyExists"


def test_hundred_and_first_active_request_of_a_region_is_refused() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(0)
    for index in range(100):
        project.ask(group, f"n-{index}", request=f"r{index}")
    with pytest.raises(ApiError) as refused:
        project.ask(group, "n-100", request="r100")
    assert refused.value.status == 403
    assert refused.value.refusals[0].reason == "quotaExceeded"

    project.finish(resize_requests.cancel(project.world, Call(), group, "r7"))
    project.ask(group, "n-100", request="r100")


def test_run_duration_of_the_request_wins_over_the_template() -> None:
    project = Project()
    group = project.add_group()
    body = {
        "name": "r1",
        "instances": [{"name": "n-0"}],
        "requestedRunDuration": {"seconds": "600"},
    }
    project.ask(group, body=body)
    project.pass_time(30)

    vm = project.instance("n-0")
    assert vm.last_start_utc is not None and vm.termination_time_utc is not None
    assert (vm.termination_time_utc - vm.last_start_utc).total_seconds() == 600
    assert vm.scheduling["maxRunDuration"] == {"seconds": "600"}
    assert group.template.scheduling["maxRunDuration"] == {"seconds": "86400"}


def test_regional_request_takes_the_one_zone_that_holds_all() -> None:
    project = Project()
    group = project.add_group(REGIONAL_GROUP, REGIONAL)
    project.set_capacity(1, MACHINE_TYPE, "us-central1-a")
    project.set_capacity(2, MACHINE_TYPE, "us-central1-b")
    project.ask(group, "n-0", "n-1")
    project.pass_time(60)

    assert sorted(project.world.instances) == [("us-central1-b", "n-0"), ("us-central1-b", "n-1")]


def test_group_deletion_cancels_what_waits() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(0)
    request = project.ask(group, "n-0")
    project.pass_time(10)
    operation = project.finish(deletions.begin(project.world, Call(), group))

    assert operation.failure is None
    assert state(request) is RequestState.CANCELLED
    assert project.world.groups == {}


def test_group_deletion_waits_for_a_set_that_is_being_made() -> None:
    project = Project()
    group = project.add_group()
    request = project.ask(group, "n-0")
    project.pass_time(project.world.latency.request_accept_seconds)
    operation = deletions.begin(project.world, Call(), group)
    assert project.instance("n-0").status is InstanceStatus.PROVISIONING

    project.finish(operation)
    assert state(request) is RequestState.SUCCEEDED
    assert project.names() == [] and project.world.groups == {}
    assert project.world.capacity.used["us-central1-a", MACHINE_TYPE] == 0


GOOD_BODY = {"name": "r1", "instances": [{"name": "n-0"}]}


@pytest.mark.parametrize(
    "body",
    [
        {"instances": [{"name": "n-0"}]},
        {"name": "R1", "instances": [{"name": "n-0"}]},
        {"name": "r1"},
        {"name": "r1", "resizeBy": 0},
        {"name": "r1", "resizeBy": 1001},
        {"name": "r1", "resizeBy": 1, "instances": [{"name": "n-0"}]},
        {"name": "r1", "instances": [{"name": "N-0"}]},
        {"name": "r1", "instances": [{"name": "n-0"}, {"name": "n-0"}]},
        {"name": "r1", "instances": [{"name": "n-0", "preservedState": {}}]},
        {**GOOD_BODY, "requestedRunDuration": {"seconds": "599"}},
        {**GOOD_BODY, "requestedRunDuration": {"seconds": "604801"}},
        {**GOOD_BODY, "requestedRunDuration": {"seconds": "3600", "nanos": -1}},
        {**GOOD_BODY, "requestedRunDuration": {"nanos": 5}},
    ],
)
def test_malformed_request_is_refused(body: dict[str, object]) -> None:
    project = Project()
    group = project.add_group()
    with pytest.raises(ApiError) as refused:
        project.ask(group, body=body)
    assert refused.value.status == 400


@pytest.mark.parametrize("seconds", ["600", "604800"])
def test_both_ends_of_the_run_duration_are_allowed(seconds: str) -> None:
    project = Project()
    group = project.add_group()
    request = project.ask(group, body={**GOOD_BODY, "requestedRunDuration": {"seconds": seconds}})
    assert request.run_duration == {"seconds": seconds}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("properties.scheduling.provisioningModel", "STANDARD"),
        ("properties.scheduling.instanceTerminationAction", "STOP"),
        ("properties.reservationAffinity.consumeReservationType", "ANY_RESERVATION"),
        ("properties.reservationAffinity", None),
        ("properties.resourcePolicies", ["compact"]),
    ],
)
def test_template_unfit_for_requests_is_refused(path: str, value: object) -> None:
    project = Project()
    project.add_template(with_change(TEMPLATE, path, value))
    group = project.add_group()
    with pytest.raises(ApiError) as refused:
        project.ask(group, "n-0")
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("distributionPolicy.targetShape", "EVEN"),
        ("updatePolicy.instanceRedistributionType", "PROACTIVE"),
        ("instanceLifecyclePolicy.defaultActionOnFailure", "REPAIR"),
        ("instanceLifecyclePolicy", None),
    ],
)
def test_group_unfit_for_requests_is_refused(path: str, value: object) -> None:
    project = Project()
    group = project.add_group(with_change(REGIONAL_GROUP, path, value), REGIONAL)
    with pytest.raises(ApiError) as refused:
        project.ask(group, "n-0")
    assert refused.value.status == 400


def test_request_to_a_group_that_is_being_deleted_is_not_ready() -> None:
    project = Project()
    group = project.add_group()
    deletions.begin(project.world, Call(), group)
    with pytest.raises(ApiError) as refused:
        project.ask(group, "n-0")
    assert refused.value.refusals[0].reason == "resourceNotReady"
