"""What a pass may do. Every action is safe to repeat and names one subject.

The subject is a stable text: the key under which an action's operation is remembered, and the
root of its request id. English for people is made in `comments`, not here.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime

from slurm_hooks.cluster.topology import NodePool
from slurm_hooks.compute.errors import ErrorKind
from slurm_hooks.compute.model import (
    GroupReference,
    GroupSpecification,
    RequestReference,
    RequestSpecification,
    Scope,
    TemplateSpecification,
)
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.pool_record import PoolRecord
from slurm_hooks.reconcile.repair_actions import RecordEvents, RepairNode
from slurm_hooks.reconcile.report_actions import KeepReport, ReportHost
from slurm_hooks.reconcile.sightings import Sightings
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import JobStart


class Expectation(enum.StrEnum):
    """What must still hold of a node when it is read again just before it is changed."""

    STARTING = "POWERING_UP"
    STARTING_WITHOUT_JOB = "POWERING_UP and IDLE"
    REGISTERED = "no power flag"
    UP = "registered, whoever has taken it out of service"
    IDLE = "no power flag and IDLE"
    DRAINING = "taken out of service with jobs on it"
    DOWN_BY_HAND = "set DOWN by a person"
    WITHDRAWN = "POWERING_UP and taken out of service"
    SET_ASIDE = "off or going off, to be drained again"
    REBOOTING = "rebooting"
    NOT_RESPONDING = "DOWN and not responding"
    RESUME_FAILED = "DOWN and POWERED_DOWN"
    OFF = "POWERED_DOWN"
    TRAPPED = "IDLE, POWERED_DOWN and NOT_RESPONDING"
    OFF_SINCE_FAILURE = "off, in service, with our reason of a failed start"
    FREE_AND_OFF = "off or going off, in service, of no job, with no person's reason"
    HELD = "off or idle, drained because its pool is held"
    NAMED_ADDRESS = "off, of no job, its address its own name"
    NAMED_ADDRESS_WITHOUT_VM = "off or POWERING_UP, its address its own name"
    LOST_ADDRESS = "registered, its address the one of nodes that are off"
    UP_WITH_OUR_REASON = "registered and in service, with a reason of ours"
    WAKING = "POWERING_UP and in service, with no reason but ours"
    TOLD_TO_WAIT = "with our reason that it waits for capacity"
    SERVING = "registered and in service, nobody has asked for its power down"
    FREE = "idle, in service or drained for the new generation"
    FREE_TO_LEAVE = "registered, no job on it, whoever has drained it"
    OFF_TO_LEAVE = "off or going off, of no job, in service"
    DRAINED_TO_GO = "registered, drained by us so that its VM may go"
    DRAINED_AND_OFF = "off, of no job, drained by us so that its VM might go"


class ReasonCode(enum.StrEnum):
    """Why we change a node's state; the word that its reason in Slurm begins with."""

    REQUEST_FAILED = "request failed"
    JOB_ENDED = "job ended before its nodes came"
    VM_GONE = "VM gone"
    VM_GOES = "VM goes"
    NOT_RESPONDING = "slurmd does not answer, VM replaced"
    RESUME_TIMEOUT = "ResumeTimeout passed"
    POOL_HELD = "pool held"
    END_NEAR = "too little life left for a waiting job"
    NEW_GENERATION = "new generation"
    LEAVES_CLUSTER = "leaves the cluster"
    REPORTED_FAULTY = "reported faulty"
    HOST_REPORTED = "host reported faulty"


@dataclass(frozen=True, slots=True)
class InsertGroup:
    """Create a pool's instance template and managed instance group."""

    pool: NodePool
    template: TemplateSpecification
    template_scope: Scope
    group: GroupSpecification

    @property
    def subject(self) -> str:
        return f"insert group {self.group.reference.scope}/{self.group.reference.name}"


@dataclass(frozen=True, slots=True)
class InsertRequest:
    """Ask for the VMs of one job, or of one node, all or none."""

    request: RequestSpecification
    job_id: int | None

    @property
    def subject(self) -> str:
        return subject_of_insertion(self.request.reference)


@dataclass(frozen=True, slots=True)
class CreateInstances:
    """Create the VMs of one job, or of nodes that no job has, by their names. At most 1,000.

    The service makes each of them as soon as it can, and tries again where it cannot. `stem` is
    made of the job's start and the names.
    """

    group: GroupReference
    names: tuple[str, ...]
    stem: str
    pool_id: str
    job_id: int | None

    @property
    def subject(self) -> str:
        return subject_of_creation(self.group, self.stem)


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Give up a resize request that is still waiting."""

    request: RequestReference
    job_id: int | None

    @property
    def subject(self) -> str:
        return f"cancel request {_request_text(self.request)}"


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """Remove a resize request that is over. Its VMs stay."""

    request: RequestReference

    @property
    def subject(self) -> str:
        return f"{DELETE_REQUEST} {_request_text(self.request)}"


@dataclass(frozen=True, slots=True)
class DeleteInstance:
    """Delete one VM. The same name's next VM has another id, hence the id in the subject.

    `group` is None for a VM that is in no group, zone and id are empty for a member of one that
    has no VM.
    """

    group: GroupReference | None
    name: str
    zone: str
    instance_id: str

    @property
    def subject(self) -> str:
        return f"delete instance {self.name} {self.instance_id}"


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Delete a managed instance group that is empty when it is read again just before."""

    group: GroupReference

    @property
    def subject(self) -> str:
        return f"delete group {self.group.scope}/{self.group.name}"


