"""From what was read to how the cluster stands: one pure function."""

from __future__ import annotations

from slurm_hooks.compute.model import Instance
from slurm_hooks.history.report import FaultReport
from slurm_hooks.reconcile.repairs import RepairLog
from slurm_hooks.reconcile.snapshot import Unavailable
from slurm_hooks.slurm.model import Node
from slurm_hooks.status.cluster_state import cluster_state
from slurm_hooks.status.facts import NodeFacts, gather
from slurm_hooks.status.held_up import held_up_by
from slurm_hooks.status.login_nodes import login_state
from slurm_hooks.status.model import (
    ClusterStatus,
    NodeState,
    NodeStatus,
    RequestStatus,
    StatusInputs,
    VmStatus,
)
from slurm_hooks.status.slurm_nodes import slurm_node_state
from slurm_hooks.status.words import jobs_text

NOT_IN_SLURM = "slurm.conf does not name it yet"


def derive_status(inputs: StatusInputs) -> ClusterStatus:
    """How the cluster and each node of it stand, and what holds it up.

    A system that could not be read is named in the answer; what it alone knows is left out.
    """
    nodes = tuple(_node_status(facts, inputs) for facts in gather(inputs))
    state, detail = cluster_state(inputs, nodes)
    parts = (inputs.slurm, inputs.compute, inputs.repairs)
    return ClusterStatus(
        inputs.cluster.cluster_id,
        state,
        inputs.now,
        detail,
        nodes,
        held_up_by(inputs, nodes),
        tuple(part for part in parts if isinstance(part, Unavailable)),
    )


def _node_status(facts: NodeFacts, inputs: StatusInputs) -> NodeStatus:
    state, detail = _state(facts, inputs)
    return NodeStatus(
        facts.name,
        facts.pool_id,
        facts.is_login,
        facts.must_exist,
        state,
        detail,
        slurm_state=_slurm_words(facts.node),
        vm=_vm_status(facts.vm),
        request=_request_status(facts),
        end_of_life_utc=facts.vm.termination_time_utc if facts.vm is not None else None,
        jobs=tuple(job.job_id for job in facts.jobs),
    )


def _state(facts: NodeFacts, inputs: StatusInputs) -> tuple[NodeState, str]:
    if inputs.report is not None and inputs.report.node == facts.name:
        return NodeState.REPAIRING, _report_text(inputs.report)
    compute_was_read = not isinstance(inputs.compute, Unavailable)
    if inputs.is_deleting and compute_was_read:
        return _deleted_with_its_cluster(facts)
    if facts.is_login:
        return login_state(facts, compute_was_read=compute_was_read)
    if isinstance(inputs.slurm, Unavailable):
        return _without_slurm(facts)
    if facts.node is None:
        return _unknown_to_slurm(facts)
    log = RepairLog() if isinstance(inputs.repairs, Unavailable) else inputs.repairs
    return slurm_node_state(facts, facts.node, log, inputs.cluster.policy, inputs.now)


def _deleted_with_its_cluster(facts: NodeFacts) -> tuple[NodeState, str]:
    if facts.vm is None and facts.member is None:
        return NodeState.OFF, ""
    return NodeState.UPDATING, "it is deleted with the cluster"


def _report_text(report: FaultReport) -> str:
    by = f" by {report.ordered_by}" if report.ordered_by else ""
    return f"reported faulty{by}, {report.state}: {report.detail}".rstrip(": ")


def _without_slurm(facts: NodeFacts) -> tuple[NodeState, str]:
    """The VM alone tells, and it tells of nothing that runs there."""
    if facts.vm is not None:
        return NodeState.PREPARING, f"its VM is {facts.vm.status}; Slurm could not be read"
    state = NodeState.PREPARING if facts.must_exist else NodeState.OFF
    return state, "no VM is seen; Slurm could not be read"


def _unknown_to_slurm(facts: NodeFacts) -> tuple[NodeState, str]:
    if facts.pool is None:
        busy = f" when {jobs_text(facts.jobs)} ends" if facts.jobs else ""
        return NodeState.UPDATING, f"its VM is of no use and is deleted{busy}"
    return NodeState.UPDATING, NOT_IN_SLURM


def _slurm_words(node: Node | None) -> str:
    """The state as Slurm writes it, flags in a fixed order."""
    if node is None:
        return ""
    state = node.state
    return "+".join((state.base, *sorted(state.flags), *sorted(state.unknown)))


def _vm_status(vm: Instance | None) -> VmStatus | None:
    if vm is None:
        return None
    return VmStatus(vm.instance_id, vm.status.value, vm.zone, vm.creation_time_utc)


def _request_status(facts: NodeFacts) -> RequestStatus | None:
    """The request of the present start; the node's view has none that is over."""
    marked = facts.view.request if facts.view is not None else None
    if marked is None:
        return None
    request = marked.request
    error = request.error or request.last_attempt_error
    return RequestStatus(
        request.reference.name,
        request.state.value,
        request.creation_time_utc,
        error.code if error is not None else "",
    )
