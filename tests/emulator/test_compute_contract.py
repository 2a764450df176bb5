"""The contract of ComputeClient, held by the fake and by the real client before the emulator."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_hooks.compute.classify import classify_detail, classify_operation
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import (
    FaultReason,
    GroupReference,
    GroupSpecification,
    Instance,
    InstanceStatus,
    MemberAction,
    Operation,
    RequestReference,
    RequestState,
    ResizeRequest,
    Scope,
    ScopeKind,
    WorkloadPolicySpecification,
)
from slurm_hooks.compute.ownership import Mark, encode, labels_of
from tests.emulator.compute_world import (
    CLUSTER,
    GLOBAL,
    MARK,
    REGIONAL,
    ZONAL,
    ZONES,
    World,
    finish,
    group_reference,
    make_group,
    make_template,
    request_reference,
    request_specification,
    template_specification,
)

NODES = ("demo-a3u-0", "demo-a3u-1")

both_scopes = pytest.mark.parametrize("scope", [ZONAL, REGIONAL], ids=["zonal", "regional"])


def insert(world: World, name: str = "r", *nodes: str, scope: Scope = ZONAL) -> RequestReference:
    reference = request_reference(scope, name)
    specification = request_specification(reference, *(nodes or NODES))
    operation = world.client.insert_resize_request(specification, f"insert-{name}")
    assert finish(world, operation).error is None
    return reference


def wait_for_state(world: World, reference: RequestReference, state: RequestState) -> ResizeRequest:
    found = world.eventually(
        lambda: world.client.get_resize_request(reference),
        lambda request: request is not None and request.state is state,
    )
    assert found is not None
    return found


def waiting_request(world: World, name: str = "r", scope: Scope = ZONAL) -> RequestReference:
    world.have_no_capacity()
    reference = insert(world, name, scope=scope)
    wait_for_state(world, reference, RequestState.ACCEPTED)
    return reference


def granted_request(world: World, scope: Scope = ZONAL) -> RequestReference:
    reference = waiting_request(world, scope=scope)
    world.grant(reference)
    wait_for_state(world, reference, RequestState.SUCCEEDED)
    return reference


def running_instances(world: World) -> dict[str, Instance]:
    def all_run(instances: dict[str, Instance]) -> bool:
        states = [instance.status for instance in instances.values()]
        return len(states) == len(NODES) and set(states) == {InstanceStatus.RUNNING}

    return world.eventually(lambda: world.client.read(CLUSTER).instances, all_run)


def kind_of(error: pytest.ExceptionInfo[ComputeError]) -> ErrorKind:
    return error.value.kind


def test_an_empty_project_reads_as_empty(world: World) -> None:
    snapshot = world.client.read(CLUSTER)
    assert (snapshot.groups, snapshot.requests, snapshot.instances) == ({}, {}, {})


@both_scopes
def test_a_new_group_is_empty_and_carries_our_mark(world: World, scope: Scope) -> None:
    reference = make_group(world, scope)
    group = world.client.read(CLUSTER).groups[reference]
    assert group.target_size == 0
    assert group.template == "a3u-g1"
    assert group.description == encode(MARK)
    assert group.creation_time_utc is not None


def test_a_second_group_of_the_name_is_a_conflict(world: World) -> None:
    reference = make_group(world, ZONAL)
    specification = GroupSpecification(reference, "a3u-g1", "", ZONES)
    with pytest.raises(ComputeError) as error:
        world.client.insert_group(specification, "second")
    assert kind_of(error) is ErrorKind.CONFLICT


@both_scopes
def test_a_group_may_place_its_vms_by_a_workload_policy_that_exists(
    world: World, scope: Scope
) -> None:
    make_template(world)
    region = Scope(ScopeKind.REGION, scope.region)
    policy = WorkloadPolicySpecification(region, "demo-a3u-compact", "")
    reference = group_reference(scope)
    group = GroupSpecification(reference, "a3u-g1", encode(MARK), ZONES, workload_policy=policy)
    with pytest.raises(ComputeError) as error:
        world.client.insert_group(group, "too early")
    assert kind_of(error) is ErrorKind.GONE

    finish(world, world.client.insert_workload_policy(policy, "policy"))
    assert finish(world, world.client.insert_group(group, "group")).error is None
    assert reference in world.client.read(CLUSTER).groups
    with pytest.raises(ComputeError) as error:
        world.client.insert_workload_policy(policy, "second")
    assert kind_of(error) is ErrorKind.CONFLICT


def test_workload_policies_of_ours_are_listed_and_go_once_no_group_uses_them(
    world: World,
) -> None:
    make_template(world)
    region = Scope(ScopeKind.REGION, ZONAL.region)
    ours = WorkloadPolicySpecification(region, "demo-a3u-compact", encode(MARK))
    finish(world, world.client.insert_workload_policy(ours, "ours"))
    foreign = replace(ours, name="foreign", description="by hand")
    finish(world, world.client.insert_workload_policy(foreign, "foreign"))
    reference = group_reference(ZONAL)
    group = GroupSpecification(reference, "a3u-g1", encode(MARK), ZONES, workload_policy=ours)
    finish(world, world.client.insert_group(group, "group"))
    assert world.client.read(CLUSTER).groups[reference].workload_policy == ours.name

    (listed,) = world.client.read_workload_policies(CLUSTER)
    assert (listed.scope, listed.name, listed.description) == (region, ours.name, encode(MARK))
    assert listed.creation_time_utc is not None
    refused = finish(world, world.client.delete_workload_policy(region, ours.name, "in use"))
    assert refused.error is not None

    finish(world, world.client.delete_group(reference, "delete group"))
    gone = finish(world, world.client.delete_workload_policy(region, ours.name, "free"))
    assert gone.error is None
    assert world.client.read_workload_policies(CLUSTER) == ()
    with pytest.raises(ComputeError) as error:
        world.client.delete_workload_policy(region, ours.name, "again")
    assert kind_of(error) is ErrorKind.GONE


def test_a_second_template_of_the_name_is_a_conflict(world: World) -> None:
    make_template(world)
    with pytest.raises(ComputeError) as error:
        world.client.insert_template(GLOBAL, template_specification(), "second")
    assert kind_of(error) is ErrorKind.CONFLICT


def test_a_template_in_use_is_not_deleted(world: World) -> None:
    make_group(world, ZONAL)
    failed = finish(world, world.client.delete_template(GLOBAL, "a3u-g1", "delete"))
    assert classify_operation(failed) is ErrorKind.CONFLICT


@both_scopes
def test_a_template_goes_when_its_group_has_gone(world: World, scope: Scope) -> None:
    reference = make_group(world, scope)
    assert finish(world, world.client.delete_group(reference, "delete-group")).error is None
    world.eventually(lambda: world.client.read(CLUSTER).groups, lambda groups: not groups)
    operation = world.client.delete_template(GLOBAL, "a3u-g1", "delete-template")
    assert finish(world, operation).error is None


@both_scopes
def test_a_request_without_capacity_waits(world: World, scope: Scope) -> None:
    make_group(world, scope)
    reference = waiting_request(world, scope=scope)
    request = world.client.read(CLUSTER).requests[reference]
    assert request.state is RequestState.ACCEPTED
    assert set(request.instances) == set(NODES)
    assert request.description == encode(MARK)
    assert request.error is None
    assert world.client.read(CLUSTER).groups[reference.group].target_size == len(NODES)
    assert world.client.read(CLUSTER).instances == {}


@both_scopes
def test_a_granted_request_makes_exactly_its_vms(world: World, scope: Scope) -> None:
    make_group(world, scope)
    reference = granted_request(world, scope=scope)
    instances = running_instances(world)
    assert set(instances) == set(NODES)
    for instance in instances.values():
        assert instance.group == reference.group
        assert instance.zone in ZONES
        assert instance.labels["slurm-hooks-cluster"] == CLUSTER
        assert instance.instance_id
        assert instance.termination_time_utc is not None
    assert len({instance.zone for instance in instances.values()}) == 1


def test_a_failed_request_says_why_and_leaves_nothing(world: World) -> None:
    make_group(world, ZONAL)
    reference = waiting_request(world)
    world.fail(reference, "QUOTA_EXCEEDED")
    request = wait_for_state(world, reference, RequestState.FAILED)
    assert request.error is not None
    assert request.error.code == "QUOTA_EXCEEDED"
    snapshot = world.client.read(CLUSTER)
    assert snapshot.groups[reference.group].target_size == 0
    assert snapshot.instances == {}


@both_scopes
def test_a_cancelled_request_leaves_nothing(world: World, scope: Scope) -> None:
    make_group(world, scope)
    reference = waiting_request(world, scope=scope)
    operation = world.client.cancel_resize_request(reference, "cancel")
    assert finish(world, operation).error is None
    wait_for_state(world, reference, RequestState.CANCELLED)
    assert world.client.read(CLUSTER).groups[reference.group].target_size == 0
    operation = world.client.delete_resize_request(reference, "delete")
    assert finish(world, operation).error is None
    assert world.client.get_resize_request(reference) is None


def late_cancel(world: World, reference: RequestReference) -> ErrorKind | None:
    try:
        operation = world.client.cancel_resize_request(reference, "late")
    except ComputeError as error:
        return error.kind
    return classify_operation(finish(world, operation))


def test_a_late_cancel_is_a_conflict_and_changes_nothing(world: World) -> None:
    make_group(world, ZONAL)
    reference = granted_request(world)
    assert late_cancel(world, reference) is ErrorKind.CONFLICT
    request = world.client.get_resize_request(reference)
    assert request is not None
    assert request.state is RequestState.SUCCEEDED


def test_an_active_request_cannot_be_deleted(world: World) -> None:
    make_group(world, ZONAL)
    reference = waiting_request(world)
    try:
        operation = world.client.delete_resize_request(reference, "delete")
    except ComputeError as error:
        assert error.kind not in (ErrorKind.GONE, ErrorKind.RATE)
    else:
        assert finish(world, operation).error is not None
    assert world.client.get_resize_request(reference) is not None


def test_a_deleted_request_leaves_its_vms(world: World) -> None:
    make_group(world, ZONAL)
    reference = granted_request(world)
    operation = world.client.delete_resize_request(reference, "delete")
    assert finish(world, operation).error is None
    assert set(running_instances(world)) == set(NODES)


def test_a_second_request_of_the_name_is_a_conflict(world: World) -> None:
    make_group(world, ZONAL)
    reference = waiting_request(world)
    specification = request_specification(reference, "demo-a3u-5")
    with pytest.raises(ComputeError) as error:
        world.client.insert_resize_request(specification, "second")
    assert kind_of(error) is ErrorKind.CONFLICT


def test_a_request_for_a_vm_that_exists_never_succeeds(world: World) -> None:
    make_group(world, ZONAL)
    granted_request(world)
    reference = request_reference(ZONAL, "again")
    specification = request_specification(reference, NODES[0])
    try:
        operation = world.client.insert_resize_request(specification, "again")
    except ComputeError as error:
        assert error.kind is ErrorKind.CONFLICT
    else:
        assert classify_operation(finish(world, operation)) is ErrorKind.CONFLICT


@both_scopes
def test_deleted_vms_leave_the_group(world: World, scope: Scope) -> None:
    make_group(world, scope)
    reference = granted_request(world, scope=scope)
    zones = {name: instance.zone for name, instance in running_instances(world).items()}
    operation = world.client.delete_instances(reference.group, zones, "delete")
    assert finish(world, operation).error is None
    world.eventually(lambda: world.client.read(CLUSTER).instances, lambda vms: not vms)
    assert world.client.read(CLUSTER).groups[reference.group].target_size == 0


def test_deleting_what_is_no_member_is_skipped(world: World) -> None:
    make_group(world, ZONAL)
    reference = granted_request(world)
    zones = {NODES[0]: ZONAL.name, "demo-a3u-9": ZONAL.name}
    running_instances(world)
    operation = world.client.delete_instances(reference.group, zones, "delete")
    assert finish(world, operation).error is None
    world.eventually(lambda: set(world.client.read(CLUSTER).instances), lambda s: s == {NODES[1]})


def test_members_with_and_without_vm_are_refused_in_one_call(world: World) -> None:
    make_group(world, ZONAL)
    with pytest.raises(ComputeError) as error:
        world.client.delete_instances(group_reference(ZONAL), {"a": "z", "b": ""}, "delete")
    assert kind_of(error) is ErrorKind.CONFIG


def test_a_repeated_request_id_replays_the_operation(world: World) -> None:
    make_group(world, ZONAL)
    world.have_no_capacity()
    specification = request_specification(request_reference(ZONAL, "r"), *NODES)
    first = world.client.insert_resize_request(specification, "same")
    second = world.client.insert_resize_request(specification, "same")
    assert first.name == second.name
    finish(world, first)
    assert len(world.client.read(CLUSTER).requests) == 1


def test_a_repeated_request_id_replays_a_dead_operation(world: World) -> None:
    make_group(world, ZONAL)
    reference = waiting_request(world)
    specification = request_specification(reference, *NODES)
    finish(world, world.client.cancel_resize_request(reference, "cancel"))
    finish(world, world.client.delete_resize_request(reference, "delete"))
    replayed = world.client.insert_resize_request(specification, "insert-r")
    assert replayed.done
    assert world.client.get_resize_request(reference) is None


def test_other_things_are_not_read(world: World) -> None:
    make_group(world, ZONAL)
    for name, description in (("hand-made", "mine"), ("other", encode(Mark("demo2", "a3u")))):
        reference = group_reference(ZONAL, name)
        specification = GroupSpecification(reference, "a3u-g1", description)
        finish(world, world.client.insert_group(specification, name))
    assert set(world.client.read(CLUSTER).groups) == {group_reference(ZONAL)}


@pytest.mark.parametrize("scope", [GLOBAL, ZONAL, REGIONAL], ids=str)
def test_an_unknown_operation_is_gone(world: World, scope: Scope) -> None:
    with pytest.raises(ComputeError) as error:
        world.client.get_operation(Operation("operation-0", scope))
    assert kind_of(error) is ErrorKind.GONE


def test_what_does_not_exist_is_gone(world: World) -> None:
    group: GroupReference = group_reference(ZONAL, "nowhere")
    reference = RequestReference(group, "r")
    assert world.client.get_resize_request(reference) is None
    assert world.client.get_group(group) is None
    for call in (
        lambda: world.client.delete_group(group, "1"),
        lambda: world.client.cancel_resize_request(reference, "2"),
        lambda: world.client.delete_resize_request(reference, "3"),
        lambda: world.client.delete_template(GLOBAL, "nothing", "4"),
        lambda: world.client.get_serial_port_output(ZONAL.name, "nobody"),
        lambda: world.client.delete_instance(ZONAL.name, "nobody", "6"),
        lambda: world.client.insert_resize_request(request_specification(reference, "n"), "5"),
    ):
        with pytest.raises(ComputeError) as error:
            call()
        assert kind_of(error) is ErrorKind.GONE


def test_created_vms_are_read_with_their_group(world: World) -> None:
    reference = make_group(world, ZONAL)
    operation = world.client.create_instances(reference, NODES, "create")
    assert finish(world, operation).error is None
    instances = running_instances(world)
    assert {instance.group for instance in instances.values()} == {reference}


def test_creating_a_vm_that_exists_fails_the_whole_call(world: World) -> None:
    reference = make_group(world, ZONAL)
    finish(world, world.client.create_instances(reference, NODES[:1], "create"))
    try:
        again = finish(world, world.client.create_instances(reference, NODES, "again"))
    except ComputeError as error:
        assert error.kind is ErrorKind.CONFLICT
    else:
        assert classify_operation(again) is ErrorKind.CONFLICT
    assert NODES[1] not in world.client.read(CLUSTER).instances


def group_of_spot_vms(world: World) -> GroupReference:
    """A group whose VMs are created by name, as its mark says."""
    specification = replace(
        template_specification("spot-g1"), provisioning_model="SPOT", run_duration_seconds=None
    )
    finish(world, world.client.insert_template(GLOBAL, specification, "spot template"))
    reference = group_reference(ZONAL, "demo-spot-g1")
    mark = encode(replace(MARK, provisioning_model="SPOT"))
    group = GroupSpecification(reference, "spot-g1", mark)
    assert finish(world, world.client.insert_group(group, "spot group")).error is None
    return reference


def test_members_whose_vms_cannot_be_made_are_read_with_the_error_and_get_them_later(
    world: World,
) -> None:
    reference = group_of_spot_vms(world)
    world.have_no_capacity()
    operation = world.client.create_instances(reference, NODES, "create")
    assert finish(world, operation).error is None
    members = world.eventually(
        lambda: world.client.read(CLUSTER).members,
        lambda found: len(found) == 2 and all(m.last_attempt_error for m in found.values()),
    )
    for name in NODES:
        error = members[name].last_attempt_error
        assert (members[name].group, members[name].action) == (reference, MemberAction.CREATING)
        assert error is not None
        assert classify_detail(error) is ErrorKind.STOCKOUT
    assert world.client.read(CLUSTER).instances == {}
    assert world.client.read(CLUSTER).groups[reference].target_size == len(NODES)
    world.have_capacity()
    running_instances(world)
    assert world.client.read(CLUSTER).members == {}


def test_a_member_without_a_vm_is_deleted_by_its_bare_name(world: World) -> None:
    reference = group_of_spot_vms(world)
    world.have_no_capacity()
    finish(world, world.client.create_instances(reference, NODES, "create"))
    operation = world.client.delete_instances(reference, {NODES[0]: ""}, "delete")
    assert finish(world, operation).error is None
    assert set(world.client.read(CLUSTER).members) == {NODES[1]}
    assert world.client.read(CLUSTER).groups[reference].target_size == 1


def test_creating_a_member_that_waits_already_fails_the_whole_call(world: World) -> None:
    reference = group_of_spot_vms(world)
    world.have_no_capacity()
    finish(world, world.client.create_instances(reference, NODES[:1], "create"))
    again = finish(world, world.client.create_instances(reference, NODES, "again"))
    assert classify_operation(again) is ErrorKind.CONFLICT
    assert set(world.client.read(CLUSTER).members) == {NODES[0]}


@both_scopes
def test_one_group_is_read_as_in_the_list(world: World, scope: Scope) -> None:
    reference = make_group(world, scope)
    assert world.client.get_group(reference) == world.client.read(CLUSTER).groups[reference]


def test_templates_of_ours_are_told_by_the_labels_of_their_vms(world: World) -> None:
    make_template(world)
    foreign = replace(template_specification("foreign"), labels=(("team", "ours"),))
    finish(world, world.client.insert_template(GLOBAL, foreign, "foreign"))
    (template,) = world.client.read_templates(CLUSTER)
    assert (template.name, template.labels) == ("a3u-g1", labels_of(MARK))
    assert template.creation_time_utc is not None
    assert world.client.read_templates("other") == ()


def test_a_single_vm_is_deleted_by_its_zone_and_name(world: World) -> None:
    reference = make_group(world, ZONAL)
    finish(world, world.client.create_instances(reference, NODES, "create"))
    zone = running_instances(world)[NODES[0]].zone
    assert finish(world, world.client.delete_instance(zone, NODES[0], "delete")).error is None
    world.eventually(
        lambda: world.client.read(CLUSTER).instances.keys(), lambda names: names == {NODES[1]}
    )


def test_host_of_a_vm_without_reservation_is_reported_in_vain(world: World) -> None:
    make_group(world, ZONAL)
    granted_request(world)
    vm = running_instances(world)[NODES[0]]
    reason = FaultReason("PERFORMANCE", "slow")
    started = world.client.report_host_as_faulty(vm.zone, vm.name, reason, "report-1")
    ended = finish(world, started)
    assert ended.error is not None
    assert ended.error.code == "INSTANCES_WITHOUT_RESERVATION_NOT_SUPPORTED"
    again = world.client.report_host_as_faulty(vm.zone, vm.name, reason, "report-1")
    assert again.name == started.name


def test_host_of_a_vm_that_is_not_there_cannot_be_reported(world: World) -> None:
    with pytest.raises(ComputeError) as error:
        world.client.report_host_as_faulty(ZONES[0], "nobody", FaultReason("PERFORMANCE"), "r")
    assert kind_of(error) is ErrorKind.GONE
