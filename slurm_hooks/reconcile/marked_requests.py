"""Resize requests of ours: whom each is for, and whether it is about a node's present start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    Instance,
    RequestReference,
    RequestState,
    ResizeRequest,
)
from slurm_hooks.compute.ownership import Mark, decode
from slurm_hooks.reconcile.actions import CancelRequest, DeleteRequest
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.model import Job

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class MarkedRequest:
    """A resize request of ours with what its mark says."""

    request: ResizeRequest
    mark: Mark


def marked_requests(
    compute: ComputeSnapshot, cluster: Cluster
) -> dict[RequestReference, MarkedRequest]:
    """The requests of this cluster, by their marks."""
    marked = {}
    for reference, request in compute.requests.items():
        mark = decode(request.description)
        if mark is not None and mark.cluster == cluster.cluster_id:
            marked[reference] = MarkedRequest(request, mark)
    return marked


def requests_by_node(requests: Iterable[MarkedRequest]) -> dict[str, list[MarkedRequest]]:
    """The requests that name each node."""
    by_node: dict[str, list[MarkedRequest]] = {}
    for marked in requests:
        for name in marked.request.instances:
            by_node.setdefault(name, []).append(marked)
    return by_node


def is_of_past_start(marked: MarkedRequest, memory: Memory) -> bool:
    """Whether a request that brought no VM was found of no use before: then its start was over,
    and a node that starts for no job starts anew. A job's start is told by the mark instead."""
    return (
        marked.request.state in (RequestState.FAILED, RequestState.CANCELLED)
        and DeleteRequest(marked.request.reference).subject in memory.sightings.finished
    )


def cancellation_of(marked: MarkedRequest) -> CancelRequest:
    """The action that gives up a waiting request."""
    return CancelRequest(marked.request.reference, marked.mark.job_id)


def of_present_start(
    candidates: Sequence[MarkedRequest], memory: Memory
) -> Sequence[MarkedRequest]:
    """Those of a node's requests that no pass before has found to be of a past start."""
    if not memory.sightings.finished:
        return candidates
    return [marked for marked in candidates if not is_of_past_start(marked, memory)]


def latest_of(candidates: Iterable[MarkedRequest]) -> MarkedRequest | None:
    """The request that counts for a node: an active one, else the newest."""
    return max(
        candidates,
        key=lambda marked: (
            marked.request.state.is_active,
            marked.request.creation_time_utc or _LONG_AGO,
            marked.request.reference,
        ),
        default=None,
    )


def owner_ended(askers: frozenset[int], latest: MarkedRequest | None, vm: Instance | None) -> bool:
    """Whether the node was started for a job; asked only where no job has it now.

    A request that was granted tells of the VM that it made, and of no later start of the node.
    """
    if askers:
        return True
    if latest is None or latest.mark.job_id is None:
        return False
    return latest.request.state is not RequestState.SUCCEEDED or vm is not None


def serves(marked: MarkedRequest, owner: Job | None) -> bool:
    """Whether a request belongs to the present start of a node.

    A waiting request serves whoever has the node now: its place in the queue is kept. A final
    one counts only for the very start that it was made for; where no job has the node, a granted
    one does too, so that its VM is believed missing only at the second sighting.
    """
    if marked.request.state.is_active:
        return True
    if marked.request.state is RequestState.CANCELLED:
        return False
    if owner is None:
        return marked.mark.job_id is None or marked.request.state is RequestState.SUCCEEDED
    return (marked.mark.job_id, marked.mark.restarts) == (owner.job_id, owner.restarts)
