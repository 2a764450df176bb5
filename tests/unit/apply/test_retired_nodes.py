"""A node of a deleted cluster ends off and drained, whatever it did before."""

from __future__ import annotations

import pytest

from slurm_hooks.apply.retired_nodes import (
    DELETED_REASON,
    Retirement,
    retirement_of,
    to_give_back,
)
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag, NodeState

F = NodeFlag


def node(base: BaseState, *flags: NodeFlag, reason: str = "", unknown: str = "") -> Node:
    words = frozenset({unknown} - {""})
    return Node("flexvm-a3u-0", NodeState(base, frozenset({F.CLOUD, *flags}), words), reason=reason)


@pytest.mark.parametrize(
    ("found", "has_job", "force", "step"),
    [
        (node(BaseState.IDLE, F.POWERED_DOWN), False, False, Retirement.DRAIN),
        (node(BaseState.IDLE, F.POWERED_DOWN, F.DRAIN), False, False, Retirement.NOTHING),
        (node(BaseState.DOWN, F.POWERED_DOWN, F.DRAIN), False, False, Retirement.NOTHING),
        (node(BaseState.ALLOCATED, F.POWERED_DOWN), True, False, Retirement.BUSY),
        (node(BaseState.ALLOCATED, F.POWERED_DOWN), True, True, Retirement.DRAIN),
        (node(BaseState.ALLOCATED, F.POWERED_DOWN, F.DRAIN), True, True, Retirement.FORCE),
        (node(BaseState.IDLE), False, False, Retirement.POWER_DOWN),
        (node(BaseState.IDLE, F.DRAIN), False, False, Retirement.POWER_DOWN),
        (node(BaseState.DOWN, F.NOT_RESPONDING), False, False, Retirement.POWER_DOWN),
        (node(BaseState.MIXED), True, False, Retirement.BUSY),
        (node(BaseState.ALLOCATED), True, True, Retirement.FORCE),
        (node(BaseState.IDLE, F.POWER_DOWN), False, True, Retirement.WAIT),
        (node(BaseState.IDLE, F.COMPLETING), False, False, Retirement.BUSY),
        (node(BaseState.IDLE, F.COMPLETING, F.POWER_DOWN), False, True, Retirement.FORCE),
        (node(BaseState.IDLE, F.POWERING_DOWN), False, False, Retirement.DRAIN),
        (node(BaseState.IDLE, F.POWERING_DOWN, F.DRAIN), False, False, Retirement.WAIT),
        (node(BaseState.ALLOCATED, F.POWERING_UP), True, False, Retirement.BUSY),
        (node(BaseState.ALLOCATED, F.POWERING_UP), True, True, Retirement.FORCE),
        (node(BaseState.IDLE, F.POWERING_UP), False, False, Retirement.FORCE),
        (node(BaseState.IDLE, F.POWERED_DOWN, unknown="NEW"), False, True, Retirement.WAIT),
    ],
)
def test_next_step_of_a_node(found: Node, has_job: bool, force: bool, step: Retirement) -> None:
    assert retirement_of(found, has_job=has_job, force=force) is step


def test_only_nodes_that_the_deletion_alone_keeps_off_are_given_back() -> None:
    off = (F.POWERED_DOWN, F.DRAIN)
    assert to_give_back([node(BaseState.IDLE, *off, reason=DELETED_REASON)], "flexvm") == (
        "flexvm-a3u-0",
    )
    assert to_give_back([node(BaseState.IDLE, *off, reason="fan is loud")], "flexvm") == ()
    assert to_give_back([node(BaseState.IDLE, *off, reason=DELETED_REASON)], "other") == ()
    assert to_give_back([node(BaseState.IDLE, F.DRAIN, reason=DELETED_REASON)], "flexvm") == ()
