"""VMs outside of groups, and resource policies."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from slurm_hooks.sandbox.emulator import (
    groups,
    instances,
    resource_policies,
    standalone,
)
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.problems import ApiError
from slurm_hooks.sandbox.emulator.records import InstanceStatus, Json, Operation, OperationStatus
from tests.emulator.emulated_project import (
    MACHINE_TYPE,
    REGIONAL,
    TEMPLATE,
    ZONAL,
    ZONAL_GROUP,
    ZONE,
    EmulatedProject,
    with_change,
)

VM: Json = {
    **deepcopy(TEMPLATE["properties"]),
    "name": "vm-0",
    "machineType": f"zones/{ZONE}/machineTypes/{MACHINE_TYPE}",
}
POLICY: Json = {"name": "p1", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}}


def insert(project: EmulatedProject, body: Json = VM, template: str = "") -> Operation:
    """Call instances.insert."""
    return standalone.insert(project.world, Call(), ZONE, deepcopy(body), template)


def test_vm_runs_and_has_an_end_of_life() -> None:
    project = EmulatedProject()
    operation = project.finish(insert(project))
    assert operation.failure is None
    project.pass_time(30)
    vm = project.instance("vm-0")
    assert vm.status is InstanceStatus.RUNNING
    assert vm.group is None and vm.termination_time_utc is not None


def test_operation_shows_a_stockout_while_it_still_runs() -> None:
    project = EmulatedProject()
    project.set_capacity(0)
    operation = insert(project)
    assert operation.failure is not None
    assert operation.status is not OperationStatus.DONE
    assert operation.failure.entry.code == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert operation.failure.http_status == 503
    project.finish(operation)
    assert project.names() == []


def test_flex_start_vm_waits_for_capacity_as_long_as_it_said() -> None:
    project = EmulatedProject()
    project.set_capacity(0)
    body = with_change(VM, "params", {"requestValidForDuration": {"seconds": "90"}})
    patient = insert(project, body)
    project.pass_time(80)
    assert project.instance("vm-0").status is InstanceStatus.PENDING
    project.set_capacity(1)
    assert project.finish(patient).failure is None

    impatient = insert(project, {**body, "name": "vm-1"})
    project.pass_time(100)
    assert impatient.failure is not None
    assert project.names() == ["vm-0"]


def test_waiting_vm_can_be_deleted() -> None:
    project = EmulatedProject()
    project.set_capacity(0)
    body = with_change(VM, "params", {"requestValidForDuration": {"seconds": "7200"}})
    operation = insert(project, body)
    instances.delete(project.world, project.instance("vm-0"))
    assert project.names() == []
    assert project.finish(operation).failure is not None


def test_quota_fails_the_operation() -> None:
    project = EmulatedProject()
    project.world.quotas.limits["us-central1", "PREEMPTIBLE_NVIDIA_H200_GPUS"] = 7
    operation = project.finish(insert(project))
    assert operation.failure is not None
    assert operation.failure.entry.code == "QUOTA_EXCEEDED"
    assert operation.failure.http_status == 403


def test_vm_from_a_template_may_say_no_more_than_its_name() -> None:
    project = EmulatedProject()
    project.add_template()
    project.finish(insert(project, {"name": "vm-0"}, "global/instanceTemplates/t1"))
    assert project.instance("vm-0").machine_type == MACHINE_TYPE


def test_used_vm_name_is_refused() -> None:
    project = EmulatedProject()
    insert(project)
    with pytest.raises(ApiError) as refused:
        insert(project)
    assert refused.value.status == 409


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "VM"),
        ("machineType", MACHINE_TYPE),
        ("machineType", f"zones/us-central1-b/machineTypes/{MACHINE_TYPE}"),
        ("machineType", f"zones/{ZONE}/machineTypes/none"),
        ("disks", []),
        ("params", {"requestValidForDuration": {"seconds": "89"}}),
        ("params", {"requestValidForDuration": {"seconds": "7201"}}),
    ],
)
def test_malformed_vm_is_refused(path: str, value: Any) -> None:
    project = EmulatedProject()
    with pytest.raises(ApiError) as refused:
        insert(project, with_change(VM, path, value))
    assert refused.value.status == 400
    assert project.names() == []


def test_workload_policy_must_exist_and_cannot_be_deleted_while_used() -> None:
    project = EmulatedProject()
    project.add_template()
    link = "regions/us-central1/resourcePolicies/p1"
    body = with_change(ZONAL_GROUP, "resourcePolicies", {"workloadPolicy": link})
    with pytest.raises(ApiError) as missing:
        groups.insert(project.world, Call(), ZONAL, body)
    assert missing.value.status == 404

    project.finish(resource_policies.insert(project.world, Call(), REGIONAL, POLICY))
    project.add_group(body)
    operation = resource_policies.delete(project.world, Call(), REGIONAL, "p1")
    failure = project.finish(operation).failure
    assert failure is not None
    assert failure.entry.code == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"

    project.finish(groups.delete(project.world, Call(), ZONAL, "g1"))
    project.finish(resource_policies.delete(project.world, Call(), REGIONAL, "p1"))
    assert project.world.policies == {}


def test_placement_policy_is_no_workload_policy() -> None:
    project = EmulatedProject()
    project.add_template()
    policy = {"name": "p1", "groupPlacementPolicy": {"vmCount": 2}}
    project.finish(resource_policies.insert(project.world, Call(), REGIONAL, policy))
    link = "regions/us-central1/resourcePolicies/p1"
    body = with_change(ZONAL_GROUP, "resourcePolicies", {"workloadPolicy": link})
    with pytest.raises(ApiError) as refused:
        groups.insert(project.world, Call(), ZONAL, body)
    assert refused.value.status == 400


@pytest.mark.parametrize("body", [{"name": "p1"}, {**POLICY, "groupPlacementPolicy": {}}])
def test_policy_is_of_exactly_one_kind(body: Json) -> None:
    project = EmulatedProject()
    with pytest.raises(ApiError):
        resource_policies.insert(project.world, Call(), REGIONAL, body)
