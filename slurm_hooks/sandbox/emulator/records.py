"""The resources as the engine keeps them. `properties` and policies are JSON as it was sent.

References between records are by object, not by name, so a name that is used again never
confuses a late effect of its former bearer.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slurm_hooks.sandbox.emulator.places import Scope
from slurm_hooks.sandbox.emulator.problems import ErrorEntry, OperationFailure

Json = dict[str, Any]


class OperationStatus(enum.StrEnum):
    """States of an operation."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"


@dataclass(slots=True, eq=False)
class Operation:
    """A long-running operation. `target` is the path below the project, e.g. `zones/Z/...`."""

    name: str
    operation_id: int
    scope: Scope
    operation_type: str
    target: str
    target_id: int
    user: str
    insert_time_utc: datetime
    status: OperationStatus = OperationStatus.PENDING
    start_time_utc: datetime | None = None
    end_time_utc: datetime | None = None
    failure: OperationFailure | None = None
    request_id: str = ""
    status_message: str = ""


@dataclass(slots=True, eq=False)
class Template:
    """An instance template. It can be used once `ready`."""

    scope: Scope
    name: str
    template_id: int
    created_utc: datetime
    properties: Json
    description: str | None = None
    ready: bool = False

    @property
    def path(self) -> str:
        """Its path below the project."""
        return f"{self.scope}/instanceTemplates/{self.name}"

    @property
    def scheduling(self) -> Json:
        """The template's scheduling section; empty if there is none."""
        section: Json = self.properties.get("scheduling", {})
        return section

    @property
    def is_flex_start(self) -> bool:
        """Whether its VMs are Flex-start VMs."""
        return bool(self.scheduling.get("provisioningModel") == "FLEX_START")


class MemberAction(enum.StrEnum):
    """What a group does with a member right now."""

    NONE = "NONE"
    CREATING = "CREATING"
    RECREATING = "RECREATING"
    DELETING = "DELETING"
    ABANDONING = "ABANDONING"
    RESTARTING = "RESTARTING"


LEAVING = (MemberAction.DELETING, MemberAction.ABANDONING)


@dataclass(slots=True, eq=False)
class Member:
    """A managed instance. `instance` is None while the VM does not exist."""

    name: str
    template: Template
    action: MemberAction = MemberAction.CREATING
    instance: Instance | None = None
    request: ResizeRequest | None = None
    last_error: ErrorEntry | None = None


class GroupState(enum.StrEnum):
    """Whether a group can be worked on."""

    CREATING = "CREATING"
    READY = "READY"
    DELETING = "DELETING"


@dataclass(frozen=True, slots=True)
class MemberError:
    """One entry of listErrors."""

    entry: ErrorEntry
    member: str
    action: MemberAction
    template: Template
    time_utc: datetime


@dataclass(slots=True, eq=False)
class Group:
    """A managed instance group. `zones` are those that its VMs may be in."""

    scope: Scope
    name: str
    group_id: int
    created_utc: datetime
    template: Template
    zones: tuple[str, ...]
    body: Json
    base_instance_name: str
    state: GroupState = GroupState.CREATING
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    requests: dict[str, ResizeRequest] = field(default_factory=dict)
    errors: list[MemberError] = field(default_factory=list)
    deletion: Operation | None = None
    deletion_due_utc: datetime | None = None

    @property
    def path(self) -> str:
        """Its path below the project."""
        return f"{self.scope}/instanceGroupManagers/{self.name}"

    @property
    def target_size(self) -> int:
        """The number of members that are not on their way out."""
        return sum(member.action not in LEAVING for member in self.members.values())

    @property
    def repairs(self) -> bool:
        """Whether the group replaces VMs that fail."""
        policy = self.body.get("instanceLifecyclePolicy", {})
        return bool(policy.get("defaultActionOnFailure", "REPAIR") == "REPAIR")

    def replaces(self, member: Member) -> bool:
        """Whether the group makes a lost VM of this member anew; a Flex-start VM it never does."""
        ready = self.state is GroupState.READY
        return self.repairs and ready and not member.template.is_flex_start


class RequestState(enum.StrEnum):
    """States of a resize request."""

    CREATING = "CREATING"
    ACCEPTED = "ACCEPTED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_active(self) -> bool:
        """Whether VMs may still come of it."""
        return self in (RequestState.CREATING, RequestState.ACCEPTED)


@dataclass(slots=True, eq=False)
class ResizeRequest:
    """A resize request. `granted` is set once capacity is taken and its VMs are being made.

    `named` tells whether the caller chose the names (`instances`) or a number (`resizeBy`).
    """

    group: Group
    name: str
    request_id: int
    created_utc: datetime
    members: list[Member]
    named: bool
    run_duration: Json | None = None
    description: str | None = None
    state: RequestState = RequestState.CREATING
    granted: bool = False
    doomed_by: ErrorEntry | None = None
    error: ErrorEntry | None = None
    last_attempt_error: ErrorEntry | None = None

    @property
    def path(self) -> str:
        """Its path below the project."""
        return f"{self.group.path}/resizeRequests/{self.name}"


class InstanceStatus(enum.StrEnum):
    """States of a VM that the emulator shows."""

    PENDING = "PENDING"
    PROVISIONING = "PROVISIONING"
    STAGING = "STAGING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    TERMINATED = "TERMINATED"
    REPAIRING = "REPAIRING"


@dataclass(slots=True, eq=False)
class Instance:
    """A VM. It holds capacity from its creation (unless PENDING) until it is `gone`.

    `run_duration_seconds` is None for a VM without an end; `boots` counts its starts, `hosts` the
    machines that it has run on. `is_to_go` is set once its deletion was asked for.
    """

    zone: str
    name: str
    instance_id: int
    created_utc: datetime
    properties: Json
    network_ip: str
    labels: dict[str, str]
    metadata: list[Json]
    group: Group | None = None
    template: Template | None = None
    run_duration_seconds: int | None = None
    status: InstanceStatus = InstanceStatus.PROVISIONING
    status_message: str = ""
    last_start_utc: datetime | None = None
    last_stop_utc: datetime | None = None
    termination_time_utc: datetime | None = None
    boots: int = 0
    hosts: int = 1
    host_is_reported: bool = False
    is_to_go: bool = False
    gone: bool = False

    @property
    def path(self) -> str:
        """Its path below the project."""
        return f"zones/{self.zone}/instances/{self.name}"

    @property
    def machine_type(self) -> str:
        """The bare name of its machine type."""
        return str(self.properties["machineType"]).rpartition("/")[2]

    @property
    def scheduling(self) -> Json:
        """Its scheduling section; empty if there is none."""
        section: Json = self.properties.get("scheduling", {})
        return section

    @property
    def provisioning_model(self) -> str:
        """STANDARD, SPOT, FLEX_START or RESERVATION_BOUND."""
        return str(self.scheduling.get("provisioningModel", "STANDARD"))
