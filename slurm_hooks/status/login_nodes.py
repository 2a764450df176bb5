"""How a login node stands: Slurm does not know it, so its VM and its console tell all. Pure."""

from __future__ import annotations

from slurm_hooks.boot.console import BootState
from slurm_hooks.reconcile.phases import VmPhase, vm_phase_of
from slurm_hooks.status.facts import NodeFacts
from slurm_hooks.status.model import NodeState
from slurm_hooks.status.words import boot_text, error_text, since

RENEWED_BY_HAND = "of an outdated generation; delete its VM to renew it"


def login_state(facts: NodeFacts, *, compute_was_read: bool) -> tuple[NodeState, str]:
    """The state of a login node, and why it is not there."""
    if not compute_was_read:
        return NodeState.PREPARING, "not known: Compute Engine could not be read"
    vm = facts.vm
    if vm is None:
        return _without_vm(facts)
    match vm_phase_of(vm, deletion_in_flight=False):
        case VmPhase.RUNNING:
            return _running(facts)
        case VmPhase.COMING | VmPhase.OVERDUE:
            made = since(vm.creation_time_utc)
            return NodeState.PREPARING, f"its VM is {vm.status}{made}"
        case VmPhase.UNKNOWN:
            return NodeState.ERROR, "its VM is in a state that we do not know and is left alone"
        case _:
            return NodeState.REPAIRING, f"its VM is {vm.status} and made anew"


def _without_vm(facts: NodeFacts) -> tuple[NodeState, str]:
    if facts.member is not None:
        error = error_text(facts.member.last_attempt_error)
        return NodeState.PREPARING, f"its VM is being created{error}"
    return NodeState.PREPARING, "its VM is asked for next"


def _running(facts: NodeFacts) -> tuple[NodeState, str]:
    step = facts.boot_step
    if step is not None and step.state is BootState.FAILED:
        return NodeState.ERROR, f"its boot failed{boot_text(step)}"
    if step is not None and step.state is not BootState.DONE:
        return NodeState.PREPARING, f"it boots{boot_text(step)}"
    return NodeState.RUNNING, RENEWED_BY_HAND if facts.outdated else ""
