"""Whether a node is still as it was when its change was decided. Pure."""

from __future__ import annotations

from slurm_hooks.reconcile.actions import Expectation
from slurm_hooks.reconcile.comments import tells_waiting
from slurm_hooks.reconcile.phases import Intent, intent_of
from slurm_hooks.reconcile.pool_record import hold_end
from slurm_hooks.reconcile.reasons import OFFERED_AGAIN, is_of_person, is_ours, reason_before
from slurm_hooks.slurm.client import UNREACHABLE_ADDRESS
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag, NodeState

_OUT_OF_SERVICE = (NodeFlag.DRAIN, NodeFlag.FAIL)
_ON_THE_WAY = (NodeFlag.POWERING_UP, NodeFlag.POWER_UP, NodeFlag.POWER_DOWN)
_BEING_CHANGED = (*_ON_THE_WAY, NodeFlag.POWERING_DOWN, NodeFlag.COMPLETING)


def still_holds(expectation: Expectation, node: Node) -> bool:
    """Whether the expectation holds of a node that was read again just now."""
    intent = intent_of(node, held=node.state.base is not BaseState.IDLE, owner_ended=False)
    match expectation:
        case Expectation.STARTING:
            return intent is Intent.STARTING
        case Expectation.STARTING_WITHOUT_JOB:
            return intent is Intent.STARTING and node.state.base is BaseState.IDLE
        case Expectation.REGISTERED:
            return intent is Intent.REGISTERED
        case Expectation.IDLE:
            return intent is Intent.REGISTERED and node.state.base is BaseState.IDLE
        case Expectation.DRAINING:
            return intent is Intent.DRAINING
        case Expectation.DOWN_BY_HAND:
            return intent is Intent.DOWN_BY_HAND
        case Expectation.WITHDRAWN:
            return intent is Intent.WITHDRAWN
        case Expectation.SET_ASIDE:
            return _is_set_aside(node)
        case Expectation.REBOOTING:
            return intent is Intent.REBOOTING
        case Expectation.NOT_RESPONDING:
            return intent is Intent.NOT_RESPONDING
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
            return _is_waking(node, intent)
        case Expectation.TOLD_TO_WAIT:
            return tells_waiting(node.reason)
        case Expectation.OFF:
            return intent is Intent.OFF
        case Expectation.TRAPPED:
            return intent is Intent.TRAPPED
        case Expectation.RESUME_FAILED:
            return intent is Intent.RESUME_FAILED


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


def _is_waking(node: Node, intent: Intent) -> bool:
    is_free_to_tell = not node.reason or is_ours(node.reason)
    return (
        intent is Intent.STARTING
        and is_free_to_tell
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
