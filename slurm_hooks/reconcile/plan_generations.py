"""Nodes on VMs of an outdated generation move to the present one, without harm to a job.

Templates are immutable: a changed pool has a new generation, and only a new VM has what is new. A
node with jobs is drained, so that no further job starts there, and powered down when it is free;
one that serves no job is powered down at once, in turns, so that a template which cannot work
costs a pool few nodes. Slurm, or `node_table` for static nodes, has the next VM made, which is of
the present generation. In a pool that is held none would come, so nothing is done there.

Whom another concern keeps from jobs is left to that: a person's drain, a condemned node, a VM
whose end has come. When a VM's generation is the present one again, our drain is lifted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from slurm_hooks.cluster.topology import NodePool
from slurm_hooks.compute.model import GroupReference
from slurm_hooks.compute.ownership import decode
from slurm_hooks.reconcile.actions import Expectation, ReasonCode, UpdateNode
from slurm_hooks.reconcile.comments import gives
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.plan_recycling import held_pools
from slurm_hooks.reconcile.plan_removals import returned
from slurm_hooks.reconcile.reasons import is_ours
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.specifications import is_outdated, present_generations
from slurm_hooks.reconcile.views import NodeView
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag, NodeState

_GOING = frozenset({Intent.ASKED_OFF, Intent.STOPPING, Intent.STATIC_OFF, Intent.RESUME_FAILED})
_SHARE_ON_THE_WAY = 10
"""Of a pool's nodes one in so many may be on its way, and always one."""


def plan_generations(scene: Scene) -> Iterator[UpdateNode]:
    """The nodes to drain and power down for the present generation, and those to give back."""
    outdated = outdated_groups(scene)
    yield from _returns(scene, outdated)
    if not outdated:
        return
    stale: dict[str, list[NodeView]] = {}
    for view in scene.world.views.values():
        if view.vm is not None and view.vm.group in outdated and not view.leaves:
            stale.setdefault(view.pool.pool_id, []).append(view)
    for pool_id in held_pools(scene):
        stale.pop(pool_id, None)
    if stale:
        yield from _moves(scene, stale)


def outdated_groups(scene: Scene) -> frozenset[GroupReference]:
    """The groups of ours whose VMs are not what their pools are now."""
    present = present_generations(scene.cluster)
    marks = ((ref, decode(group.description)) for ref, group in scene.compute.groups.items())
    return frozenset(
        reference
        for reference, mark in marks
        if mark is not None
        and mark.cluster == scene.cluster.cluster_id
        and is_outdated(mark, present)
    )


def _returns(scene: Scene, outdated: Collection[GroupReference]) -> Iterator[UpdateNode]:
    """A VM whose group is not listed is not known to be of the present generation."""
    present = scene.compute.groups.keys() - outdated
    for view in scene.world.views.values():
        if not view.node.reason or view.leaves:
            continue
        if gives(view.node.reason, ReasonCode.NEW_GENERATION) and (
            view.vm is None or view.vm.group in present
        ):
            yield from returned(view)


def _moves(scene: Scene, stale: dict[str, list[NodeView]]) -> Iterator[UpdateNode]:
    on_the_way = _on_the_way(scene)
    completing = {
        name
        for job in scene.slurm.jobs.values()
        if job.state is JobState.COMPLETING
        for name in job.nodes
    }
    for pool_id, views in stale.items():
        left = _most_on_the_way(views[0].pool) - on_the_way[pool_id]
        for view in filter(lambda view: _is_ours_to_move(view, scene), views):
            name = view.node.name
            is_drained = view.node.state.has(NodeFlag.DRAIN)
            if name in scene.world.holders or name in completing or _works(view.node.state):
                yield from _drain(view)
            elif still_holds(Expectation.FREE, view.node) and (is_drained or left > 0):
                # One that is drained serves nobody, so it need not wait for its turn.
                left -= 0 if is_drained else 1
                yield UpdateNode(
                    name, (NodeUpdate.POWER_DOWN,), Expectation.FREE, ReasonCode.NEW_GENERATION
                )


def _works(state: NodeState) -> bool:
    return state.base in (BaseState.ALLOCATED, BaseState.MIXED) or state.has(NodeFlag.COMPLETING)


def _drain(view: NodeView) -> Iterator[UpdateNode]:
    reason = view.node.reason
    if still_holds(Expectation.SERVING, view.node) and (not reason or is_ours(reason)):
        yield UpdateNode(
            view.node.name,
            (NodeUpdate.DRAIN,),
            Expectation.SERVING,
            ReasonCode.NEW_GENERATION,
        )


def _is_ours_to_move(view: NodeView, scene: Scene) -> bool:
    return (
        view.intent is Intent.REGISTERED
        and view.step is Step.LEAVE
        and view.vm_phase is VmPhase.RUNNING
        and view.node.name not in scene.world.ended
    )


def _most_on_the_way(pool: NodePool) -> int:
    return max(1, pool.max_node_count // _SHARE_ON_THE_WAY)


def _on_the_way(scene: Scene) -> Counter[str]:
    """How many nodes of each pool go, or come for no job."""
    return Counter(
        view.pool.pool_id
        for view in scene.world.views.values()
        if not view.leaves and _is_on_the_way(view)
    )


def _is_on_the_way(view: NodeView) -> bool:
    return (
        view.intent in _GOING
        or (view.intent is Intent.STARTING and view.owner is None)
        or (view.intent is Intent.REGISTERED and view.node.state.has(NodeFlag.POWER_DOWN))
    )
