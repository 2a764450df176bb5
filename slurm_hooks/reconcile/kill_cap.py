"""The cap on kills: a view in which very much is wrong at once is more likely wrong than true.

Invariant: a pass takes down no node for a missing VM, or reaps no VM, when that would hit more
than the larger of a number and a share of the nodes that are up; not some of them, none. It goes
on by itself once fewer are in question, or as many as an operator has confirmed.

The same holds for nodes that only Slurm calls dead, since their slurmd is silent, while their
VMs run: when many are, the network is more likely ill than they.

Not in question is what the other system tells, too. A node that slurmd does not answer from is
as dead in Slurm as its VM in Compute Engine, and Slurm would take it down itself; so when VMs
really vanish by the hundred, this lasts until Slurm has noticed. And a VM that outlived its
node's POWERING_DOWN, which we saw, is one that Slurm itself gave back: a backlog of deletions
after an outage is no sign of a wrong view. A VM whose end of life has come is missing by plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slurm_hooks.reconcile.actions import (
    Action,
    DeleteInstance,
    KeepConsole,
    Notice,
    NoticeKind,
    UpdateNode,
)
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.views import NodeView
from slurm_hooks.slurm.model import BaseState, NodeFlag, SlurmSnapshot

NODES_IN_QUESTION = "nodes whose VMs are missing"
SILENT_IN_QUESTION = "nodes whose VMs run and whose slurmd does not answer"
VMS_IN_QUESTION = "VMs that nothing in Slurm needs"

_POWER_FLAGS = (NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP)


@dataclass(frozen=True, slots=True)
class HeldKills:
    """Actions of one sort that a pass does not carry out, and what it says about that."""

    actions: tuple[Action, ...]
    notice: Notice
    count: int


def held_kills(
    scene: Scene, actions: Iterable[Action], confirmed_kills: int
) -> tuple[HeldKills, ...]:
    """What a pass must not do of its actions. `confirmed_kills` is how many an operator allows."""
    up = sum(not view.node.state.has(*_POWER_FLAGS) for view in scene.world.views.values())
    limit = max(
        scene.policy.most_kills_a_pass,
        up * scene.policy.most_kills_percent // 100,
        confirmed_kills,
    )
    planned = tuple(actions)
    missing = {
        name
        for name, view in scene.world.views.items()
        if _is_in_question(view) and name not in scene.world.ended
    }
    losses = [a for a in planned if isinstance(a, UpdateNode) and a.node in missing]
    silent = {name for name, view in scene.world.views.items() if view.step is Step.RECYCLE}
    recycled = [a for a in planned if isinstance(a, UpdateNode | KeepConsole) and a.node in silent]
    reaps = [a for a in planned if isinstance(a, DeleteInstance) and _is_reaping(a, scene)]
    return (
        *_held(losses, NODES_IN_QUESTION, len(missing), limit),
        *_held(recycled, SILENT_IN_QUESTION, len(silent), limit),
        *_held(reaps, VMS_IN_QUESTION, len(reaps), limit),
    )


def suspended_nodes(slurm: SlurmSnapshot, before: frozenset[str]) -> frozenset[str]:
    """The nodes that were seen POWERING_DOWN and are off since."""
    return frozenset(
        name
        for name, node in slurm.nodes.items()
        if node.state.has(NodeFlag.POWERING_DOWN)
        or (
            name in before
            and node.state.has(NodeFlag.POWERED_DOWN)
            and not node.state.has(NodeFlag.POWERING_UP)
        )
    )


def _held(actions: Iterable[Action], subject: str, count: int, limit: int) -> Iterator[HeldKills]:
    held = tuple(actions)
    if held and count > limit:
        detail = (
            f"{count}, at most {limit} in a pass; if it is true: slurm-hooks sync --force-kills"
        )
        yield HeldKills(held, Notice(NoticeKind.KILLS_HELD, subject, detail), count)


def _is_in_question(view: NodeView) -> bool:
    """Whether only Compute Engine says that the node is lost, by not naming its VM."""
    if view.step not in (Step.LOSE_NODE, Step.LOSE_JOBS) or view.vm_phase is not VmPhase.NONE:
        return False
    if view.intent is Intent.REBOOTING:
        return True  # DOWN and silent by a person's order, whatever became of its VM
    state = view.node.state
    return not state.has(NodeFlag.NOT_RESPONDING) and state.base is not BaseState.DOWN


def _is_reaping(action: DeleteInstance, scene: Scene) -> bool:
    """Whether only our view of Slurm says that a VM is of no use."""
    view = scene.world.views.get(action.name)
    if view is None:
        return True
    return view.step is Step.DELETE_SURPLUS_VM and action.name not in scene.memory.suspended
