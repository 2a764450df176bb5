"""What is decided for a condemned node by the reboots that it has had, ours and other people's."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_hooks.health.model import Verdict
from slurm_hooks.health.reason import health_reason_of
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.actions import UpdateNode
from slurm_hooks.reconcile.repair_actions import RepairKind
from slurm_hooks.slurm.model import BaseState, Node, NodeFlag
from tests.unit.reconcile.builders import CLUSTER, N0, NOW, node
from tests.unit.reconcile.condemned import (
    GPUS_MISSING,
    LATER_BOOT,
    after,
    drained,
    events_of,
    happened,
    kinds,
    reason,
    recorded,
    repair_of,
    world_of,
)

BOOT_TIMEOUT = timedelta(seconds=CLUSTER.policy.boot_timeout_seconds)
REBOOTED = happened(EventKind.VM_REBOOT)


def test_same_finding_after_a_reboot_replaces_the_vm() -> None:
    again = drained(reason(Verdict.REBOOT, boot=LATER_BOOT))
    assert repair_of(world_of(again, past=[REBOOTED])) is RepairKind.REPLACE


def test_another_finding_after_a_reboot_has_a_reboot_of_its_own() -> None:
    other = drained(reason(Verdict.REBOOT, check="fabric", boot=LATER_BOOT))
    assert repair_of(world_of(other, past=[REBOOTED])) is RepairKind.REBOOT


def test_reboot_of_an_earlier_vm_of_the_name_says_nothing_of_this_one() -> None:
    earlier = replace(REBOOTED, instance_id="1")
    assert repair_of(world_of(drained(reason(Verdict.REBOOT)), past=[earlier])) is RepairKind.REBOOT


def reboot_asked_for(minutes_ago: float) -> tuple[Event, ...]:
    """The history of a node whose reboot was recorded, and perhaps never asked for."""
    plan = world_of(drained(reason(Verdict.REBOOT))).plan()
    time_utc = NOW - timedelta(minutes=minutes_ago)
    return tuple(replace(event, time_utc=time_utc) for event in events_of(plan))


def test_reboot_that_was_cut_short_is_asked_for_again() -> None:
    world = world_of(drained(reason(Verdict.REBOOT)), past=reboot_asked_for(1))
    assert repair_of(world) is RepairKind.REBOOT
    assert recorded(world.plan()) == []


def test_reboot_that_never_comes_about_ends_in_a_replacement() -> None:
    late = BOOT_TIMEOUT / timedelta(minutes=1) + 1
    world = world_of(drained(reason(Verdict.REBOOT)), past=reboot_asked_for(late))
    assert repair_of(world) is RepairKind.REPLACE


def test_reboot_of_an_unknown_boot_is_never_repeated() -> None:
    text = reason(Verdict.REBOOT, boot="")
    past = events_of(world_of(drained(text)).plan())
    assert repair_of(world_of(drained(text), past=past)) is RepairKind.REPLACE


ISSUED = " : reboot issued"
BACK_LATE = BOOT_TIMEOUT / timedelta(minutes=1) + 1


def back(text: str, minutes_ago: float, *flags: NodeFlag) -> Node:
    """A node that came back of its reboot with the drain and the reason that it had."""
    return replace(
        drained(text, *flags, given=NOW - timedelta(days=1)),
        boot_time_utc=NOW - timedelta(minutes=minutes_ago),
    )


@pytest.mark.parametrize("words", ["", ISSUED])
def test_node_that_is_back_of_its_reboot_stays_drained_until_a_health_run_has_spoken(
    words: str,
) -> None:
    waiting = back(f"{reason(Verdict.REBOOT)}{words}", 1)
    past = reboot_asked_for(5)
    assert repair_of(world_of(waiting, past=past)) is None
    well = replace(waiting, reason=reason(Verdict.OK, boot=LATER_BOOT))
    assert repair_of(world_of(well, past=past)) is RepairKind.RETURN
    ill = replace(waiting, reason=reason(Verdict.REBOOT, boot=LATER_BOOT))
    assert repair_of(world_of(ill, past=past)) is RepairKind.REPLACE


def test_condemnation_is_not_seen_again_when_slurm_stamps_it_anew_for_the_reboot() -> None:
    past = reboot_asked_for(5)
    waiting = back(f"{reason(Verdict.REBOOT)}{ISSUED}", 1)
    assert recorded(world_of(waiting, past=past).plan()) == []


def test_node_of_which_no_health_run_speaks_after_its_reboot_is_replaced() -> None:
    waiting = back(f"{reason(Verdict.REBOOT)}{ISSUED}", BACK_LATE)
    past = reboot_asked_for(BACK_LATE + 1)
    assert repair_of(world_of(waiting, past=past)) is RepairKind.REPLACE
    again = replace(waiting, boot_time_utc=NOW - timedelta(minutes=1))
    assert repair_of(world_of(again, past=past)) is None


def test_burn_in_is_given_its_time_where_vms_boot_fast() -> None:
    world = world_of(
        back(f"{reason(Verdict.REBOOT)}{ISSUED}", 29),
        past=reboot_asked_for(30),
        cluster=replace(CLUSTER, policy=replace(CLUSTER.policy, boot_timeout_seconds=60)),
    )
    assert repair_of(world) is None


def test_node_that_slurm_has_told_to_reboot_is_not_told_again_when_its_boot_is_unknown() -> None:
    waiting = drained(f"{reason(Verdict.REBOOT)}{ISSUED}")
    assert repair_of(world_of(waiting, past=reboot_asked_for(1))) is None
    assert repair_of(world_of(waiting, past=reboot_asked_for(BACK_LATE))) is RepairKind.REPLACE


REBOOTING = [
    drained(f"{reason(Verdict.REBOOT)} : reboot issued", NodeFlag.REBOOT_ISSUED, base=base)
    for base in (BaseState.IDLE, BaseState.DOWN)
]


@pytest.mark.parametrize("rebooting", REBOOTING)
def test_reboot_that_does_not_come_back_in_time_ends_in_a_replacement(rebooting: Node) -> None:
    late = BOOT_TIMEOUT / timedelta(minutes=1)
    assert repair_of(world_of(rebooting, past=reboot_asked_for(late))) is None
    assert repair_of(world_of(rebooting, past=reboot_asked_for(late + 1))) is RepairKind.REPLACE


@pytest.mark.parametrize("rebooting", REBOOTING)
def test_reboot_by_a_person_is_left_alone_for_ever(rebooting: Node) -> None:
    world = world_of(rebooting)
    assert repair_of(world) is None
    assert recorded(world.plan()) == []


def test_reboot_that_slurm_gave_up_is_seen_as_ours() -> None:
    text = f"{reason(Verdict.REBOOT)} : reboot issued : reboot timed out"
    found = health_reason_of(text)
    assert found is not None
    assert found.verdict is Verdict.REBOOT


def test_replacement_of_a_node_that_slurm_gave_up_is_recorded_as_a_repair() -> None:
    text = f"{reason(Verdict.REBOOT)} : reboot issued : reboot timed out"
    given_up = node(N0, NodeFlag.NOT_RESPONDING, base=BaseState.DOWN, reason=text)
    world = world_of(given_up)
    assert kinds(recorded(world.plan())) == [EventKind.VM_SLURM_POWER_DOWN, EventKind.VM_DELETION]
    assert len(world.actions(UpdateNode)) == 1
    assert repair_of(world) is None


def test_node_that_came_back_of_our_reboot_is_recorded_as_returned_once() -> None:
    back = replace(node(N0), boot_time_utc=NOW - timedelta(minutes=50))
    world = world_of(back, past=[REBOOTED])
    (event,) = recorded(world.plan())
    assert event.kind is EventKind.VM_RETURNED
    world.repairs = after(world.plan(), [REBOOTED])
    assert recorded(world.plan()) == []


def test_node_that_has_not_booted_since_our_reboot_is_not_back() -> None:
    for booted in (NOW - timedelta(minutes=70), None):
        waiting = replace(node(N0), boot_time_utc=booted)
        assert recorded(world_of(waiting, past=[REBOOTED]).plan()) == []


@pytest.mark.parametrize("check", ["inventory", "xid"])
@pytest.mark.parametrize("before", ["", f"{reason(Verdict.REBOOT)} : reboot issued : "])
def test_node_whose_gpus_a_reboot_did_not_bring_back_is_replaced(check: str, before: str) -> None:
    short = drained(f"{before}{GPUS_MISSING}", NodeFlag.INVALID_REG)
    past = [happened(EventKind.VM_REBOOT, check=check)]
    assert repair_of(world_of(short, past=past)) is RepairKind.REPLACE


def test_node_whose_gpus_are_all_back_after_a_reboot_waits_for_a_health_run() -> None:
    past = [happened(EventKind.VM_REBOOT, check="inventory", minutes_ago=5)]
    waiting = back(f"{GPUS_MISSING}{ISSUED}", 1)
    assert repair_of(world_of(waiting, past=past)) is None
    short = back(f"{GPUS_MISSING}{ISSUED}", 1, NodeFlag.INVALID_REG)
    assert repair_of(world_of(short, past=past)) is RepairKind.REPLACE


def test_finding_on_an_unknown_boot_is_about_the_one_in_which_it_was_told() -> None:
    past = [happened(EventKind.VM_REBOOT, minutes_ago=5)]
    text = reason(Verdict.REBOOT, boot="")
    assert repair_of(world_of(back(f"{text}{ISSUED}", 3), past=past)) is None
    told_since = replace(back(text, 3), reason_time_utc=NOW - timedelta(minutes=2))
    assert repair_of(world_of(told_since, past=past)) is RepairKind.REPLACE
