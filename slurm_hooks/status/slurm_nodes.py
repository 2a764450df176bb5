"""How a node in Slurm stands, and why it is not there or takes no jobs. Pure.

What Slurm asks for (`Intent`) comes first, then the request and the VM that are to bring it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from slurm_hooks.boot.console import BootState
from slurm_hooks.cluster.policy import Policy
from slurm_hooks.health.reason import health_reason_of, is_condemned
from slurm_hooks.health.slurm_reasons import is_of_slurm
from slurm_hooks.reconcile.actions import ReasonCode
from slurm_hooks.reconcile.comments import gives
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent, VmPhase, intent_of
from slurm_hooks.reconcile.plan_nodes import wanted_since
from slurm_hooks.reconcile.pool_record import hold_end
from slurm_hooks.reconcile.reasons import PREFIX, is_of_person, is_ours
from slurm_hooks.reconcile.repair_limits import forbidden
from slurm_hooks.reconcile.repairs import RepairLog
from slurm_hooks.reconcile.views import NodeView
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag
from slurm_hooks.status.facts import NodeFacts, last_replacement
from slurm_hooks.status.model import NodeState
from slurm_hooks.status.words import boot_text, error_text, jobs_text, reason_text, since, stamp

_Answer = tuple[NodeState, str]
_ON_THE_WAY = (
    Intent.STARTING,
    Intent.DISOWNED,
    Intent.ABANDONED,
    Intent.WITHDRAWN,
    Intent.INCONSISTENT,
)
_BY_HAND = (Intent.DRAINED, Intent.DRAINING, Intent.DOWN_BY_HAND)
_TAKES_NO_JOBS = (NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.INVALID_REG)
_REBOOTS = (NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED)


def slurm_node_state(
    facts: NodeFacts, node: Node, log: RepairLog, policy: Policy, now: datetime
) -> _Answer:
    """The state of a node that Slurm names, and why it is not there or takes no jobs."""
    if facts.pool is None:
        return _leaving(facts, node)
    intent = _intent(facts, node)
    if intent is Intent.UNKNOWN:
        return NodeState.ERROR, f"a state that is left alone{reason_text(node)}"
    if intent in _ON_THE_WAY:
        return _on_the_way(facts, policy, now)
    if intent in _BY_HAND:
        return _by_hand(facts, node)
    if intent is Intent.RESUME_FAILED:
        return NodeState.ERROR, "it did not come within ResumeTimeout and is offered again"
    if intent is Intent.NOT_RESPONDING:
        return NodeState.REPAIRING, f"slurmd does not answer, it is replaced{reason_text(node)}"
    if intent is Intent.REBOOTING:
        return NodeState.REPAIRING, f"it reboots{reason_text(node)}"
    if intent is Intent.REGISTERED:
        return _registered(facts, node, log, policy, now)
    return _off(facts, node, intent, policy, now)


def _intent(facts: NodeFacts, node: Node) -> Intent:
    """What Slurm asks for; without Compute Engine the node's record alone must tell."""
    if facts.view is not None:
        return facts.view.intent
    held = bool(facts.jobs)
    return intent_of(node, held=held, owner_ended=False, must_exist=facts.must_exist)


def _leaving(facts: NodeFacts, node: Node) -> _Answer:
    is_off = node.state.has(NodeFlag.POWERED_DOWN) and facts.vm is None
    if facts.jobs:
        return NodeState.UPDATING, f"leaves the cluster when {jobs_text(facts.jobs)} ends"
    if is_off:
        return NodeState.UPDATING, "has left the cluster; slurm.conf still names it"
    return NodeState.UPDATING, "leaves the cluster and is powered down"


def _on_the_way(facts: NodeFacts, policy: Policy, now: datetime) -> _Answer:
    step = facts.boot_step
    if step is not None and step.state is BootState.FAILED:
        return NodeState.ERROR, f"its boot failed{boot_text(step)}"
    state = NodeState.PREPARING
    if facts.must_exist and _was_replaced(facts, policy, now):
        state = NodeState.REPAIRING
    if facts.view is None:
        return state, "it is on its way; its VM is not known"
    return state, _wait_text(facts, facts.view)


def _was_replaced(facts: NodeFacts, policy: Policy, now: datetime) -> bool:
    """Whether it was given up so lately that this is the new VM's way."""
    last = last_replacement(facts)
    return last is not None and now - last <= timedelta(seconds=policy.boot_timeout_seconds)


def _wait_text(facts: NodeFacts, view: NodeView) -> str:
    """What a node that is on its way waits for."""
    vm = view.vm
    match view.step:
        case Step.AWAIT_CAPACITY if vm is None:
            return f"waits for capacity{since(wanted_since(view, view.owner))}{_last_error(view)}"
        case Step.AWAIT_BOOT | Step.AWAIT_CAPACITY if vm is not None:
            made = since(vm.creation_time_utc)
            if view.vm_phase is VmPhase.COMING:
                return f"its VM is {vm.status}{made}"
            return f"its VM boots{made}{boot_text(facts.boot_step)}"
        case Step.REPLACE_VM:
            return "slurmd did not register in time, its VM is replaced"
        case Step.AWAIT_DELETION | Step.DELETE_VM:
            return "waits until its old VM is gone"
        case Step.FAIL_START:
            return f"its start failed{error_text(view.error)}"
        case Step.ABANDON_START | Step.CANCEL_REQUEST | Step.SET_ASIDE:
            return "is powered down again: nobody waits for it"
        case Step.REQUEST_AGAIN:
            return "its VM came and went, it is asked for again"
        case _ if vm is not None:
            return f"its VM is {vm.status}{since(vm.creation_time_utc)}"
        case _:
            return f"its VM is asked for{since(wanted_since(view, view.owner))}"


