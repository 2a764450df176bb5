"""A ComputeClient with its state in memory, as strict as the service where we know it.

`FakeCompute.state` is the emulated project (see ComputeState): `fake.state.grant(reference)`,
`fake.state.fail(reference, code)`, `fake.state.step()`. Nothing moves unless a test says so.
The same contract tests run on this and on the real client before the emulator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.groups import group_body
from slurm_hooks.compute.instances import create_body, delete_body
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    ErrorDetail,
    FaultReason,
    Group,
    GroupReference,
    GroupSpecification,
    InstanceStatus,
    Member,
    Operation,
    RequestReference,
    RequestSpecification,
    RequestState,
    ResizeRequest,
    Scope,
    ScopeKind,
    Template,
    TemplateSpecification,
    WorkloadPolicy,
    WorkloadPolicySpecification,
)
from slurm_hooks.compute.ownership import is_created_by_name, is_ours
from slurm_hooks.compute.resize_requests import request_body
from slurm_hooks.compute.resource_policies import workload_policy_body
from slurm_hooks.compute.snapshot import assemble
from slurm_hooks.compute.templates import template_body
from tests.fakes.compute_state import ComputeState, short

PROJECT = "demo"


@dataclass(frozen=True)
class Call:
    """One entry of the call log. `subject` is the reference, name or specification given."""

    method: str
    subject: object
    request_id: str = ""


@dataclass(frozen=True)
class OperationError:
    """How an operation ends when it fails."""

    error: ErrorDetail | None = None
    http_status: int | None = None


NO_ERROR = OperationError()
IN_USE = OperationError(ErrorDetail("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"), 400)
TOO_LATE = OperationError(ErrorDetail("CONDITION_NOT_MET"), 412)
NOT_REPORTABLE = OperationError(ErrorDetail("INSTANCES_WITHOUT_RESERVATION_NOT_SUPPORTED"), 400)
TAKEN = OperationError(ErrorDetail("ALREADY_EXISTS"), 409)


@dataclass
class FakeCompute:
    """See the module. Its own switches:

    `operations_finish_at_once` False leaves operations running until
    `state.finish_operations()`. `first_state` is the state of a new resize request.
    `late_cancel_fails_in_operation` chooses between the service's two ways to refuse. `reportable`
    are the VMs whose hosts may be reported.
    """

    state: ComputeState = field(default_factory=ComputeState)
    calls: list[Call] = field(default_factory=list)
    operations_finish_at_once: bool = True
    first_state: RequestState = RequestState.ACCEPTED
    late_cancel_fails_in_operation: bool = False
    reportable: frozenset[str] = frozenset()
    _errors: deque[tuple[str, ComputeError]] = field(default_factory=deque)
    _operation_errors: deque[OperationError] = field(default_factory=deque)
    _operation_by_request_id: dict[str, str] = field(default_factory=dict)

    def fail_next(self, error: ComputeError, method: str = "") -> None:
        """The next call (of this method, if given) raises this error and does nothing."""
        self._errors.append((method, error))

    def fail_next_operation(self, code: str, http_status: int | None = None) -> None:
        """The next call that starts an operation does nothing, and its operation fails."""
        self._operation_errors.append(OperationError(ErrorDetail(code), http_status))

    def forget_faults(self) -> None:
        """No error that waits for its call comes any more."""
        self._errors.clear()
        self._operation_errors.clear()

    @property
    def has_faults(self) -> bool:
        """Whether an error waits for its call."""
        return bool(self._errors or self._operation_errors)

    def calls_of(self, method: str) -> list[Call]:
        """The entries of the call log for one method."""
        return [call for call in self.calls if call.method == method]

    def read(self, cluster: str) -> ComputeSnapshot:
        """See ComputeClient."""
        self._enter("read", cluster)
        state = self.state
        return assemble(
            [group for group in state.shown_groups() if is_ours(group, cluster)],
            [request for request in state.shown_requests() if is_ours(request, cluster)],
            [instance for instance in state.shown_instances() if is_ours(instance, cluster)],
            [member for member in self.state.members.values() if self._lists(member, cluster)],
        )

    def read_templates(self, cluster: str) -> tuple[Template, ...]:
        """See ComputeClient."""
        self._enter("read_templates", cluster)
        found = (
            Template(name, dict(t.labels), self.state.template_times_utc.get(name))
            for (scope, name), t in self.state.templates.items()
            if scope.kind is ScopeKind.GLOBAL
        )
        return tuple(template for template in found if is_ours(template, cluster))

    def read_workload_policies(self, cluster: str) -> tuple[WorkloadPolicy, ...]:
        """See ComputeClient."""
        self._enter("read_workload_policies", cluster)
        policies = self.state.workload_policies.values()
        return tuple(policy for policy in policies if is_ours(policy, cluster))

    def get_group(self, reference: GroupReference) -> Group | None:
        """See ComputeClient."""
        self._enter("get_group", reference)
        return self.state.groups.get(reference)

    def get_resize_request(self, reference: RequestReference) -> ResizeRequest | None:
        """See ComputeClient."""
        self._enter("get_resize_request", reference)
        return self.state.requests.get(reference)

    def get_operation(self, operation: Operation) -> Operation:
        """See ComputeClient."""
        self._enter("get_operation", operation)
        if operation.name not in self.state.operations:
            raise not_found(operation.name)
        return self.state.operations[operation.name]

    def insert_template(
        self, scope: Scope, specification: TemplateSpecification, request_id: str
    ) -> Operation:
        """See ComputeClient."""
        self._enter("insert_template", specification, request_id)
        template_body(specification)
        if known := self._known(request_id):
            return known
        if (scope, specification.name) in self.state.templates:
            raise already_exists(specification.name)
        operation = self._start("insert_template", scope, specification.name, request_id)
        if operation.error is None:
            self.state.templates[scope, specification.name] = specification
            self.state.template_times_utc[specification.name] = self.state.now_utc
        return operation

    def delete_template(self, scope: Scope, name: str, request_id: str) -> Operation:
        """See ComputeClient. A template in use is refused by the operation."""
        self._enter("delete_template", name, request_id)
        if known := self._known(request_id):
            return known
        if (scope, name) not in self.state.templates:
            raise not_found(name)
        in_use = any(group.template == name for group in self.state.groups.values())
        refusal = IN_USE if in_use else None
        operation = self._start("delete_template", scope, name, request_id, refusal)
        if operation.error is None:
            del self.state.templates[scope, name]
        return operation

    def insert_workload_policy(
        self, specification: WorkloadPolicySpecification, request_id: str
    ) -> Operation:
        """See ComputeClient."""
        self._enter("insert_workload_policy", specification, request_id)
        workload_policy_body(specification)
        if known := self._known(request_id):
            return known
        scope, name = specification.scope, specification.name
        if (scope, name) in self.state.workload_policies:
            raise already_exists(name)
        operation = self._start("insert_workload_policy", scope, name, request_id)
        if operation.error is None:
            self.state.workload_policies[scope, name] = WorkloadPolicy(
                scope, name, specification.description, self.state.now_utc
            )
        return operation

    def delete_workload_policy(self, scope: Scope, name: str, request_id: str) -> Operation:
        """See ComputeClient. A policy in use is refused by the operation."""
        self._enter("delete_workload_policy", name, request_id)
        if known := self._known(request_id):
            return known
        if (scope, name) not in self.state.workload_policies:
            raise not_found(name)
        in_use = any(
            (group.reference.scope.region, group.workload_policy) == (scope.name, name)
            for group in self.state.groups.values()
        )
        refusal = IN_USE if in_use else None
        operation = self._start("delete_workload_policy", scope, name, request_id, refusal)
        if operation.error is None:
            del self.state.workload_policies[scope, name]
        return operation

    def insert_group(self, specification: GroupSpecification, request_id: str) -> Operation:
        """See ComputeClient."""
        self._enter("insert_group", specification, request_id)
        group_body(specification, PROJECT)
        if known := self._known(request_id):
            return known
        reference, template = specification.reference, short(specification.template)
        if reference in self.state.groups:
            raise already_exists(reference.name)
        if template not in {name for _, name in self.state.templates}:
            raise not_found(template)
        policy = specification.workload_policy
        if policy and (policy.scope, policy.name) not in self.state.workload_policies:
            raise not_found(policy.name)
        operation = self._start("insert_group", reference.scope, reference.name, request_id)
        if operation.error is None:
            now = self.state.now_utc
            group = Group(
                reference,
                template,
                description=specification.description,
                creation_time_utc=now,
                workload_policy=policy.name if policy else "",
            )
            self.state.groups[reference] = group
            self.state.group_zones[reference] = specification.zones
        return operation

    def delete_group(self, reference: GroupReference, request_id: str) -> Operation:
        """See ComputeClient. Its VMs go to STOPPING, its requests vanish."""
        self._enter("delete_group", reference, request_id)
        if known := self._known(request_id):
            return known
        self._require_group(reference)
        operation = self._start("delete_group", reference.scope, reference.name, request_id)
        if operation.error is None:
            for instance in list(self.state.instances.values()):
                if instance.group == reference:
                    self.state.set_status(instance.name, InstanceStatus.STOPPING)
            for request in [r for r in self.state.requests if r.group == reference]:
                del self.state.requests[request]
            for key in [key for key in self.state.members if key[0] == reference]:
                del self.state.members[key]
            del self.state.groups[reference]
        return operation

    def insert_resize_request(
        self, specification: RequestSpecification, request_id: str
    ) -> Operation:
        """See ComputeClient."""
        self._enter("insert_resize_request", specification, request_id)
        request_body(specification)
        if known := self._known(request_id):
            return known
        reference = specification.reference
        self._require_group(reference.group)
        if reference in self.state.requests:
            raise already_exists(reference.name)
        self._require_free_names(reference.group, specification.instances)
        scope = reference.group.scope
        operation = self._start("insert_resize_request", scope, reference.name, request_id)
        if operation.error is None:
            self._add_request(specification)
        return operation

    def cancel_resize_request(self, reference: RequestReference, request_id: str) -> Operation:
        """See ComputeClient."""
        self._enter("cancel_resize_request", reference, request_id)
        if known := self._known(request_id):
            return known
        request = self._require_request(reference)
        if not request.state.is_active and not self.late_cancel_fails_in_operation:
            raise condition_not_met(reference.name)
        scope, refusal = reference.group.scope, None if request.state.is_active else TOO_LATE
        method = "cancel_resize_request"
        operation = self._start(method, scope, reference.name, request_id, refusal)
        if operation.error is None:
            cancelled = replace(request, state=RequestState.CANCELLED, last_attempt_error=None)
            self.state.requests[reference] = cancelled
            self.state.change_target_size(reference.group, -len(request.instances))
        return operation

    def delete_resize_request(self, reference: RequestReference, request_id: str) -> Operation:
        """See ComputeClient. Refused while the request is active."""
        self._enter("delete_resize_request", reference, request_id)
        if known := self._known(request_id):
            return known
        if self._require_request(reference).state.is_active:
            raise condition_not_met(reference.name)
        scope = reference.group.scope
        operation = self._start("delete_resize_request", scope, reference.name, request_id)
        if operation.error is None:
            del self.state.requests[reference]
        return operation

    def create_instances(
        self, group: GroupReference, names: Sequence[str], request_id: str
    ) -> Operation:
        """See ComputeClient. One existing name fails the whole call."""
        self._enter("create_instances", tuple(names), request_id)
        create_body(names)
        if known := self._known(request_id):
            return known
        self._require_group(group)
        taken = {instance.name for instance in self.state.instances.values()}
        taken |= {name for member_group, name in self.state.members if member_group == group}
        refusal = TAKEN if taken & set(names) else None
        operation = self._start("create_instances", group.scope, group.name, request_id, refusal)
        if operation.error is None:
            for name in names:
                self.state.add_member(group, name)
        return operation

    def delete_instances(
        self, group: GroupReference, zones_by_name: dict[str, str], request_id: str
    ) -> Operation:
        """See ComputeClient. Members go to STOPPING; `state.step()` takes them away."""
        self._enter("delete_instances", tuple(zones_by_name), request_id)
        delete_body(zones_by_name)
        if known := self._known(request_id):
            return known
        self._require_group(group)
        operation = self._start("delete_instances", group.scope, group.name, request_id)
        if operation.error is None:
            for name, zone in zones_by_name.items():
                self._stop_member(group, zone, name)
        return operation

    def delete_instance(self, zone: str, name: str, request_id: str) -> Operation:
        """See ComputeClient."""
        self._enter("delete_instance", name, request_id)
        if known := self._known(request_id):
            return known
        if (zone, name) not in self.state.instances:
            raise not_found(name)
        operation = self._start("delete_instance", Scope(ScopeKind.ZONE, zone), name, request_id)
        if operation.error is None:
            self.state.set_status(name, InstanceStatus.STOPPING)
        return operation

    def report_host_as_faulty(
        self, zone: str, name: str, reason: FaultReason, request_id: str
    ) -> Operation:
        """See ComputeClient. VMs have no machine types here: those in `reportable` are taken."""
        self._enter("report_host_as_faulty", (name, reason), request_id)
        if known := self._known(request_id):
            return known
        if (zone, name) not in self.state.instances:
            raise not_found(name)
        refusal = None if name in self.reportable else NOT_REPORTABLE
        scope = Scope(ScopeKind.ZONE, zone)
        return self._start("report_host_as_faulty", scope, name, request_id, refusal)

    def get_serial_port_output(self, zone: str, name: str) -> str:
        """See ComputeClient."""
        self._enter("get_serial_port_output", name)
        if (zone, name) not in self.state.instances:
            raise not_found(name)
        return self.state.serial_output.get(name, "")

    def _enter(self, method: str, subject: object, request_id: str = "") -> None:
        self.calls.append(Call(method, subject, request_id))
        for position, (wanted, error) in enumerate(self._errors):
            if wanted in ("", method):
                del self._errors[position]
                raise error

    def _known(self, request_id: str) -> Operation | None:
        """The operation that a repeated request id replays, dead or alive."""
        name = self._operation_by_request_id.get(request_id)
        return None if name is None else self.state.operations[name]

    def _start(
        self,
        operation_type: str,
        scope: Scope,
        target: str,
        request_id: str,
        refusal: OperationError | None = None,
    ) -> Operation:
        if refusal is None:
            refusal = self._operation_errors.popleft() if self._operation_errors else NO_ERROR
        operation = Operation(
            name=f"operation-{self.state.next_id()}",
            scope=scope,
            operation_type=operation_type,
            target=target,
            done=self.operations_finish_at_once,
            error=refusal.error,
            http_status=refusal.http_status,
            insert_time_utc=self.state.now_utc,
        )
        self.state.operations[operation.name] = operation
        self._operation_by_request_id[request_id] = operation.name
        return operation

    def _add_request(self, specification: RequestSpecification) -> None:
        reference = specification.reference
        self.state.requests[reference] = ResizeRequest(
            reference=reference,
            state=self.first_state,
            instances=specification.instances,
            description=specification.description,
            creation_time_utc=self.state.now_utc,
        )
        self.state.change_target_size(reference.group, len(specification.instances))

    def _lists(self, member: Member, cluster: str) -> bool:
        group = self.state.groups.get(member.group)
        return group is not None and is_ours(group, cluster) and is_created_by_name(group)

    def _stop_member(self, group: GroupReference, zone: str, name: str) -> None:
        if not zone:
            self.state.remove_member(group, name)
            return
        instance = self.state.instances.get((zone, name))
        if instance is None or instance.group != group:
            return
        if instance.status is not InstanceStatus.STOPPING:
            self.state.set_status(name, InstanceStatus.STOPPING)
            self.state.change_target_size(group, -1)

    def _require_group(self, reference: GroupReference) -> None:
        if reference not in self.state.groups:
            raise not_found(reference.name)

    def _require_request(self, reference: RequestReference) -> ResizeRequest:
        if reference not in self.state.requests:
            raise not_found(reference.name)
        return self.state.requests[reference]

    def _require_free_names(self, group: GroupReference, names: Sequence[str]) -> None:
        taken = {instance.name for instance in self.state.instances.values()}
        for request in self.state.requests.values():
            if request.state.is_active and request.reference.group == group:
                taken |= set(request.instances)
        for name in names:
            if name in taken:
                raise already_exists(name)


def not_found(name: str) -> ComputeError:
    """What the service says of a resource that does not exist."""
    return ComputeError(ErrorKind.GONE, "notFound", f"{name} was not found", 404)


def already_exists(name: str) -> ComputeError:
    """What the service says of a name in use."""
    return ComputeError(ErrorKind.CONFLICT, "alreadyExists", f"{name} already exists", 409)


def condition_not_met(name: str) -> ComputeError:
    """What the service says of a call that comes at the wrong time."""
    return ComputeError(ErrorKind.CONFLICT, "conditionNotMet", f"{name} is not in that state", 412)
