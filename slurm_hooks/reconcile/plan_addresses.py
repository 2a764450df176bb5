"""Addresses of nodes that are off, so that slurmctld looks up no name that nobody knows.

slurmctld looks up the address of each node of a job that ends before its nodes came. Once a node
has slept its address is its own name, which on Compute Engine resolves only while there is a VM.
Debian's slurmctld (22.05.8, measured) tries each such name for ten seconds and answers nobody
meanwhile. So a node that is off gets an address that fails at once. Its slurmd overwrites that
when it registers; slurmctld forgets it when the node sleeps, and when it reads its configuration.

A job may get a node before that: such a node gets it while it has no VM.

Invariants: no node that may register gets it. One that registered and kept it all the same could
not be reached: it gets its name again, which resolves now. Where nodes that are up go by their
names, this slurmctld takes no addresses from registrations, and none is set.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.reconcile.actions import Expectation, SetNodeAddress
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.phases import Intent, VmPhase
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.views import NodeView
from slurm_hooks.slurm.client import UNREACHABLE_ADDRESS
from slurm_hooks.slurm.model import Node


def plan_addresses(scene: Scene) -> Iterator[SetNodeAddress]:
    """The nodes of ours whose addresses have to change."""
    by_name: list[NodeView] = []
    lost: list[Node] = []
    names_are_used = False
    for view in scene.world.views.values():
        node = view.node
        if node.address == node.name:
            by_name.append(view)
            names_are_used |= view.intent is Intent.REGISTERED
        elif node.address == UNREACHABLE_ADDRESS and still_holds(Expectation.LOST_ADDRESS, node):
            lost.append(node)
    for node in lost:
        yield SetNodeAddress(node.name, node.name, Expectation.LOST_ADDRESS, node.reason)
    if lost or names_are_used:
        return
    for view in by_name:
        node, expectation = view.node, _expected(view)
        if still_holds(expectation, node):
            yield SetNodeAddress(node.name, UNREACHABLE_ADDRESS, expectation, node.reason)


def _expected(view: NodeView) -> Expectation:
    if view.vm_phase is VmPhase.NONE:
        return Expectation.NAMED_ADDRESS_WITHOUT_VM
    return Expectation.NAMED_ADDRESS