@dataclass(frozen=True, slots=True)
class DeleteTemplate:
    """Delete a global instance template that no group uses."""

    name: str

    @property
    def subject(self) -> str:
        return f"delete template {self.name}"


@dataclass(frozen=True, slots=True)
class DeleteWorkloadPolicy:
    """Delete a workload policy that neither a group nor a pool uses."""

    scope: Scope
    name: str

    @property
    def subject(self) -> str:
        return f"delete workload policy {self.scope}/{self.name}"


@dataclass(frozen=True, slots=True)
class UpdateNode:
    """Ask Slurm for node states, one after another, if the node is still as expected.

    Without a reason the node keeps the one that it has; `kept_reason` repeats it where Slurm
    demands one. `renewed_for` is the job that lacks a fresh VM, if that is why. `told_job` is the
    job that must have been told before, since one that has ended takes no comment any more.
    `since_utc` is since when a VM was wanted that never came.
    """

    node: str
    updates: tuple[NodeUpdate, ...]
    expectation: Expectation
    reason: ReasonCode | None
    code: str = ""
    detail: str = ""
    kept_reason: str = ""
    renewed_for: JobStart | None = None
    told_job: int | None = None
    since_utc: datetime | None = None

    @property
    def subject(self) -> str:
        return f"update node {self.node}"


@dataclass(frozen=True, slots=True)
class KeepPoolRecord:
    """Write a pool's failures in a row into the comment of one of its nodes; None clears it.

    `counted` are the keys of all failures that the record has counted and that are still seen.
    """

    pool_id: str
    node: str
    record: PoolRecord | None
    counted: frozenset[str]

    @property
    def subject(self) -> str:
        return f"keep record of pool {self.pool_id}"


@dataclass(frozen=True, slots=True)
class ClearReason:
    """Remove a reason of ours that is over: from a node that is up and serves again, or from one
    that does not wait any more."""

    node: str
    expectation: Expectation = Expectation.UP_WITH_OUR_REASON

    @property
    def subject(self) -> str:
        return f"clear reason {self.node}"


@dataclass(frozen=True, slots=True)
class SetReason:
    """Give a node that waits for capacity a reason that says so, where Slurm keeps it."""

    node: str
    reason: str

    @property
    def subject(self) -> str:
        return f"set reason {self.node}"


@dataclass(frozen=True, slots=True)
class SetNodeAddress:
    """Have slurmctld reach a node at this address. `reason` is the one that it has and keeps."""

    node: str
    address: str
    expectation: Expectation
    reason: str

    @property
    def subject(self) -> str:
        return f"set address of node {self.node}"


@dataclass(frozen=True, slots=True)
class KeepConsole:
    """Keep the serial console output of a VM that is about to be replaced, for the operator."""

    node: str
    zone: str
    instance_id: str

    @property
    def subject(self) -> str:
        return f"keep console {self.node} {self.instance_id}"


class WaitKind(enum.StrEnum):
    """What a job in CONFIGURING waits for."""

    DELETION = "DELETION"
    GROUP = "GROUP"
    PLACE = "PLACE"
    """A place among the resize requests that may be active in a region."""
    REQUEST = "REQUEST"
    CAPACITY = "CAPACITY"
    BOOT = "BOOT"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What to tell the owner of a job: what it waits for, which code, since when.

    `since_utc` is when its request or VM was made, where it waits for that; else when Slurm gave
    the job its nodes. All of these survive a restart of ours.
    `machine_type` (empty where the cluster file has the pool no more) and `place` are of the pool
    whose nodes the job waits for longest, and so is
    `usual_wait_seconds`, the median of what its last `usual_wait_requests` requests waited.
    """

    kind: WaitKind
    node_count: int
    machine_type: str
    place: str
    code: str = ""
    detail: str = ""
    since_utc: datetime | None = None
    usual_wait_seconds: int = 0
    usual_wait_requests: int = 0


@dataclass(frozen=True, slots=True)
class TellJob:
    """Write a job's admin comment; None clears it. `part` as in `Job`."""

    job_id: int
    status: JobStatus | None
    part: str = ""

    @property
    def subject(self) -> str:
        return f"tell job {self.job_id}"


@dataclass(frozen=True, slots=True)
class WarnJob:
    """Tell a running job that the VM of a node of its ends first, and send it the signal.

    `signal` is empty while it is too early for that. `was_signalled`: the job got it already and
    lacks only the comment. `keeps_comment`: the admin comment is a person's and stays. `restarts`
    makes each start of a job a subject of its own, `part` is as in `Job`.
    """

    job_id: int
    restarts: int
    node: str
    end_time_utc: datetime
    signal: str
    keeps_comment: bool
    part: str = ""
    was_signalled: bool = False

    @property
    def subject(self) -> str:
        start = f"{self.job_id} start {self.restarts}"
        return f"warn job {start} of {self.end_time_utc:%Y-%m-%dT%H:%M:%SZ} {self.signal}".strip()


