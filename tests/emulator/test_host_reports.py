"""Reporting a host as faulty: which VMs the emulator takes a report for, and what follows."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from slurm_hooks.sandbox.emulator import host_reports, instance_calls, standalone
from slurm_hooks.sandbox.emulator.http import instance_shapes
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.problems import ApiError
from slurm_hooks.sandbox.emulator.records import Instance, InstanceStatus, Json, Operation
from tests.emulator.emulated_project import MACHINE_TYPE, TEMPLATE, ZONE, EmulatedProject

NAME = "n-0"
REPORT: Json = {
    "disruptionSchedule": "IMMEDIATE",
    "faultReasons": [{"behavior": "PERFORMANCE", "description": "slow"}],
}


def running_vm(
    project: EmulatedProject,
    model: str = "RESERVATION_BOUND",
    machine_type: str = MACHINE_TYPE,
) -> Instance:
    properties: dict[str, Any] = deepcopy(TEMPLATE["properties"])
    body = {
        **properties,
        "name": NAME,
        "machineType": f"zones/{ZONE}/machineTypes/{machine_type}",
        "scheduling": {
            "provisioningModel": model,
            "onHostMaintenance": "TERMINATE",
            "instanceTerminationAction": "DELETE",
        },
    }
    project.finish(standalone.insert(project.world, Call(), ZONE, body, ""))
    project.pass_until(lambda: project.instance(NAME).status is InstanceStatus.RUNNING)
    return project.instance(NAME)


def report(project: EmulatedProject, body: Json = REPORT) -> Operation:
    return host_reports.report(project.world, Call(), ZONE, NAME, body)


def code_of(operation: Operation) -> str:
    return operation.failure.entry.code if operation.failure else ""


def host_of(project: EmulatedProject, vm: Instance) -> str:
    return str(instance_shapes.instance(project.world, vm)["resourceStatus"]["physicalHost"])


def test_a_reported_vm_runs_on_then_is_repaired_and_runs_on_another_host() -> None:
    project = EmulatedProject()
    vm = running_vm(project)
    before = host_of(project, vm)
    operation = report(project)
    project.pass_time(project.world.latency.host_report_seconds - 1)
    assert vm.status is InstanceStatus.RUNNING
    assert operation.end_time_utc is None
    project.pass_until(lambda: vm.status is InstanceStatus.REPAIRING)
    project.finish(operation)
    assert (code_of(operation), vm.status) == ("", InstanceStatus.RUNNING)
    assert host_of(project, vm) != before
    assert project.instance(NAME) is vm


@pytest.mark.parametrize(
    ("model", "machine_type", "code"),
    [
        ("FLEX_START", MACHINE_TYPE, "INSTANCES_WITHOUT_RESERVATION_NOT_SUPPORTED"),
        ("STANDARD", "a4-highgpu-8g", "INSTANCES_WITHOUT_RESERVATION_NOT_SUPPORTED"),
        ("RESERVATION_BOUND", "n2-standard-4", "MACHINE_TYPE_NOT_SUPPORTED"),
    ],
)
def test_only_reservation_bound_vms_of_certain_types_are_taken(
    model: str, machine_type: str, code: str
) -> None:
    project = EmulatedProject()
    vm = running_vm(project, model, machine_type)
    assert code_of(project.finish(report(project))) == code
    project.pass_time(project.world.latency.host_report_seconds + 1)
    assert vm.status is InstanceStatus.RUNNING


def test_a_report_without_a_reason_fails() -> None:
    project = EmulatedProject()
    running_vm(project)
    operation = report(project, {"disruptionSchedule": "IMMEDIATE"})
    assert code_of(project.finish(operation)) == "FAULT_REASONS_EMPTY_SHOULD_BE_SPECIFIED"


@pytest.mark.parametrize("schedule", [{}, {"disruptionSchedule": "FUTURE"}])
def test_only_an_immediate_disruption_is_taken(schedule: Json) -> None:
    project = EmulatedProject()
    running_vm(project)
    with pytest.raises(ApiError) as refused:
        report(project, {"faultReasons": REPORT["faultReasons"], **schedule})
    assert refused.value.status == 400


def test_a_second_report_fails_while_the_first_goes_on() -> None:
    project = EmulatedProject()
    running_vm(project)
    first, second = report(project), report(project)
    assert code_of(project.finish(second)) == "FAILED_WITH_UNEXPECTED_STATUS"
    assert code_of(project.finish(first)) == ""
    assert code_of(project.finish(report(project))) == ""


def test_a_vm_that_does_not_run_cannot_be_reported() -> None:
    project = EmulatedProject()
    vm = running_vm(project)
    report(project)
    project.pass_until(lambda: vm.status is InstanceStatus.REPAIRING)
    vm.host_is_reported = False
    assert code_of(project.finish(report(project))) == "INSTANCE_SHOULD_BE_RUNNING"


@pytest.mark.parametrize("seconds", [1, 62])
def test_a_vm_that_is_deleted_fails_its_report_and_is_gone(seconds: int) -> None:
    project = EmulatedProject()
    vm = running_vm(project)
    operation = report(project)
    project.pass_time(seconds)
    deletion = instance_calls.delete(project.world, Call(), ZONE, NAME)
    assert code_of(project.finish(operation)) == "INTERNAL_ERROR"
    project.finish(deletion)
    assert vm.gone
    assert (ZONE, NAME) not in project.world.instances
