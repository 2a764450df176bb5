"""Whether a node is still as it was when its change was decided. Pure."""

from __future__ import annotations

from slurm_hooks.reconcile.actions import Expectation
from slurm_hooks.reconcile.phases import Intent, intent_of
from slurm_hooks.slurm.model import BaseState, Node


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
        case Expectation.NOT_RESPONDING:
            return intent is Intent.NOT_RESPONDING
        case Expectation.OFF:
            return intent is Intent.OFF
        case Expectation.RESUME_FAILED:
            return intent is Intent.RESUME_FAILED
