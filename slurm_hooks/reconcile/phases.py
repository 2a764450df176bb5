"""Where a node stands on each side: Slurm's intent, its resize request, its VM.

Three small enums instead of flags, states and statuses: the decision table is written over
them. Every input has exactly one phase; what we do not understand is UNKNOWN.
"""

from __future__ import annotations

import enum

from slurm_hooks.compute.classify import classify_detail
from slurm_hooks.compute.model import Instance, InstanceStatus, Member, MemberAction, RequestState
from slurm_hooks.health.slurm_reasons import RESUME_TIMEOUT
from slurm_hooks.reconcile.failure_table import Occasion, Reaction, reaction_to
from slurm_hooks.reconcile.reasons import is_of_person, is_silent, reason_before
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag


class Intent(enum.StrEnum):
    """What Slurm's node state asks for."""

    STARTING = "STARTING"
    """POWERING_UP: there must be a VM."""
    DISOWNED = "DISOWNED"
    """POWERING_UP, though the cluster file does not name the node any more."""
    ABANDONED = "ABANDONED"
    """POWERING_UP for a job that is over, and no other job has the node."""
    REGISTERED = "REGISTERED"
    """No power flag: slurmd has registered, a VM must be there."""
    DRAINING = "DRAINING"
    """A person took it out of service (drained, failed) while jobs run on it."""
    DRAINED = "DRAINED"
    """A person took it out of service (drained, failed, DOWN), and nothing runs on it: its state
    and its VM are that person's affair."""
    DOWN_BY_HAND = "DOWN_BY_HAND"
    """A person has set it DOWN: under ReturnToService=2 it serves again, and under any setting
    loses its state at ResumeTimeout, unless it is drained too."""
    WITHDRAWN = "WITHDRAWN"
    """POWERING_UP, and a person took it out of service: ResumeTimeout would undo that."""
    REBOOTING = "REBOOTING"
    """`scontrol reboot` is under way, after which the node serves again."""
    NOT_RESPONDING = "NOT_RESPONDING"
    """Slurm has set it DOWN, and ended its jobs, since slurmd was silent for SlurmdTimeout or
    did not come back of a reboot."""
    ASKED_OFF = "ASKED_OFF"
    """POWER_DOWN on a free node: Slurm asks for the VM's end at its next power pass."""
    STOPPING = "STOPPING"
    """POWERING_DOWN: Slurm has asked for the VM's end."""
    OFF = "OFF"
    """POWERED_DOWN: there must be no VM."""
    STATIC_OFF = "STATIC_OFF"
    """POWERED_DOWN though its pool's min_node_count says that it must always exist."""
    TRAPPED = "TRAPPED"
    """POWERED_DOWN and NOT_RESPONDING: somebody gave it back with RESUME or UNDRAIN while it was
    off, and after its next restart slurmctld never gives it to a job again."""
    RESUME_FAILED = "RESUME_FAILED"
    """ResumeTimeout passed: DOWN and POWERED_DOWN, and Slurm never brings it back itself."""
    INCONSISTENT = "INCONSISTENT"
    """POWERING_UP and allocated, yet no job has it: nodes and jobs were read at different times."""
    UNKNOWN = "UNKNOWN"
    """A word that we do not know, or a state set by a person: leave the node alone."""


class RequestPhase(enum.StrEnum):
    """The resize request that names the node and belongs to its present start; in pools without
    requests the member of its group that has no VM yet."""

    NONE = "NONE"
    """No request: never made, cancelled, or made for another start. No member without a VM."""
    WAITING = "WAITING"
    """It waits for capacity, or its VMs are being created."""
    GRANTED = "GRANTED"
    """It SUCCEEDED: all its VMs were created."""
    FAILED = "FAILED"
    """Compute Engine has given it up, with an error code; or the last attempt to make the member's
    VM failed for a reason that does not pass by itself."""
    UNKNOWN = "UNKNOWN"
    """In a state that we do not know: VMs may still come of it, and it is not ours to end."""


class VmPhase(enum.StrEnum):
    """The VM of the node's name."""

    NONE = "NONE"
    """There is no VM of the name."""
    COMING = "COMING"
    """It is being created or waits to be: PENDING, PROVISIONING, STAGING."""
    RUNNING = "RUNNING"
    """It runs."""
    LEAVING = "LEAVING"
    """It is going away: it is stopping, or we have started its deletion."""
    BROKEN = "BROKEN"
    """It stopped, was suspended or is being repaired: it never serves again. So does a member of a
    group whose VM is gone and that the group leaves so: it only holds the name."""
    OVERDUE = "OVERDUE"
    """It exists for longer than a boot may take, and its slurmd has not registered."""
    UNKNOWN = "UNKNOWN"
    """It is in a state that we do not know: leave it alone."""


