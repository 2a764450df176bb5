"""Whether a node is still as it was when its change was decided. Pure."""

from __future__ import annotations

from slurm_hooks.reconcile.actions import Expectation, ReasonCode
from slurm_hooks.reconcile.comments import gives, tells_waiting
from slurm_hooks.reconcile.phases import Intent, intent_of
from slurm_hooks.reconcile.pool_record import hold_end
from slurm_hooks.reconcile.reasons import OFFERED_AGAIN, is_of_person, is_ours, reason_before
from slurm_hooks.slurm.client import UNREACHABLE_ADDRESS
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag, NodeState

_OUT_OF_SERVICE = (NodeFlag.DRAIN, NodeFlag.FAIL)
_ON_THE_WAY = (NodeFlag.POWERING_UP, NodeFlag.POWER_UP, NodeFlag.POWER_DOWN)
_REBOOTS = (NodeFlag.REBOOT_ISSUED, NodeFlag.REBOOT_REQUESTED)
_KEPT_FROM_JOBS = (NodeFlag.INVALID_REG, NodeFlag.POWER_DRAIN, NodeFlag.BLOCKED)
_BEING_CHANGED = (*_ON_THE_WAY, NodeFlag.POWERING_DOWN, NodeFlag.COMPLETING)


_INTENTS = {
    Expectation.STARTING: Intent.STARTING,
    Expectation.STARTING_WITHOUT_JOB: Intent.STARTING,
    Expectation.REGISTERED: Intent.REGISTERED,
    Expectation.IDLE: Intent.REGISTERED,
    Expectation.DRAINING: Intent.DRAINING,
    Expectation.DOWN_BY_HAND: Intent.DOWN_BY_HAND,
    Expectation.WITHDRAWN: Intent.WITHDRAWN,
    Expectation.REBOOTING: Intent.REBOOTING,
    Expectation.NOT_RESPONDING: Intent.NOT_RESPONDING,
    Expectation.WAKING: Intent.STARTING,
    Expectation.OFF: Intent.OFF,
    Expectation.TRAPPED: Intent.TRAPPED,
    Expectation.RESUME_FAILED: Intent.RESUME_FAILED,
    Expectation.SERVING: Intent.REGISTERED,
    Expectation.FREE: Intent.REGISTERED,
    Expectation.DRAINED_TO_GO: Intent.REGISTERED,
}
"""What Slurm must ask for; the other expectations are about single flags and words."""


def still_holds(expectation: Expectation, node: Node) -> bool:
    """Whether the expectation holds of a node that was read again just now."""
    intent = _INTENTS.get(expectation)
    return (intent is None or _intent_now(node) is intent) and _has_the_rest(expectation, node)


def _intent_now(node: Node) -> Intent:
    return intent_of(node, held=node.state.base is not BaseState.IDLE, owner_ended=False)


def _has_the_rest(expectation: Expectation, node: Node) -> bool:
    """Whether all that the expectation asks for beside an intent holds."""
    match expectation:
        case Expectation.STARTING_WITHOUT_JOB | Expectation.IDLE:
            return node.state.base is BaseState.IDLE
        case Expectation.SET_ASIDE:
            return _is_set_aside(node)
        case Expectation.OFF_SINCE_FAILURE:
            return _is_off_since_failure(node)
        case Expectation.FREE_AND_OFF:
            return _is_free_and_off(node)
        case Expectation.HELD:
            return _is_held(node)
        case Expectation.UP_WITH_OUR_REASON:
            return _is_up(node) and is_ours(node.reason)
        case Expectation.NAMED_ADDRESS:
            return node.address == node.name and _is_free_for_an_address(node.state)
        case Expectation.NAMED_ADDRESS_WITHOUT_VM:
            return node.address == node.name and _is_off_or_waking(node.state)
        case Expectation.LOST_ADDRESS:
            return node.address == UNREACHABLE_ADDRESS and _is_registered(node.state)
        case Expectation.WAKING:
            return _may_be_told(node)
        case Expectation.TOLD_TO_WAIT:
            return tells_waiting(node.reason)
        case Expectation.UP:
            return _is_registered_at_all(node.state)
        case _:
            return _has_the_rest_to_go(expectation, node)


def _has_the_rest_to_go(expectation: Expectation, node: Node) -> bool:
    """The same where nodes move to another generation or leave, and where that is over."""
    match expectation:
        case Expectation.SERVING:
            return not node.state.has(*_OUT_OF_SERVICE, *_REBOOTS, NodeFlag.POWER_DOWN)
        case Expectation.FREE:
            return _is_free_or_drained_to_go(node)
        case Expectation.FREE_TO_LEAVE:
            return _has_no_job(node.state)
        case Expectation.OFF_TO_LEAVE:
            return node.state.base is BaseState.IDLE and _is_off_and_in_service(node.state)
        case Expectation.DRAINED_TO_GO:
            return _is_drained_to_go(node)
        case Expectation.DRAINED_AND_OFF:
            return _is_drained_to_go(node) and _is_free_for_an_address(node.state)
        case _:
            return expectation in _INTENTS


