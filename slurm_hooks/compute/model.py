"""What Compute Engine says: groups, resize requests, instances and operations as plain values.

States are the service's own words. A word that we do not know becomes UNKNOWN and is never a
licence to delete: an unknown resize request state counts as still active.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime


class ScopeKind(enum.StrEnum):
    """Where a resource lives; also the word in the service's paths."""

    ZONE = "zones"
    REGION = "regions"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """A zone, a region, or the whole project (then `name` is empty)."""

    kind: ScopeKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.name else str(self.kind)

    @property
    def region(self) -> str:
        """The region itself, or the one that a zone lies in (`us-east1-b`: `us-east1`)."""
        return self.name.rpartition("-")[0] if self.kind is ScopeKind.ZONE else self.name


@dataclass(frozen=True, slots=True)
class ErrorDetail:
    """One error entry of an operation, a resize request or a managed instance."""

    code: str
    message: str = ""


@dataclass(frozen=True, slots=True, order=True)
class GroupReference:
    """The identity of a managed instance group."""

    scope: Scope
    name: str


@dataclass(frozen=True, slots=True)
class Group:
    """A managed instance group. `template` is the short name of its instance template.

    `creating` is how many of its members it makes VMs for right now.
    """

    reference: GroupReference
    template: str = ""
    target_size: int = 0
    description: str = ""
    creation_time_utc: datetime | None = None
    workload_policy: str = ""
    """The short name of its policy in its region; empty for none."""
    creating: int = 0


class MemberAction(enum.StrEnum):
    """What a group does with a member, as far as it matters to us.

    CREATING stands for all of the service's words for it: with or without retries, anew.
    """

    NONE = "NONE"
    CREATING = "CREATING"
    LEAVING = "LEAVING"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group that has no VM.

    `last_attempt_error` is why the last attempt to make its VM failed.
    """

    group: GroupReference
    name: str
    action: MemberAction
    last_attempt_error: ErrorDetail | None = None


class RequestState(enum.StrEnum):
    """States of a resize request. CREATING, ACCEPTED and UNKNOWN are active, the rest final."""

    CREATING = "CREATING"
    ACCEPTED = "ACCEPTED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"

    @property
    def is_active(self) -> bool:
        """Whether VMs may still come of it."""
        return self in (RequestState.CREATING, RequestState.ACCEPTED, RequestState.UNKNOWN)


@dataclass(frozen=True, slots=True, order=True)
class RequestReference:
    """The identity of a resize request: its group and its name."""

    group: GroupReference
    name: str


@dataclass(frozen=True, slots=True)
class ResizeRequest:
    """A resize request. `instances` are the exact VM names that it asks for.

    `last_attempt_error` may be stale while the request waits; `error` comes only with FAILED.
    """

    reference: RequestReference
    state: RequestState
    instances: tuple[str, ...] = ()
    description: str = ""
    creation_time_utc: datetime | None = None
    last_attempt_error: ErrorDetail | None = None
    error: ErrorDetail | None = None


class InstanceStatus(enum.StrEnum):
    """States of a VM, in the service's words."""

    PENDING = "PENDING"
    PROVISIONING = "PROVISIONING"
    STAGING = "STAGING"
    RUNNING = "RUNNING"
    PENDING_STOP = "PENDING_STOP"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    TERMINATED = "TERMINATED"
    SUSPENDING = "SUSPENDING"
    SUSPENDED = "SUSPENDED"
    REPAIRING = "REPAIRING"
    DEPROVISIONING = "DEPROVISIONING"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Instance:
    """A VM. Identity is name plus id, never an address. `group` is from its metadata."""

    name: str
    instance_id: str
    zone: str
    status: InstanceStatus
    group: GroupReference | None = None
    labels: dict[str, str] = field(default_factory=dict)
    creation_time_utc: datetime | None = None
    termination_time_utc: datetime | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A global instance template. `labels` are those of the VMs made from it."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    creation_time_utc: datetime | None = None


@dataclass(frozen=True, slots=True)
class WorkloadPolicy:
    """A resource policy of a region that places the VMs of groups."""

    scope: Scope
    name: str
    description: str = ""
    creation_time_utc: datetime | None = None


@dataclass(frozen=True, slots=True)
class ComputeSnapshot:
    """Everything of one cluster that one read of Compute Engine gave.

    `instances` is keyed by VM name; of two VMs of one name in two zones the older stands there,
    and both are kept under `duplicates`. `requests` holds the resize requests of all of the
    cluster's groups that have any, `members` those without a VM of the groups that have none.
    """

    groups: dict[GroupReference, Group] = field(default_factory=dict)
    requests: dict[RequestReference, ResizeRequest] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    duplicates: tuple[Instance, ...] = ()
    members: dict[str, Member] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
    """A long-running operation. It failed if `error` is set, whatever else it says.

    `target` is the short name of what it works on. An operation whose `insert_time_utc` lies
    before our call is the replay of an earlier one with the same request id.
    """

    name: str
    scope: Scope
    operation_type: str = ""
    target: str = ""
    done: bool = False
    error: ErrorDetail | None = None
    http_status: int | None = None
    insert_time_utc: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReservationSpecification:
    """Which reservations VMs use, in the service's words: `consumed` is ANY_RESERVATION or
    SPECIFIC_RESERVATION, for which a `key` has `values`.

    `bound` VMs live as long as their reservation, and their model is RESERVATION_BOUND.
    """

    consumed: str
    key: str = ""
    values: tuple[str, ...] = ()
    bound: bool = False


@dataclass(frozen=True, slots=True)
class TemplateSpecification:
    """What an instance template must say; the fields are those of the node pool.

    `run_duration_seconds` becomes scheduling.maxRunDuration (30 s to 7 days) for FLEX_START.
    `source_image` and the URLs are partial URLs such as `projects/P/global/images/family/F`.
    `accelerator_type` is only read for N1 machines; the others have their GPUs by machine type.
    A `reservation` is that of a RESERVATION pool. `confidential_instance_type` is SEV, SEV_SNP, TDX
    or empty.
    """

    name: str
    machine_type: str
    provisioning_model: str
    source_image: str
    network: str
    subnetwork: str = ""
    run_duration_seconds: int | None = None
    boot_disk_type: str = "pd-ssd"
    boot_disk_size_gb: int = 100
    public_ip: bool = False
    service_account: str = ""
    accelerator_count: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    accelerator_type: str = ""
    reservation: ReservationSpecification | None = None
    confidential_instance_type: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadPolicySpecification:
    """What a resource policy that puts the VMs of a group close together must say."""

    scope: Scope
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class GroupSpecification:
    """What a managed instance group must say. Its size starts at 0.

    `template` is the name of a global template, or `regions/R/instanceTemplates/T`. `zones` is
    only read for a regional group (ANY_SINGLE_ZONE). With a `workload_policy`, which must exist
    in its region, the group's VMs stand close together.
    """

    reference: GroupReference
    template: str
    description: str
    zones: tuple[str, ...] = ()
    workload_policy: WorkloadPolicySpecification | None = None


@dataclass(frozen=True, slots=True)
class RequestSpecification:
    """What a resize request must say: exactly these VM names.

    `run_duration_seconds` is left out of the request when it is None or below the service's
    600 s; the template's own limit then holds.
    """

    reference: RequestReference
    instances: tuple[str, ...]
    description: str
    run_duration_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class FaultReason:
    """Why a host is reported as faulty: `behavior` in the service's words, and a person's text."""

    behavior: str
    description: str = ""