_REQUEST_PHASES = {
    RequestState.CREATING: RequestPhase.WAITING,
    RequestState.ACCEPTED: RequestPhase.WAITING,
    RequestState.SUCCEEDED: RequestPhase.GRANTED,
    RequestState.FAILED: RequestPhase.FAILED,
    RequestState.CANCELLED: RequestPhase.NONE,
    RequestState.UNKNOWN: RequestPhase.UNKNOWN,
}

_VM_PHASES = {
    InstanceStatus.PENDING: VmPhase.COMING,
    InstanceStatus.PROVISIONING: VmPhase.COMING,
    InstanceStatus.STAGING: VmPhase.COMING,
    InstanceStatus.RUNNING: VmPhase.RUNNING,
    InstanceStatus.PENDING_STOP: VmPhase.LEAVING,
    InstanceStatus.STOPPING: VmPhase.LEAVING,
    InstanceStatus.DEPROVISIONING: VmPhase.LEAVING,
    InstanceStatus.STOPPED: VmPhase.BROKEN,
    InstanceStatus.TERMINATED: VmPhase.BROKEN,
    InstanceStatus.SUSPENDING: VmPhase.BROKEN,
    InstanceStatus.SUSPENDED: VmPhase.BROKEN,
    InstanceStatus.REPAIRING: VmPhase.BROKEN,
    InstanceStatus.UNKNOWN: VmPhase.UNKNOWN,
}
"""A VM that stopped or is being repaired never serves again, whatever its model: it is BROKEN."""


def intent_of(
    node: Node, *, held: bool, owner_ended: bool, must_exist: bool = False, leaves: bool = False
) -> Intent:
    """What Slurm asks for.

    `held`: an active job has the node. `owner_ended`: it was started for a job that is over.
    `must_exist`: it is static and offered. `leaves`: the cluster file names it no more.
    """
    state = node.state
    if state.unknown or state.base in (BaseState.UNKNOWN, BaseState.FUTURE, BaseState.ERROR):
        return Intent.UNKNOWN
    if NodeFlag.POWERING_DOWN in state.flags:
        return Intent.STOPPING
    if NodeFlag.POWERING_UP in state.flags:
        intent = _intent_while_starting(node, held, owner_ended)
        return Intent.DISOWNED if leaves and intent is Intent.STARTING else intent
    if NodeFlag.POWERED_DOWN in state.flags:
        return _intent_while_off(node, must_exist)
    if NodeFlag.POWER_DOWN in state.flags and _is_free(node):
        return Intent.ASKED_OFF
    return _intent_while_up(node)


def _intent_while_up(node: Node) -> Intent:
    if _reboots_into_service(node):
        issued = node.state.has(NodeFlag.REBOOT_ISSUED)
        return Intent.REBOOTING if issued else Intent.REGISTERED
    if _is_out_of_service(node):
        return _intent_out_of_service(node)
    if node.state.base is BaseState.DOWN and is_silent(node.reason):
        return Intent.NOT_RESPONDING
    return Intent.REGISTERED


def _intent_out_of_service(node: Node) -> Intent:
    if _is_only_down(node):
        return Intent.DOWN_BY_HAND
    has_jobs = node.state.base in (BaseState.ALLOCATED, BaseState.MIXED)
    completes = node.state.has(NodeFlag.COMPLETING)
    return Intent.DRAINING if has_jobs or completes else Intent.DRAINED


def _is_out_of_service(node: Node) -> bool:
    """Whether a person keeps jobs off the node. Where Slurm only adds to a person's reason that
    slurmd is silent, a drain stays the person's, and DOWN is Slurm's."""
    if node.state.has(NodeFlag.DRAIN, NodeFlag.FAIL):
        return is_of_person(node.reason)
    is_down = node.state.base is BaseState.DOWN and not is_silent(node.reason)
    return is_down and is_of_person(node.reason)


def _is_only_down(node: Node) -> bool:
    """Whether nothing but DOWN, with a reason, keeps jobs off the node. INVALID_REG is slurmd's
    own fault, which may mend, and a reboot its own end."""
    return (
        node.state.base is BaseState.DOWN
        and node.reason != ""
        and not node.state.has(
            NodeFlag.DRAIN,
            NodeFlag.FAIL,
            NodeFlag.INVALID_REG,
            NodeFlag.COMPLETING,
            NodeFlag.REBOOT_ISSUED,
            NodeFlag.REBOOT_REQUESTED,
        )
    )