def _last_error(view: NodeView) -> str:
    if view.request is not None:
        return error_text(view.request.request.last_attempt_error)
    return error_text(view.member.last_attempt_error) if view.member is not None else ""


def _by_hand(facts: NodeFacts, node: Node) -> _Answer:
    how = "down" if node.state.base is BaseState.DOWN else "drained"
    text = f"takes no jobs: {how}{reason_text(node)}"
    is_lost = facts.view is not None and facts.vm is None
    if is_lost:
        return NodeState.ERROR, f"its VM is gone; {text}"
    return NodeState.RUNNING, text


def _registered(
    facts: NodeFacts, node: Node, log: RepairLog, policy: Policy, now: datetime
) -> _Answer:
    if is_condemned(node.reason) and node.state.has(*_TAKES_NO_JOBS, *_REBOOTS):
        condemned = _condemned(facts, node, log, policy, now)
        if condemned is not None:
            return condemned
    if facts.view is not None and facts.view.vm_phase in (VmPhase.NONE, VmPhase.BROKEN):
        gone = "gone" if facts.vm is None else facts.vm.status.value
        return NodeState.REPAIRING, f"its VM is {gone}, it is powered down in a moment"
    if facts.view is not None and facts.view.vm_phase is VmPhase.LEAVING:
        return NodeState.REPAIRING, "its VM goes"
    if facts.outdated or _gives_way(node):
        return NodeState.UPDATING, _moves_text(facts)
    is_down = node.state.base is BaseState.DOWN
    if is_down or node.state.has(*_TAKES_NO_JOBS):
        state = NodeState.REPAIRING if is_ours(node.reason) else NodeState.ERROR
        how = "down" if is_down else "drained"
        whose = "; a person must look" if is_of_slurm(node.reason) else ""
        return state, f"takes no jobs: {how}{reason_text(node)}{whose}"
    return NodeState.RUNNING, ""


def _gives_way(node: Node) -> bool:
    """Whether we have drained it so that its VM may go."""
    codes = (ReasonCode.NEW_GENERATION, ReasonCode.LEAVES_CLUSTER)
    return any(gives(node.reason, code) for code in codes)


def _moves_text(facts: NodeFacts) -> str:
    when = f"when {jobs_text(facts.jobs)} ends" if facts.jobs else "in its turn"
    return f"moves to the new generation of its pool {when}"


def _condemned(
    facts: NodeFacts, node: Node, log: RepairLog, policy: Policy, now: datetime
) -> _Answer | None:
    """A node that a health run has drained; None where its reason tells no such thing."""
    reason = health_reason_of(node.reason)
    if reason is None:
        return None
    found = f"{reason.verdict} {reason.check}: {reason.detail}".rstrip(": ")
    if node.state.has(*_REBOOTS):
        return NodeState.REPAIRING, f"it reboots: {found}"
    if facts.pool_id in log.stopped:
        return NodeState.ERROR, f"drained: {found}; the repairs of pool {facts.pool_id} are stopped"
    why = forbidden(reason, node.name, log, policy, now) if reason.verdict.drains else ""
    if why:
        return NodeState.ERROR, f"drained: {found}; {why}"
    when = f" when {jobs_text(facts.jobs)} ends" if facts.jobs else ""
    return NodeState.REPAIRING, f"it is repaired{when}: {found}"


def _off(facts: NodeFacts, node: Node, intent: Intent, policy: Policy, now: datetime) -> _Answer:
    """A node that is powered down or about to be."""
    end = hold_end(node.reason)
    if end is not None:
        state = NodeState.ERROR if facts.must_exist else NodeState.OFF
        return state, f"its pool is held until {stamp(end)}: {_after_hold(node.reason)}"
    if node.reason and node.state.has(NodeFlag.DRAIN, NodeFlag.FAIL) and is_of_person(node.reason):
        return NodeState.OFF, f"takes no jobs: drained{reason_text(node)}"
    goes = intent in (Intent.ASKED_OFF, Intent.STOPPING)
    text = "it is powered down, its VM is deleted" if goes else ""
    if not goes and facts.vm is not None:
        text = "its VM is of no use and is deleted"
    if not facts.must_exist:
        return NodeState.OFF, text or _last_failure(node)
    state = NodeState.PREPARING
    if _was_replaced(facts, policy, now):
        state = NodeState.REPAIRING
    elif gives(node.reason, ReasonCode.NEW_GENERATION):
        state = NodeState.UPDATING
    return state, text or f"it is powered up next{_before(_last_failure(node))}"


def _after_hold(reason: str) -> str:
    """What a held node's reason says after until when."""
    return reason.partition(" after ")[2]


def _last_failure(node: Node) -> str:
    """Our reason from its last failed start; empty for anybody else's."""
    return node.reason.removeprefix(PREFIX).strip() if is_ours(node.reason) else ""


def _before(failure: str) -> str:
    return f"; before that {failure}" if failure else ""
