"""A node that was given back while it was off: Slurm must be freed of its own trap."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.reconcile.actions import UpdateNode
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag
from slurm_hooks.slurm.versions import SlurmVersion
from tests.fakes.slurm import SLURM_22_05, SLURM_24_11, FakeSlurm
from tests.unit.reconcile.builders import N0, World, example_cluster, node
from tests.unit.reconcile.life import Life

TRAP = (NodeFlag.POWERED_DOWN, NodeFlag.NOT_RESPONDING)


@pytest.mark.parametrize("min_node_count", [0, 1])
@pytest.mark.parametrize("version", [SLURM_22_05, SLURM_24_11])
@pytest.mark.parametrize("back", [NodeUpdate.RESUME, NodeUpdate.UNDRAIN])
def test_node_given_back_while_off_leaves_the_trap(
    tmp_path: Path, version: SlurmVersion, back: NodeUpdate, min_node_count: int
) -> None:
    """Hundreds of nodes `idle~*` were never given to a job again, without any reason shown."""
    slurm = FakeSlurm(version=version)
    life = Life(tmp_path, example_cluster(min_node_count=min_node_count), slurm)
    life.rest()
    name = "flexvm-a3u-3"
    for update in (NodeUpdate.DRAIN, back):
        life.person_updates(name, update, "fan is loud")
    assert life.slurm.nodes[name].state.has(NodeFlag.NOT_RESPONDING)
    life.rest()
    assert life.slurm.nodes[name].state.has(NodeFlag.POWERED_DOWN)
    assert not life.slurm.nodes[name].state.has(NodeFlag.NOT_RESPONDING)


@pytest.mark.parametrize(
    "spared",
    [
        node(N0, *TRAP, NodeFlag.DRAIN, reason="fan is loud"),
        node(N0, *TRAP, NodeFlag.POWER_DOWN),
        node(N0, *TRAP, NodeFlag.POWER_UP),
        node(N0, *TRAP, base=BaseState.ALLOCATED),
    ],
)
def test_node_that_is_not_free_or_leaves_the_trap_already_is_spared(spared: Node) -> None:
    assert World([spared]).actions(UpdateNode) == []