def _reboots_into_service(node: Node) -> bool:
    """Whether a reboot is asked for or under way that leaves nobody's drain behind. Slurm shows
    the node DOWN meanwhile, and drained if it was to be rebooted as soon as possible."""
    state = node.state
    if not state.has(NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED):
        return False
    drained = state.has(NodeFlag.DRAIN, NodeFlag.FAIL) and is_of_person(node.reason)
    return node.resumes_after_reboot or not drained


def _is_free(node: Node) -> bool:
    """Whether nothing keeps Slurm from suspending the node. A node with a dead slurmd that was
    powered down by force stays COMPLETING, and Slurm waits until SlurmdTimeout for it."""
    return node.state.base in (BaseState.IDLE, BaseState.DOWN) and not node.state.has(
        NodeFlag.COMPLETING
    )


def _intent_while_starting(node: Node, held: bool, owner_ended: bool) -> Intent:
    if node.state.base is BaseState.DOWN:
        return _intent_while_down_and_starting(node)
    if held:
        # Slurm ends the jobs of a waking node that is drained: this one was read before that.
        return Intent.INCONSISTENT if _is_out_of_service(node) else Intent.STARTING
    if node.state.base is not BaseState.IDLE:
        return Intent.INCONSISTENT
    if _is_out_of_service(node):
        return Intent.WITHDRAWN
    return Intent.ABANDONED if owner_ended else Intent.STARTING


def _intent_while_down_and_starting(node: Node) -> Intent:
    if not _is_out_of_service(node):
        return Intent.UNKNOWN
    return Intent.DOWN_BY_HAND if _is_only_down(node) else Intent.WITHDRAWN


def _intent_while_off(node: Node, must_exist: bool) -> Intent:
    if node.state.base is not BaseState.DOWN:
        kept_off = (
            node.state.has(NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.POWER_UP)
            or reason_before(node.reason) != ""
        )
        if _is_trapped(node) and not kept_off:
            return Intent.TRAPPED
        wanted = must_exist and not kept_off
        return Intent.STATIC_OFF if wanted else Intent.OFF
    failed = RESUME_TIMEOUT in node.reason and not _is_out_of_service(node)
    return Intent.RESUME_FAILED if failed and not node.state.has(NodeFlag.FAIL) else Intent.OFF


def _is_trapped(node: Node) -> bool:
    """A node whose power down is asked for already leaves the trap by itself."""
    return (
        node.state.base is BaseState.IDLE
        and node.state.has(NodeFlag.NOT_RESPONDING)
        and not node.state.has(NodeFlag.POWER_DOWN)
    )


def request_phase_of(state: RequestState) -> RequestPhase:
    """The phase of a resize request; one that was cancelled counts as none."""
    return _REQUEST_PHASES[state]


def member_phases_of(
    member: Member, *, deletion_in_flight: bool, is_starting: bool, is_late: bool
) -> tuple[RequestPhase, VmPhase]:
    """The phases of a member without a VM, as of the request and the VM that it stands for.

    `is_starting`: Slurm waits for its VM, so a failed attempt is a failed start. The group tries
    again, and to nodes that are not starting such a member is one that still waits. `is_late`: a
    job waits for longer than a boot may take, so an error that may pass has not passed.
    """
    if deletion_in_flight or member.action is MemberAction.LEAVING:
        return RequestPhase.NONE, VmPhase.LEAVING
    if member.action is MemberAction.UNKNOWN:
        return RequestPhase.UNKNOWN, VmPhase.NONE
    if is_starting and _has_failed(member, is_late):
        return RequestPhase.FAILED, VmPhase.NONE
    if member.action is MemberAction.CREATING:
        return RequestPhase.WAITING, VmPhase.NONE
    return RequestPhase.NONE, VmPhase.BROKEN


def _has_failed(member: Member, is_late: bool) -> bool:
    if member.last_attempt_error is None:
        return False
    kind = classify_detail(member.last_attempt_error)
    return is_late or reaction_to(Occasion.MEMBER_FAILED, kind) is Reaction.FAIL_START


def vm_phase_of(
    instance: Instance | None, *, deletion_in_flight: bool, is_overdue: bool = False
) -> VmPhase:
    """The phase of a VM. A deletion that we have started counts at once.

    `is_overdue`: it has existed for longer than a boot may take, and slurmd has not registered.
    """
    if instance is None:
        return VmPhase.NONE
    phase = VmPhase.LEAVING if deletion_in_flight else _VM_PHASES[instance.status]
    lives = phase in (VmPhase.COMING, VmPhase.RUNNING)
    return VmPhase.OVERDUE if lives and is_overdue else phase