@dataclass(frozen=True, slots=True)
class CreateReservation:
    """Keep jobs that would outlive the VMs of these nodes off them."""

    name: str
    nodes: tuple[str, ...]
    start_time_utc: datetime

    @property
    def subject(self) -> str:
        return f"create reservation {self.name}"


@dataclass(frozen=True, slots=True)
class DeleteReservation:
    """Remove a reservation of ours whose VMs are gone."""

    name: str

    @property
    def subject(self) -> str:
        return f"delete reservation {self.name}"


@dataclass(frozen=True, slots=True)
class ForgetCall:
    """Remove a ResumeProgram call from the spool: nothing in it is open any more."""

    call_id: str

    @property
    def subject(self) -> str:
        return f"forget call {self.call_id}"


Action = (
    InsertGroup
    | InsertRequest
    | CreateInstances
    | CancelRequest
    | DeleteRequest
    | DeleteInstance
    | DeleteGroup
    | DeleteTemplate
    | DeleteWorkloadPolicy
    | UpdateNode
    | KeepPoolRecord
    | ClearReason
    | SetReason
    | SetNodeAddress
    | KeepConsole
    | TellJob
    | WarnJob
    | CreateReservation
    | DeleteReservation
    | RecordEvents
    | RepairNode
    | ReportHost
    | KeepReport
    | ForgetCall
)


class NoticeKind(enum.StrEnum):
    """Conditions that a pass reports without acting on them."""

    UNKNOWN_FLAG = "UNKNOWN_FLAG"
    UNKNOWN_STATE = "UNKNOWN_STATE"
    UNREADABLE = "UNREADABLE"
    UNAVAILABLE = "UNAVAILABLE"
    FAILURE = "FAILURE"
    DUPLICATE_VM = "DUPLICATE_VM"
    KILLS_HELD = "KILLS_HELD"
    REPAIR_SKIPPED = "REPAIR_SKIPPED"
    REPAIRS_STOPPED = "REPAIRS_STOPPED"
    DRAINED_BY_SLURM = "DRAINED_BY_SLURM"
    HISTORY_UNAVAILABLE = "HISTORY_UNAVAILABLE"
    AWAITS_CAPACITY = "AWAITS_CAPACITY"
    LOGIN_NODES_LACK = "LOGIN_NODES_LACK"


@dataclass(frozen=True, slots=True)
class Notice:
    """A condition worth one line of log when it begins, and one when it ends.

    `code` is Compute Engine's, where another code is news and other words are not.
    """

    kind: NoticeKind
    subject: str
    detail: str = ""
    error_kind: ErrorKind | None = None
    code: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass will do, in order, and what it has to say.

    `unsettled` is True while something is on its way that another pass must look at; a request
    that only waits for capacity does not count. `steps` says what was decided for each node.
    `held` are kills that the cap keeps back, `kills_in_question` how many an operator would have
    to confirm. `sightings` and `suspended` (nodes) are what the next pass has to know, see Memory;
    `second_look_seconds` is when the first of the sightings may be believed, None where none waits.
    `waiting` says how many nodes of each pool wait for capacity, `login_lacking` how many login
    nodes have no VM that runs.
    """

    actions: tuple[Action, ...] = ()
    notices: tuple[Notice, ...] = ()
    unsettled: bool = False
    steps: dict[str, Step] = field(default_factory=dict)
    held: tuple[Action, ...] = ()
    kills_in_question: int = 0
    sightings: Sightings = field(default_factory=Sightings)
    second_look_seconds: float | None = None
    suspended: frozenset[str] = frozenset()
    waiting: dict[str, int] = field(default_factory=dict)
    login_lacking: dict[str, int] = field(default_factory=dict)


INSERT_REQUEST = "insert request"
DELETE_REQUEST = "delete request"
CREATE_INSTANCES = "create instances"


def told_as(action: Action) -> str:
    """What people are told that a refusal is about: VMs of a group are deleted together, and
    nodes that become the same are changed together."""
    match action:
        case DeleteInstance() if action.group is not None:
            return f"delete instances of {action.group.name}"
        case UpdateNode():
            return f"update nodes to {'+'.join(action.updates)}"
        case ClearReason():
            return "clear reasons"
        case SetReason():
            return "set reasons of nodes that wait for capacity"
        case SetNodeAddress():
            return f"set addresses of nodes to {action.address}"
        case _:
            return action.subject


def subject_of_insertion(reference: RequestReference) -> str:
    """The subject of the action that makes this resize request."""
    return f"{INSERT_REQUEST} {_request_text(reference)}"


def subject_of_creation(group: GroupReference, stem: str) -> str:
    """The subject of the action that creates VMs by name."""
    return f"{CREATE_INSTANCES} {group.scope}/{group.name}/{stem}"


def _request_text(reference: RequestReference) -> str:
    return f"{reference.group.scope}/{reference.group.name}/{reference.name}"
