"""A reported node in every state that Slurm may write: no harm beyond what a person ordered."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_hooks.compute.model import InstanceStatus, Operation, Scope, ScopeKind
from slurm_hooks.history.report import FaultAction, FaultReport, ReportState
from slurm_hooks.reconcile.actions import Action, DeleteInstance, UpdateNode
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.repair_actions import RepairNode
from slurm_hooks.reconcile.report_actions import OpenReport
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag, NodeState
from tests.unit.reconcile.builders import N0, NOW, World, example_cluster, long_seen, vm
from tests.unit.reconcile.every_state import CHANGING, Version, node_states

pytestmark = pytest.mark.slow
"""Thousands of decisions."""

VM = vm(N0)
A_MINUTE_AGO = NOW - timedelta(minutes=1)
DELETED = FaultReport(
    N0,
    "a3u",
    VM.zone,
    VM.instance_id,
    FaultAction.DELETE,
    A_MINUTE_AGO,
    A_MINUTE_AGO,
    state=ReportState.REPLACING,
    number=1,
)
AT_THE_HOST = replace(DELETED, action=FaultAction.REPORT_HOST, state=ReportState.REPORTED)
RUNS = Operation("operation-1", Scope(ScopeKind.ZONE, VM.zone))
STATES = tuple(node_states(Version.LATER, most_power_flags=1, most_side_flags=1))
STATUSES = (InstanceStatus.RUNNING, InstanceStatus.REPAIRING, InstanceStatus.STOPPING)
SEEN_FOR_LONG = long_seen(missing=[N0], surplus=[N0])


def actions_for(
    state: NodeState, report: FaultReport, status: InstanceStatus, static: int
) -> list[Action]:
    """What a pass does for the node and its VM."""
    cluster = example_cluster(min_node_count=static)
    world = World([Node(N0, state)], vms=[vm(N0, status)], cluster=cluster, memory=SEEN_FOR_LONG)
    snapshot = replace(world.snapshot(), report=OpenReport(report, RUNS))
    return [
        action
        for action in decide(snapshot, cluster, NOW).actions
        if isinstance(action, DeleteInstance | UpdateNode | RepairNode)
    ]


@pytest.mark.parametrize("status", STATUSES)
def test_vm_whose_host_is_reported_stays_and_its_node_is_set_aside_at_most(
    status: InstanceStatus,
) -> None:
    for state in STATES:
        for action in actions_for(state, AT_THE_HOST, status, static=0):
            assert isinstance(action, UpdateNode), state
            assert action.updates == (NodeUpdate.DOWN, NodeUpdate.DRAIN), state
            assert not state.unknown and not state.has(*CHANGING), state


@pytest.mark.parametrize("static", [0, 1])
def test_node_with_a_slurmd_goes_by_way_of_slurm_and_one_that_is_not_understood_stays(
    static: int,
) -> None:
    for state in STATES:
        found = actions_for(state, DELETED, InstanceStatus.RUNNING, static)
        deletions = [action for action in found if isinstance(action, DeleteInstance)]
        is_odd = state.unknown or state.base in (
            BaseState.UNKNOWN,
            BaseState.FUTURE,
            BaseState.ERROR,
        )
        if is_odd:
            assert found == [], state
        elif not state.has(*CHANGING):
            assert deletions == [], state
            losses = [a for a in found if isinstance(a, UpdateNode)]
            is_going = state.has(NodeFlag.POWER_DOWN, NodeFlag.POWER_UP)
            wanted = [] if is_going else [(NodeUpdate.DOWN, NodeUpdate.POWER_DOWN)]
            assert [a.updates for a in losses] == wanted, state
