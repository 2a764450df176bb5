"""The one door to Compute Engine: what the real client and the tests' fake both offer.

Mutations start an operation and return at once; nobody waits here. Every call has a deadline
and raises `ComputeError`. "Already exists" is raised as CONFLICT, "not found" as GONE.
`request_id` is any stable text that names the thing and the attempt; the client turns it into
the UUID that the service wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from slurm_hooks.compute.model import (
    ComputeSnapshot,
    FaultReason,
    Group,
    GroupReference,
    GroupSpecification,
    Operation,
    RequestReference,
    RequestSpecification,
    ResizeRequest,
    Scope,
    Template,
    TemplateSpecification,
    WorkloadPolicy,
    WorkloadPolicySpecification,
)


class ComputeClient(Protocol):
    """Everything the controller asks of Compute Engine, for one project."""

    def read(self, cluster: str) -> ComputeSnapshot:
        """Read all groups, resize requests and VMs marked as this cluster's.

        Calls = pages to list plus one list of requests per group. Raises ComputeError when any
        part could not be read: a partial answer is no answer.
        """

    def read_templates(self, cluster: str) -> tuple[Template, ...]:
        """Read the global instance templates with this cluster's label. Raises ComputeError."""

    def read_workload_policies(self, cluster: str) -> tuple[WorkloadPolicy, ...]:
        """Read this cluster's workload policies of all regions, in one list.

        Raises ComputeError when a region could not be read.
        """

    def get_group(self, reference: GroupReference) -> Group | None:
        """Read one group; None when it does not exist."""

    def get_resize_request(self, reference: RequestReference) -> ResizeRequest | None:
        """Read one resize request; None when it does not exist."""

    def get_operation(self, operation: Operation) -> Operation:
        """Read an operation again. An error while reading says nothing about the operation."""

    def insert_template(
        self, scope: Scope, specification: TemplateSpecification, request_id: str
    ) -> Operation:
        """Start the creation of an instance template in the GLOBAL or a REGION scope."""

    def delete_template(self, scope: Scope, name: str, request_id: str) -> Operation:
        """Start the deletion of an instance template."""

    def insert_workload_policy(
        self, specification: WorkloadPolicySpecification, request_id: str
    ) -> Operation:
        """Start the creation of a resource policy for compact placement."""

    def delete_workload_policy(self, scope: Scope, name: str, request_id: str) -> Operation:
        """Start the deletion of a workload policy; one that a group uses is refused."""

    def insert_group(self, specification: GroupSpecification, request_id: str) -> Operation:
        """Start the creation of a managed instance group."""

    def delete_group(self, reference: GroupReference, request_id: str) -> Operation:
        """Start the deletion of a managed instance group and all that is in it."""

    def insert_resize_request(
        self, specification: RequestSpecification, request_id: str
    ) -> Operation:
        """Start the creation of a resize request."""

    def cancel_resize_request(self, reference: RequestReference, request_id: str) -> Operation:
        """Start to cancel a resize request. Too late is CONFLICT, now or in the operation."""

    def delete_resize_request(self, reference: RequestReference, request_id: str) -> Operation:
        """Start the deletion of a final resize request. Its VMs stay."""

    def create_instances(
        self, group: GroupReference, names: Sequence[str], request_id: str
    ) -> Operation:
        """Start the creation of VMs with exactly these names in a group."""

    def delete_instances(
        self, group: GroupReference, zones_by_name: dict[str, str], request_id: str
    ) -> Operation:
        """Start the deletion of VMs from a group, skipping those that are no members any more.

        `zones_by_name` maps each VM to its zone, or to "" for a member that has no VM yet.
        At most 1,000 a call, and never the two kinds in one call (the service takes links for
        the one and bare names for the other): `batches.delete_batches` cuts a set accordingly.
        Raises CONFIG otherwise.
        """

    def delete_instance(self, zone: str, name: str, request_id: str) -> Operation:
        """Start the deletion of a VM that is in no group."""

    def report_host_as_faulty(
        self, zone: str, name: str, reason: FaultReason, request_id: str
    ) -> Operation:
        """Start the report of the host of a VM that runs, for repair at once.

        Only for VMs of certain machine types that are bound to a reservation: whether the service
        takes the report shows in the operation. The VM runs on for some ten minutes and then
        stops; one that is deleted before the operation ends is reported in vain.
        """

    def get_serial_port_output(self, zone: str, name: str) -> str:
        """Read what the VM has written to its first serial port."""
