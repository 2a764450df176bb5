"""Compute Engine through google-cloud-compute v1, zonal and regional.

Nothing here waits for an operation. Reads are complete or they fail: a scope that the service
could not reach makes the whole read an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from slurm_hooks.compute import (
    groups,
    instances,
    members,
    operations,
    resize_requests,
    resource_policies,
    templates,
)
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.instance_list import read_instances
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    FaultReason,
    Group,
    GroupReference,
    GroupSpecification,
    Instance,
    Member,
    Operation,
    RequestReference,
    RequestSpecification,
    ResizeRequest,
    Scope,
    ScopeKind,
    Template,
    TemplateSpecification,
    WorkloadPolicy,
    WorkloadPolicySpecification,
)
from slurm_hooks.compute.names import location, require_name
from slurm_hooks.compute.ownership import is_created_by_name, is_ours
from slurm_hooks.compute.retry import RetryPolicy
from slurm_hooks.compute.snapshot import assemble
from slurm_hooks.compute.transport import Transport, require_complete

INSTANCES = "InstancesClient"
FIRST_SERIAL_PORT = 1


class GoogleComputeClient:
    """A ComputeClient for one project. Not for several threads at once.

    `api_endpoint` has a scheme (`http://127.0.0.1:8080`); empty is the public service.
    `credentials` is `default` (Application Default Credentials) or `anonymous`.
    """

    def __init__(
        self,
        project: str,
        api_endpoint: str = "",
        credentials: str = "default",
        policy: RetryPolicy | None = None,
    ) -> None:
        self._project = project
        self._transport = Transport(api_endpoint, credentials, policy or RetryPolicy())

    def read(self, cluster: str) -> ComputeSnapshot:
        """See ComputeClient. A group that vanishes between the lists is left out."""
        found_groups = self._groups_of(cluster)
        found_requests: list[ResizeRequest] = []
        for group in list(found_groups):
            if not is_created_by_name(group):
                with self._unless_gone(group, found_groups):
                    found_requests += self._requests_of(group.reference, cluster)
        found_instances = self._instances_of(cluster)
        found_members: list[Member] = []
        for group in members.groups_to_list(found_groups, found_instances):
            with self._unless_gone(group, found_groups):
                found_members += self._members_of(group.reference)
        return assemble(found_groups, found_requests, found_instances, found_members)

    @contextlib.contextmanager
    def _unless_gone(self, group: Group, known: list[Group]) -> Iterator[None]:
        """Take a group out of those known when it turns out to be gone."""
        try:
            yield
        except ComputeError as error:
            if error.kind is not ErrorKind.GONE:
                raise
            known.remove(group)

    def _members_of(self, group: GroupReference) -> list[Member]:
        service, request = groups.SERVICES[group.scope.kind], self._group_fields(group)
        pages = self._transport.pages(service, "list_managed_instances", request, may_be_empty=True)
        return [
            members.member_from(message, group)
            for page in pages
            for message in page.managed_instances
            if members.lacks_vm(message)
        ]

    def _groups_of(self, cluster: str) -> list[Group]:
        found = (groups.group_from(message) for message in self._all_groups())
        return [group for group in found if is_ours(group, cluster)]

    def _all_groups(self) -> Iterator[Any]:
        for scoped_list in self._scoped_lists("InstanceGroupManagersClient"):
            yield from scoped_list.instance_group_managers

    def _scoped_lists(self, service: str) -> Iterator[Any]:
        """What an aggregated list of the project has, place by place; complete or an error."""
        request = {"project": self._project}
        for page in self._transport.pages(service, "aggregated_list", request):
            for scoped_list in page.items.values():
                require_complete(scoped_list)
                yield scoped_list

    def _instances_of(self, cluster: str) -> list[Instance]:
        found = read_instances(self._transport, self._project, cluster)
        return [instance for instance in found if is_ours(instance, cluster)]

    def _requests_of(self, group: GroupReference, cluster: str) -> list[ResizeRequest]:
        service = resize_requests.SERVICES[group.scope.kind]
        pages = self._transport.pages(service, "list", self._group_fields(group))
        found = (
            resize_requests.resize_request_from(message, group)
            for page in pages
            for message in page.items
        )
        return [request for request in found if is_ours(request, cluster)]

    def read_templates(self, cluster: str) -> tuple[Template, ...]:
        """See ComputeClient."""
        service, request = templates.SERVICES[ScopeKind.GLOBAL], {"project": self._project}
        found = (
            templates.template_from(message)
            for page in self._transport.pages(service, "list", request)
            for message in page.items
        )
        return tuple(template for template in found if is_ours(template, cluster))

    def read_workload_policies(self, cluster: str) -> tuple[WorkloadPolicy, ...]:
        """See ComputeClient."""
        found = (
            resource_policies.workload_policy_from(message)
            for scoped_list in self._scoped_lists(resource_policies.SERVICE)
            for message in scoped_list.resource_policies
        )
        return tuple(policy for policy in found if policy and is_ours(policy, cluster))

    def get_group(self, reference: GroupReference) -> Group | None:
        """See ComputeClient."""
        service, request = groups.SERVICES[reference.scope.kind], self._group_fields(reference)
        try:
            return groups.group_from(self._transport.call(service, "get", request))
        except ComputeError as error:
            if error.kind is ErrorKind.GONE:
                return None
            raise

    def get_resize_request(self, reference: RequestReference) -> ResizeRequest | None:
        """See ComputeClient."""
        service = resize_requests.SERVICES[reference.group.scope.kind]
        try:
            message = self._transport.call(service, "get", self._request_fields(reference))
        except ComputeError as error:
            if error.kind is ErrorKind.GONE:
                return None
            raise
        return resize_requests.resize_request_from(message, reference.group)

    def get_operation(self, operation: Operation) -> Operation:
        """See ComputeClient. Raises GONE when the service keeps it no longer."""
        service = operations.SERVICES[operation.scope.kind]
        request = {
            "project": self._project,
            "operation": operation.name,
            **location(operation.scope),
        }
        message = self._transport.call(service, "get", request)
        return operations.operation_from(message, operation.scope)

    def insert_template(
        self, scope: Scope, specification: TemplateSpecification, request_id: str
    ) -> Operation:
        """See ComputeClient."""
        fields = {"instance_template_resource": templates.template_body(specification)}
        service = templates.SERVICES[scope.kind]
        return self._start(service, "insert", scope, fields, request_id)

    def delete_template(self, scope: Scope, name: str, request_id: str) -> Operation:
        """See ComputeClient."""
        fields = {"instance_template": require_name(name)}
        service = templates.SERVICES[scope.kind]
        return self._start(service, "delete", scope, fields, request_id)

    def insert_workload_policy(
        self, specification: WorkloadPolicySpecification, request_id: str
    ) -> Operation:
        """See ComputeClient."""
        body = resource_policies.workload_policy_body(specification)
        fields = {"resource_policy_resource": body}
        service, scope = resource_policies.SERVICE, specification.scope
        return self._start(service, "insert", scope, fields, request_id)

    def delete_workload_policy(self, scope: Scope, name: str, request_id: str) -> Operation:
        """See ComputeClient."""
        fields = {"resource_policy": require_name(name)}
        return self._start(resource_policies.SERVICE, "delete", scope, fields, request_id)

    def insert_group(self, specification: GroupSpecification, request_id: str) -> Operation:
        """See ComputeClient."""
        body = groups.group_body(specification, self._project)
        fields = {"instance_group_manager_resource": body}
        scope = specification.reference.scope
        return self._start(groups.SERVICES[scope.kind], "insert", scope, fields, request_id)

    def delete_group(self, reference: GroupReference, request_id: str) -> Operation:
        """See ComputeClient."""
        return self._start_in_group("delete", reference, {}, request_id)

    def insert_resize_request(
        self, specification: RequestSpecification, request_id: str
    ) -> Operation:
        """See ComputeClient."""
        group = specification.reference.group
        fields = {
            "instance_group_manager": require_name(group.name),
            "instance_group_manager_resize_request_resource": resize_requests.request_body(
                specification
            ),
        }
        service = resize_requests.SERVICES[group.scope.kind]
        return self._start(service, "insert", group.scope, fields, request_id)

    def cancel_resize_request(self, reference: RequestReference, request_id: str) -> Operation:
        """See ComputeClient."""
        return self._start_on_request("cancel", reference, request_id)

    def delete_resize_request(self, reference: RequestReference, request_id: str) -> Operation:
        """See ComputeClient."""
        return self._start_on_request("delete", reference, request_id)

    def create_instances(
        self, group: GroupReference, names: Sequence[str], request_id: str
    ) -> Operation:
        """See ComputeClient."""
        fields = {instances.CREATE_FIELDS[group.scope.kind]: instances.create_body(names)}
        return self._start_in_group("create_instances", group, fields, request_id)

    def delete_instances(
        self, group: GroupReference, zones_by_name: dict[str, str], request_id: str
    ) -> Operation:
        """See ComputeClient. Members with and without a VM must come in calls of their own."""
        fields = {instances.DELETE_FIELDS[group.scope.kind]: instances.delete_body(zones_by_name)}
        return self._start_in_group("delete_instances", group, fields, request_id)

    def delete_instance(self, zone: str, name: str, request_id: str) -> Operation:
        """See ComputeClient."""
        scope, fields = Scope(ScopeKind.ZONE, zone), {"instance": require_name(name)}
        return self._start(INSTANCES, "delete", scope, fields, request_id)

    def report_host_as_faulty(
        self, zone: str, name: str, reason: FaultReason, request_id: str
    ) -> Operation:
        """See ComputeClient."""
        body = {
            "disruption_schedule": "IMMEDIATE",
            "fault_reasons": [{"behavior": reason.behavior, "description": reason.description}],
        }
        fields = {
            "instance": require_name(name),
            "instances_report_host_as_faulty_request_resource": body,
        }
        scope = Scope(ScopeKind.ZONE, zone)
        return self._start(INSTANCES, "report_host_as_faulty", scope, fields, request_id)

    def get_serial_port_output(self, zone: str, name: str) -> str:
        """See ComputeClient."""
        request = {
            "project": self._project,
            "zone": require_name(zone),
            "instance": require_name(name),
            "port": FIRST_SERIAL_PORT,
        }
        message = self._transport.call(INSTANCES, "get_serial_port_output", request)
        return str(message.contents)

    def _start_on_request(
        self, method: str, reference: RequestReference, request_id: str
    ) -> Operation:
        group = reference.group
        fields = {
            "instance_group_manager": require_name(group.name),
            "resize_request": require_name(reference.name),
        }
        service = resize_requests.SERVICES[group.scope.kind]
        return self._start(service, method, group.scope, fields, request_id)

    def _start_in_group(
        self, method: str, group: GroupReference, fields: dict[str, Any], request_id: str
    ) -> Operation:
        named = {"instance_group_manager": require_name(group.name), **fields}
        service = groups.SERVICES[group.scope.kind]
        return self._start(service, method, group.scope, named, request_id)

    def _start(
        self, service: str, method: str, scope: Scope, fields: dict[str, Any], request_id: str
    ) -> Operation:
        """Start an operation without ever making the library's future, which polls elsewhere."""
        request = {
            "project": self._project,
            "request_id": operations.request_uuid(request_id),
            **location(scope),
            **fields,
        }
        message = self._transport.call(service, f"{method}_unary", request)
        return operations.operation_from(message, scope)

    def _group_fields(self, group: GroupReference) -> dict[str, Any]:
        name = require_name(group.name)
        return {
            "project": self._project,
            "instance_group_manager": name,
            **location(group.scope),
        }

    def _request_fields(self, reference: RequestReference) -> dict[str, Any]:
        fields = self._group_fields(reference.group)
        return fields | {"resize_request": require_name(reference.name)}
