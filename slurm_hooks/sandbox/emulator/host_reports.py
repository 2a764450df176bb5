"""`instances.reportHostAsFaulty`: what may be reported, and what becomes of the VM.

The call is accepted and its operation fails with a code where the service does not take the
report. Else the VM runs on for the time of the analysis, stops, is REPAIRING and runs again, on
another host. A VM that goes meanwhile fails the report. Source: the service's page on errors of
this call, November 2026; that the codes are the operation's is our reading.
"""

from __future__ import annotations

from slurm_hooks.sandbox.emulator import instance_calls, instances, operations
from slurm_hooks.sandbox.emulator.operations import Call, Draft
from slurm_hooks.sandbox.emulator.places import zone_scope
from slurm_hooks.sandbox.emulator.problems import OperationFailure, failure, invalid_field, required
from slurm_hooks.sandbox.emulator.records import Instance, InstanceStatus, Json, Operation
from slurm_hooks.sandbox.emulator.world import World

_METHOD = "compute.instances.reportHostAsFaulty"
_MACHINE_TYPES = ("a3-ultragpu-", "a4-", "a4x-")
"""The types that all versions of the service's page name."""


def report(world: World, call: Call, zone: str, name: str, body: Json) -> Operation:
    """Begin a report. Raises ApiError 404, or 400 for a schedule that is missing or not taken."""
    instance = instance_calls.find(world, zone, name)
    schedule = body.get("disruptionSchedule")
    if schedule is None:
        raise required("disruptionSchedule")
    if schedule != "IMMEDIATE":
        raise invalid_field("disruptionSchedule", schedule, "Only IMMEDIATE is supported.")
    problem = _problem(instance, body)
    draft = Draft(zone_scope(zone), _METHOD, instance.path, instance.instance_id, True)
    if problem is not None or world.next_operation_failure:
        return operations.begin(world, call, draft, lambda: problem)
    operation = operations.open_ended(world, call, draft)
    _begin(world, instance, operation)
    return operation


def _problem(instance: Instance, body: Json) -> OperationFailure | None:
    if not body.get("faultReasons"):
        return failure("FAULT_REASONS_EMPTY_SHOULD_BE_SPECIFIED", "No fault reason is given.")
    if instance.host_is_reported:
        return failure("FAILED_WITH_UNEXPECTED_STATUS", "A report is in progress already.")
    if instance.status is not InstanceStatus.RUNNING:
        return failure("INSTANCE_SHOULD_BE_RUNNING", f"The instance is {instance.status}.")
    if not instance.machine_type.startswith(_MACHINE_TYPES):
        return failure("MACHINE_TYPE_NOT_SUPPORTED", f"{instance.machine_type} is not supported.")
    if instance.provisioning_model != "RESERVATION_BOUND":
        text = f"The provisioning model is {instance.provisioning_model}."
        return failure("INSTANCES_WITHOUT_RESERVATION_NOT_SUPPORTED", text)
    return None


def _begin(world: World, instance: Instance, operation: Operation) -> None:
    instance.host_is_reported = True

    def gone(other: Instance) -> None:
        if other is instance:
            world.gone_listeners.remove(gone)
            text = "The instance was deleted during the report."
            operations.finish(world, operation, failure("INTERNAL_ERROR", text))

    def repair() -> None:
        if instance.gone:
            return
        if instance.status is InstanceStatus.RUNNING:
            instances.move_to_another_host(world, instance, lambda: end(None))
        else:
            end(failure("INTERNAL_ERROR", f"The instance is {instance.status}."))

    def end(problem: OperationFailure | None) -> None:
        instance.host_is_reported = False
        world.gone_listeners.remove(gone)
        operations.finish(world, operation, problem)

    world.gone_listeners.append(gone)
    world.after(world.latency.host_report_seconds, repair)