def _is_free_and_off(node: Node) -> bool:
    """Whether draining it harms nobody: DRAIN ends the jobs of an allocated node that is off."""
    state = node.state
    return (
        state.base is BaseState.IDLE
        and _is_off_and_in_service(state)
        and not (node.reason and is_of_person(node.reason))
        and not reason_before(node.reason)
    )


def _is_free_for_an_address(state: NodeState) -> bool:
    """Whether no registration can come that would be overwritten: nobody waits for the node."""
    return (
        state.base in (BaseState.IDLE, BaseState.DOWN)
        and not state.unknown
        and state.has(NodeFlag.POWERED_DOWN)
        and not state.has(*_BEING_CHANGED)
    )


def _is_off_or_waking(state: NodeState) -> bool:
    """Whether it has not registered; without a VM it will not for a while."""
    return (
        not state.unknown
        and state.has(NodeFlag.POWERED_DOWN, NodeFlag.POWERING_UP)
        and not state.has(NodeFlag.POWERING_DOWN)
    )


def _is_registered(state: NodeState) -> bool:
    return not state.unknown and not state.has(
        *_BEING_CHANGED, NodeFlag.POWERED_DOWN, NodeFlag.NOT_RESPONDING
    )


def _is_registered_at_all(state: NodeState) -> bool:
    """Whether slurmd has registered and no power step is under way, whatever else holds."""
    odd = (BaseState.UNKNOWN, BaseState.FUTURE, BaseState.ERROR)
    is_known = not state.unknown and state.base not in odd
    return is_known and not state.has(*_ON_THE_WAY, NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN)


def _is_off_since_failure(node: Node) -> bool:
    return (
        _is_free_and_off(node)
        and not node.state.has(*_BEING_CHANGED)
        and is_ours(node.reason)
        and node.reason != OFFERED_AGAIN
    )


def _is_set_aside(node: Node) -> bool:
    return (
        node.state.base in (BaseState.IDLE, BaseState.DOWN)
        and _is_off_and_in_service(node.state)
        and reason_before(node.reason) != ""
    )


def _is_off_and_in_service(state: NodeState) -> bool:
    return (
        not state.unknown
        and state.has(NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN)
        and not state.has(*_ON_THE_WAY, *_OUT_OF_SERVICE)
    )


def _is_held(node: Node) -> bool:
    state = node.state
    return (
        state.base is BaseState.IDLE
        and not state.unknown
        and state.has(NodeFlag.DRAIN)
        and not state.has(*_BEING_CHANGED, NodeFlag.FAIL)
        and hold_end(node.reason) is not None
    )


def _is_free_or_drained_to_go(node: Node) -> bool:
    state = node.state
    if not _has_no_job(state) or state.has(*_KEPT_FROM_JOBS, NodeFlag.FAIL):
        return False
    if state.has(NodeFlag.DRAIN):
        return gives(node.reason, ReasonCode.NEW_GENERATION)
    return state.base is BaseState.IDLE


def _has_no_job(state: NodeState) -> bool:
    """Whether no job is on a node that is up, nor power step nor reboot under way. One that slurmd
    does not answer from is Slurm's to give up first, which ends its jobs."""
    is_silent = state.has(NodeFlag.NOT_RESPONDING)
    return (
        (state.base is BaseState.DOWN or (state.base is BaseState.IDLE and not is_silent))
        and not state.unknown
        and not state.has(*_BEING_CHANGED, *_REBOOTS, NodeFlag.POWERED_DOWN)
    )


def _is_drained_to_go(node: Node) -> bool:
    state, reason = node.state, node.reason
    return (
        state.base in (BaseState.IDLE, BaseState.ALLOCATED, BaseState.MIXED)
        and not state.unknown
        and state.has(NodeFlag.DRAIN)
        and not state.has(*_ON_THE_WAY, *_REBOOTS, NodeFlag.POWERING_DOWN, NodeFlag.FAIL)
        and (gives(reason, ReasonCode.NEW_GENERATION) or gives(reason, ReasonCode.LEAVES_CLUSTER))
    )


def _may_be_told(node: Node) -> bool:
    return (
        (not node.reason or is_ours(node.reason))
        and not reason_before(node.reason)
        and not node.state.has(*_OUT_OF_SERVICE)
    )


def _is_up(node: Node) -> bool:
    state = node.state
    return (
        state.base in (BaseState.IDLE, BaseState.ALLOCATED, BaseState.MIXED)
        and not state.unknown
        and not state.has(*_BEING_CHANGED, *_OUT_OF_SERVICE, NodeFlag.POWERED_DOWN)
    )
