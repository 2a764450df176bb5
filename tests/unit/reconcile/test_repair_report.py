"""What people are told about condemned nodes and their pools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from slurm_hooks.health.model import Verdict
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.repair_report import NodeStanding, node_standings, pool_standings
from slurm_hooks.reconcile.repairs import log_of
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag
from tests.unit.reconcile.builders import CLUSTER, N0, NOW, node
from tests.unit.reconcile.condemned import drained, happened, reason

STOP = happened(EventKind.REPAIRS_STOPPED, "", key="stop", message="many")


def standing(one: Node, past: Iterable[Event] = ()) -> NodeStanding:
    (found,) = node_standings(CLUSTER, [one], log_of(past), NOW)
    return found


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (drained(reason()), "at the next pass"),
        (drained(reason(Verdict.OK)), "serves again"),
        (drained(reason(Verdict.MANUAL)), "only a person"),
        (drained(reason(), base=BaseState.ALLOCATED), "when nothing runs there"),
        (drained(f"{reason()} : reboot issued", NodeFlag.REBOOT_ISSUED), "is rebooted"),
        (drained(f"{reason()} : reboot issued"), "when a health run has passed since its reboot"),
    ],
)
def test_next_step_of_a_condemned_node_is_told(one: Node, told: str) -> None:
    found = standing(one)
    assert told in found.next_step
    assert (found.node, found.pool, found.check) == (N0, "a3u", "gpu_lost")
    assert found.since_utc == one.reason_time_utc


@pytest.mark.parametrize("text", ["Kill task failed", "Low RealMemory (reported:1 < 100.00% of 2)"])
def test_node_that_slurm_drained_itself_is_told_with_slurms_reason(text: str) -> None:
    found = standing(drained(text))
    assert (found.verdict, found.detail) == ("", text)
    assert "stays drained" in found.next_step


def test_node_that_slurm_drained_since_gpus_are_missing_is_told_as_condemned() -> None:
    found = standing(drained("gres/gpu count reported lower than configured (7 < 8)"))
    assert (found.verdict, found.check) == ("REBOOT", "inventory")


def test_stop_of_the_pool_is_told_of_its_nodes() -> None:
    assert "stopped" in standing(drained(reason()), [STOP]).next_step
    assert [(p.pool, p.stopped) for p in pool_standings(CLUSTER, log_of([STOP]))] == [("a3u", STOP)]
    assert pool_standings(CLUSTER, log_of([]))[0].stopped is None


def test_repaired_node_that_serves_is_told_with_its_repairs() -> None:
    found = standing(node(N0), [happened(EventKind.VM_REBOOT)])
    assert (found.verdict, found.repairs) == ("", 1)


@pytest.mark.parametrize(
    "one", [node(N0), drained("fan is loud"), replace(node(N0), reason=reason()), node("other-0")]
)
def test_other_nodes_are_not_told(one: Node) -> None:
    assert list(node_standings(CLUSTER, [one], log_of([]), NOW)) == []
