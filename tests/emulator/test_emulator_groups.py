"""Managed instance groups, their members and the VMs in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from slurm_hooks.sandbox.emulator import (
    groups,
    instance_calls,
    instances,
    member_calls,
    templates,
)
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.places import GLOBAL, Scope, ScopeKind
from slurm_hooks.sandbox.emulator.problems import ApiError, failure
from slurm_hooks.sandbox.emulator.records import (
    Group,
    GroupState,
    Instance,
    InstanceStatus,
    MemberAction,
    Operation,
)
from tests.emulator.emulated_project import (
    MACHINE_TYPE,
    REGIONAL,
    REGIONAL_GROUP,
    STANDARD_TEMPLATE,
    TEMPLATE,
    ZONAL,
    ZONAL_GROUP,
    ZONE,
    EmulatedProject,
    with_change,
)

Project = EmulatedProject
STANDARD_GROUP = with_change(
    ZONAL_GROUP, "versions", [{"instanceTemplate": "global/instanceTemplates/standard"}]
)


def status(instance: Instance) -> InstanceStatus:
    """The status as it is now; a call, so that no earlier look at it is remembered."""
    return instance.status


def url(name: str, zone: str = ZONE) -> str:
    """A member with a VM as deleteInstances wants it."""
    return f"zones/{zone}/instances/{name}"


def delete_members(project: Project, group: Group, *entries: str, skip: bool = False) -> Operation:
    """Call deleteInstances and wait for its operation."""
    body = {"instances": list(entries), "skipInstancesOnValidationError": skip}
    return project.finish(member_calls.delete_instances(project.world, Call(), group, body))


def standard_group(project: Project, **changes: Any) -> Group:
    """A group of VMs without an end of life."""
    project.add_template(STANDARD_TEMPLATE)
    return project.add_group({**STANDARD_GROUP, **changes})


def create(project: Project, group: Group, *names: str) -> Operation:
    """Call createInstances and wait for its operation."""
    body = {"instances": [{"name": name} for name in names]}
    return project.finish(member_calls.create_instances(project.world, Call(), group, body))


def test_group_can_be_used_only_once_its_insert_is_done() -> None:
    project = Project()
    project.add_template()
    operation = groups.insert(project.world, Call(), ZONAL, dict(ZONAL_GROUP))
    group = groups.find(project.world, ZONAL, "g1")
    assert group.state is GroupState.CREATING
    with pytest.raises(ApiError) as refused:
        groups.ready(project.world, ZONAL, "g1")
    assert refused.value.refusals[0].reason == "resourceNotReady"

    project.finish(operation)
    assert groups.ready(project.world, ZONAL, "g1") is group


def test_group_needs_a_template_whose_insert_is_done() -> None:
    project = Project()
    with pytest.raises(ApiError) as missing:
        groups.insert(project.world, Call(), ZONAL, dict(ZONAL_GROUP))
    assert missing.value.status == 404

    templates.insert(project.world, Call(), GLOBAL, TEMPLATE)
    with pytest.raises(ApiError) as unfinished:
        groups.insert(project.world, Call(), ZONAL, dict(ZONAL_GROUP))
    assert unfinished.value.refusals[0].reason == "resourceNotReady"


def test_template_of_another_region_is_refused() -> None:
    project = Project()
    elsewhere = Scope(ScopeKind.REGION, "europe-west4")
    project.add_template(TEMPLATE, elsewhere)
    link = "regions/europe-west4/instanceTemplates/t1"
    body = with_change(ZONAL_GROUP, "versions", [{"instanceTemplate": link}])
    with pytest.raises(ApiError) as refused:
        groups.insert(project.world, Call(), ZONAL, body)
    assert refused.value.status == 400


def test_template_in_use_cannot_be_deleted() -> None:
    project = Project()
    group = project.add_group()
    operation = project.finish(templates.delete(project.world, Call(), GLOBAL, "t1"))
    assert operation.failure is not None
    assert operation.failure.entry.code == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
    assert operation.failure.http_status == 400

    project.finish(groups.delete(project.world, Call(), ZONAL, group.name))
    operation = project.finish(templates.delete(project.world, Call(), GLOBAL, "t1"))
    assert operation.failure is None
    assert project.world.templates == {}


def test_group_stays_listed_with_size_zero_until_its_last_vm_is_gone() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    operation = groups.delete(project.world, Call(), ZONAL, "g1")

    assert group.target_size == 0
    assert status(project.instance("n-0")) is InstanceStatus.STOPPING
    project.pass_time(3)
    assert (ZONAL, "g1") in project.world.groups
    with pytest.raises(ApiError):
        groups.delete(project.world, Call(), ZONAL, "g1")

    project.finish(operation)
    assert project.world.groups == {} and project.names() == []


def test_deleted_member_lowers_the_target_size_at_once_and_leaves_later() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0", "n-1")
    project.pass_time(60)
    body = {"instances": [url("n-0")]}
    operation = member_calls.delete_instances(project.world, Call(), group, body)

    assert group.target_size == 1
    assert group.members["n-0"].action is MemberAction.DELETING
    assert project.finish(operation).failure is None
    project.pass_time(60)
    assert sorted(group.members) == ["n-1"] == project.names()


@pytest.mark.parametrize(
    "entry", [url("n-9"), url("n-0", "us-central1-b"), "zones/x", "n-0", url("n-gone")]
)
def test_entry_that_is_no_deletable_member_fails_the_operation(entry: str) -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0", "n-gone")
    project.pass_time(60)
    instances.delete(project.world, project.instance("n-gone"))
    operation = delete_members(project, group, entry)

    assert operation.failure is not None
    assert status(project.instance("n-0")) is InstanceStatus.RUNNING


@pytest.mark.parametrize("entry", [url("n-9"), url("n-gone")])
def test_skip_flag_passes_over_non_members_and_members_on_their_way_out(entry: str) -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0", "n-gone")
    project.pass_time(60)
    instances.delete(project.world, project.instance("n-gone"))
    operation = delete_members(project, group, entry, url("n-0"), skip=True)

    assert operation.failure is None
    project.pass_time(60)
    assert project.names() == []


@pytest.mark.parametrize("entry", ["zones/x", url("n-0", "us-central1-b"), "https://x/n-0"])
def test_skip_flag_does_not_excuse_malformed_urls_or_foreign_zones(entry: str) -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    operation = delete_members(project, group, url("n-0"), entry, skip=True)

    assert operation.failure is not None
    assert status(project.instance("n-0")) is InstanceStatus.RUNNING


def test_member_of_a_waiting_request_cannot_be_deleted_alone() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(0)
    project.ask(group, "n-0")
    project.pass_time(10)
    assert delete_members(project, group, "n-0").failure is not None
    assert group.target_size == 1


def test_urls_and_bare_names_cannot_be_mixed() -> None:
    project = Project()
    group = project.add_group()
    body = {"instances": [url("n-0"), "n-1"]}
    with pytest.raises(ApiError) as refused:
        member_calls.delete_instances(project.world, Call(), group, body)
    assert refused.value.status == 400


def test_created_members_get_their_vms_one_by_one() -> None:
    project = Project()
    group = standard_group(project)
    project.set_capacity(1, "n2-standard-4")
    assert create(project, group, "n-0", "n-1").failure is None
    project.pass_time(60)

    assert project.names() == ["n-0"]
    waiting = group.members["n-1"]
    assert waiting.last_error is not None
    assert waiting.last_error.code == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert [error.member for error in group.errors] == ["n-1"]

    assert delete_members(project, group, "n-1").failure is None
    assert sorted(group.members) == ["n-0"]


def test_flex_start_member_without_a_request_waits_as_a_pending_vm() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(0)
    create(project, group, "n-0")
    project.pass_time(10)
    assert status(project.instance("n-0")) is InstanceStatus.PENDING

    project.set_capacity(1)
    project.pass_time(60)
    assert status(project.instance("n-0")) is InstanceStatus.RUNNING


def test_name_in_use_fails_create_instances_as_a_whole() -> None:
    project = Project()
    group = standard_group(project)
    create(project, group, "n-0")
    operation = create(project, group, "n-1", "n-0")

    assert operation.failure is not None and operation.failure.entry.code == "ALREADY_EXISTS"
    assert sorted(group.members) == ["n-0"]


def test_create_instances_needs_opportunistic_updates() -> None:
    project = Project()
    group = standard_group(project, updatePolicy={"type": "PROACTIVE"})
    operation = create(project, group, "n-0")
    assert operation.failure is not None
    assert operation.failure.entry.code == "CONDITION_NOT_MET"


def test_resize_is_refused_while_a_request_waits() -> None:
    project = Project()
    group = project.add_group()
    project.set_capacity(0)
    project.ask(group, "n-0")
    with pytest.raises(ApiError) as refused:
        groups.resize(project.world, Call(), ZONAL, "g1", 0)
    assert refused.value.status == 412


def test_resize_makes_and_removes_automatic_members() -> None:
    project = Project()
    group = standard_group(project, baseInstanceName="auto")
    operation = groups.resize(project.world, Call(), ZONAL, "g1", 3)
    project.pass_time(0)
    assert operation.end_time_utc == project.world.now
    project.pass_time(60)
    assert len(project.names()) == 3
    assert all(len(name) == len("auto-xxxx") for name in project.names())

    groups.resize(project.world, Call(), ZONAL, "g1", 1)
    project.pass_time(60)
    assert len(project.names()) == 1 == group.target_size


def test_repairing_group_replaces_a_lost_vm_under_its_name() -> None:
    project = Project()
    group = standard_group(project, instanceLifecyclePolicy={})
    create(project, group, "n-0")
    project.pass_time(60)
    lost = project.instance("n-0")
    instances.vanish(project.world, lost)
    project.pass_time(60)

    assert project.instance("n-0").instance_id != lost.instance_id
    assert group.target_size == 1


def test_repairing_group_replaces_a_vm_that_was_deleted_behind_its_back() -> None:
    project = Project()
    group = standard_group(project, instanceLifecyclePolicy={})
    create(project, group, "n-0", "n-1")
    project.pass_time(60)
    old = project.instance("n-0")
    project.finish(instance_calls.delete(project.world, Call(), ZONE, "n-0"))
    assert delete_members(project, group, url("n-1")).failure is None
    project.pass_time(60)

    assert project.names() == ["n-0"]
    assert project.instance("n-0").instance_id != old.instance_id


def test_group_without_repairs_lets_a_lost_vm_go() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0", "n-1")
    project.pass_time(60)
    instances.vanish(project.world, project.instance("n-0"))
    assert project.names() == ["n-1"]
    assert group.target_size == 1


def test_group_without_repairs_may_keep_a_lost_member_and_its_name() -> None:
    project = Project()
    project.world.behaviour = replace(project.world.behaviour, keeps_lost_members=True)
    policy = {"defaultActionOnFailure": "DO_NOTHING"}
    group = standard_group(project, instanceLifecyclePolicy=policy)
    create(project, group, "n-0", "n-1")
    project.pass_time(60)
    instances.vanish(project.world, project.instance("n-0"))
    project.finish(instance_calls.delete(project.world, Call(), ZONE, "n-1"))
    project.pass_time(60)

    assert (project.names(), group.target_size) == ([], 2)
    assert {member.action for member in group.members.values()} == {MemberAction.NONE}
    again = create(project, group, "n-0")
    assert again.failure is not None and again.failure.entry.code == "ALREADY_EXISTS"
    assert delete_members(project, group, "n-0", "n-1").failure is None
    assert create(project, group, "n-0").failure is None
    project.pass_time(60)
    assert project.names() == ["n-0"]


def test_recreate_is_refused_for_flex_start_and_replaces_other_vms() -> None:
    project = Project()
    flexible = project.add_group(with_change(ZONAL_GROUP, "name", "flexible"))
    with pytest.raises(ApiError):
        member_calls.recreate_instances(
            project.world, Call(), flexible, {"instances": [url("n-0")]}
        )
    group = standard_group(project)
    create(project, group, "n-0")
    project.pass_time(60)
    old = project.instance("n-0")
    member_calls.recreate_instances(project.world, Call(), group, {"instances": [url("n-0")]})
    project.pass_time(60)

    assert project.instance("n-0").instance_id != old.instance_id
    assert group.target_size == 1


def test_abandoned_vm_lives_on_outside_the_group() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    member_calls.abandon_instances(project.world, Call(), group, {"instances": [url("n-0")]})
    project.finish(groups.delete(project.world, Call(), ZONAL, "g1"))
    assert status(project.instance("n-0")) is InstanceStatus.RUNNING


def test_patch_needs_the_current_fingerprint() -> None:
    project = Project()
    group = project.add_group()
    old = groups.fingerprint_of(group)
    body = {"description": "new", "fingerprint": old}
    project.finish(groups.patch(project.world, Call(), ZONAL, "g1", body))
    assert group.body["description"] == "new"
    with pytest.raises(ApiError) as refused:
        groups.patch(project.world, Call(), ZONAL, "g1", body)
    assert refused.value.status == 412


def test_flex_start_vm_is_deleted_within_thirty_seconds_after_its_end_of_life() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    vm = project.instance("n-0")
    assert vm.termination_time_utc is not None
    project.pass_time((vm.termination_time_utc - project.world.now).total_seconds())
    assert status(vm) is InstanceStatus.RUNNING

    project.pass_time(30)
    assert vm.gone
    assert group.target_size == 0 and group.members == {}


def test_end_of_life_is_known_only_once_the_vm_runs() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_until(lambda: "n-0" in project.names())
    assert project.instance("n-0").termination_time_utc is None
    project.pass_time(60)
    assert project.instance("n-0").termination_time_utc is not None


def test_host_error_ends_a_flex_start_vm_but_keeps_it_listed() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    instances.host_error(project.world, project.instance("n-0"))
    project.pass_time(60)
    assert status(project.instance("n-0")) is InstanceStatus.TERMINATED

    assert delete_members(project, group, url("n-0")).failure is None
    project.pass_time(60)
    assert project.names() == []


def test_vm_whose_guest_powers_off_stops_and_stays_listed() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    instances.guest_shutdown(project.world, project.instance("n-0"))
    assert status(project.instance("n-0")) is InstanceStatus.STOPPING
    project.pass_time(60)
    assert status(project.instance("n-0")) is InstanceStatus.TERMINATED


def test_host_error_restarts_a_vm_that_may_restart() -> None:
    project = Project()
    group = standard_group(project)
    create(project, group, "n-0")
    project.pass_time(60)
    vm = project.instance("n-0")
    instances.host_error(project.world, vm)
    assert status(vm) is InstanceStatus.REPAIRING
    project.pass_time(60)
    assert status(vm) is InstanceStatus.RUNNING


def test_addresses_are_used_again() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    address = project.instance("n-0").network_ip
    instances.vanish(project.world, project.instance("n-0"))
    project.ask(group, "n-1", request="r2")
    project.pass_time(60)
    assert project.instance("n-1").network_ip == address


def test_member_names_its_group_and_template_by_project_number() -> None:
    project = Project()
    group = project.add_group(REGIONAL_GROUP, REGIONAL)
    project.ask(group, "n-0")
    project.pass_time(60)
    metadata = {item["key"]: item["value"] for item in project.instance("n-0").metadata}
    prefix = "projects/123456789012"
    assert metadata == {
        "k": "v",
        "instance-template": f"{prefix}/global/instanceTemplates/t1",
        "created-by": f"{prefix}/regions/us-central1/instanceGroupManagers/g1",
    }


def test_deletion_of_a_vm_is_done_when_it_is_gone() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    operation = instance_calls.delete(project.world, Call(), ZONE, "n-0")
    assert project.names() == ["n-0"]
    project.finish(operation)
    assert project.names() == []


def test_injected_failure_leaves_everything_as_it_was() -> None:
    project = Project()
    group = project.add_group()
    project.ask(group, "n-0")
    project.pass_time(60)
    calls: tuple[Callable[[], Operation], ...] = (
        lambda: instance_calls.delete(project.world, Call(), ZONE, "n-0"),
        lambda: groups.delete(project.world, Call(), ZONAL, "g1"),
        lambda: member_calls.delete_instances(
            project.world, Call(), group, {"instances": [url("n-0")]}
        ),
    )
    for call in calls:
        project.world.next_operation_failure = failure("INTERNAL_ERROR", "injected")
        operation = project.finish(call())
        project.world.next_operation_failure = None
        assert operation.failure is not None and operation.failure.http_status == 500
    project.pass_time(60)
    assert project.names() == ["n-0"] and group.target_size == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "G1"),
        ("targetSize", -1),
        ("targetSize", 1001),
        ("baseInstanceName", "x" * 59),
        ("versions", []),
        ("distributionPolicy", {}),
        ("statefulPolicy", {"preservedState": {}}),
    ],
)
def test_malformed_group_is_refused(path: str, value: object) -> None:
    project = Project()
    with pytest.raises(ApiError) as refused:
        project.add_group(with_change(ZONAL_GROUP, path, value))
    assert refused.value.status == 400


@pytest.mark.parametrize("member", ["name", "targetSize"])
def test_group_without_a_required_member_is_refused(member: str) -> None:
    project = Project()
    project.add_template()
    body = {key: value for key, value in ZONAL_GROUP.items() if key != member}
    with pytest.raises(ApiError) as refused:
        groups.insert(project.world, Call(), ZONAL, body)
    assert refused.value.refusals[0].reason == "required"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "Has_Capitals"),
        ("properties.machineType", "zones/us-central1-a/machineTypes/n2-standard-4"),
        ("properties.machineType", "no-such-type"),
        ("properties.disks", []),
        ("properties.networkInterfaces", []),
        ("properties.networkInterfaces", [{"network": "default"}]),
        ("properties.scheduling.onHostMaintenance", "MIGRATE"),
        ("properties.scheduling.onHostMaintenance", None),
        ("properties.scheduling.maxRunDuration", {"seconds": "29"}),
        ("properties.scheduling.maxRunDuration", {"seconds": "604801"}),
        ("properties.scheduling.maxRunDuration", {"seconds": "7d"}),
        ("properties.scheduling.instanceTerminationAction", None),
        ("properties.metadata", {"items": [{"key": "a"}, {"key": "a"}]}),
    ],
)
def test_malformed_template_is_refused(path: str, value: object) -> None:
    project = Project()
    with pytest.raises(ApiError) as refused:
        project.add_template(with_change(TEMPLATE, path, value))
    assert refused.value.status == 400


@pytest.mark.parametrize("seconds", ["30", "604800"])
def test_both_ends_of_the_run_duration_of_a_template_are_allowed(seconds: str) -> None:
    project = Project()
    path = "properties.scheduling.maxRunDuration"
    project.add_template(with_change(TEMPLATE, path, {"seconds": seconds}))
    assert (GLOBAL, "t1") in project.world.templates
    assert project.world.templates[GLOBAL, "t1"].properties["machineType"] == MACHINE_TYPE
