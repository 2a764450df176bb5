"""Every state of a node, a request, a VM and a job at once: an answer for each, harm for none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from slurm_hooks.compute.model import InstanceStatus, RequestState
from slurm_hooks.reconcile.actions import (
    Action,
    CancelRequest,
    DeleteInstance,
    DeleteRequest,
    InsertRequest,
    UpdateNode,
)
from slurm_hooks.reconcile.comments import node_reason
from slurm_hooks.reconcile.repair_actions import RepairNode
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.unit.reconcile.every_state import (
    A_PERSONS_REASON,
    HEALTH_REASONS,
    REASONS,
    Decided,
    Version,
    decided,
    node_states,
    surroundings,
)

pytestmark = pytest.mark.slow

FEW_VMS = (
    None,
    InstanceStatus.RUNNING,
    InstanceStatus.TERMINATED,
    InstanceStatus.UNKNOWN,
)
FEW_JOBS = (None, JobState.CONFIGURING, JobState.RUNNING, JobState.COMPLETED)
ALL_VMS = (None, *InstanceStatus)
ALL_REQUESTS = (None, *RequestState)
ALL_JOBS = (None, *JobState)


def harmful(result: Decided, *kinds: type[Action]) -> list[Action]:
    """Actions of these kinds, without drains that only repeat what a person has said."""
    return [action for action in result.of(*kinds) if not repeats_a_person(action)]


def repeats_a_person(action: Action) -> bool:
    return (
        isinstance(action, UpdateNode)
        and action.updates == (NodeUpdate.DRAIN,)
        and node_reason(action).startswith(A_PERSONS_REASON)
    )


def is_drain(action: Action) -> bool:
    return isinstance(action, UpdateNode) and action.updates == (NodeUpdate.DRAIN,)


def is_return(action: Action) -> bool:
    return isinstance(action, UpdateNode) and action.updates == (NodeUpdate.RESUME,)


def has_an_answer(result: Decided) -> bool:
    return result.step is not None


def spares_the_working(result: Decided) -> bool:
    """A node that runs or completes a job keeps it while its VM lives; no drain ends it there."""
    touched = harmful(result, UpdateNode, RepairNode, DeleteInstance)
    return (
        all(is_drain(action) or is_return(action) for action in touched)
        or not result.case.around.vm_lives
        or not result.case.works
    )


def leaves_unknown_words_alone(result: Decided) -> bool:
    return not (
        result.case.state.unknown
        and result.of(UpdateNode, RepairNode, DeleteInstance, InsertRequest, CancelRequest)
    )


def leaves_unknown_vms_alone(result: Decided) -> bool:
    odd = result.case.around.vm is InstanceStatus.UNKNOWN
    return not (odd and harmful(result, UpdateNode, RepairNode, DeleteInstance, InsertRequest))


def leaves_unknown_requests_alone(result: Decided) -> bool:
    odd = result.case.around.request is RequestState.UNKNOWN
    return not (odd and result.of(CancelRequest, DeleteRequest, InsertRequest))


def asks_only_for_free_names(result: Decided) -> bool:
    return result.case.around.vm is None or not result.of(InsertRequest)


def powers_up_only_what_is_off(result: Decided) -> bool:
    ups = [
        action
        for action in result.actions
        if isinstance(action, UpdateNode) and NodeUpdate.POWER_UP in action.updates
    ]
    return not ups or result.case.is_off


def gives_a_young_vm_time_to_boot(result: Decided) -> bool:
    around = result.case.around
    boots = (
        around.job is JobState.CONFIGURING
        and around.vm in (InstanceStatus.STAGING, InstanceStatus.RUNNING)
        and not around.is_old
    )
    touched = boots and harmful(result, UpdateNode, RepairNode, DeleteInstance)
    return not touched or not result.case.is_starting


def leaves_what_a_person_took_out_alone(result: Decided) -> bool:
    """Only jobs below which the VM is gone are given back, and what is DOWN is drained too."""
    touched = harmful(result, UpdateNode, RepairNode, DeleteInstance, InsertRequest)
    if not touched or not result.case.is_out_of_service:
        return True
    holds_jobs = result.case.works or result.case.state.has(NodeFlag.COMPLETING)
    return holds_jobs and not result.case.around.vm_lives


def keeps_what_a_person_said(result: Decided) -> bool:
    """Whatever is changed about a node that a person took out of service, its reason remains."""
    case = result.case
    reasons = [node_reason(update) for update in result.of(UpdateNode)]  # type: ignore[arg-type]
    if all(A_PERSONS_REASON in reason for reason in reasons) or case.reason != A_PERSONS_REASON:
        return True
    return not case.is_kept_off


def repairs_only_what_is_condemned_and_free(result: Decided) -> bool:
    case = result.case
    if not result.of(RepairNode):
        return True
    is_ours = case.reason in HEALTH_REASONS and case.state.has(NodeFlag.DRAIN)
    lives = case.around.vm is InstanceStatus.RUNNING
    return is_ours and not case.works and (case.is_off or (lives and not case.has_power_flag))


def repairs_alone(result: Decided) -> bool:
    """No other rule wants the node at the same time."""
    return not (result.of(RepairNode) and result.of(UpdateNode, DeleteInstance, InsertRequest))


def never_undrains(result: Decided) -> bool:
    return not any(
        isinstance(action, UpdateNode)
        and {NodeUpdate.IDLE, NodeUpdate.RESUME, NodeUpdate.UNDRAIN} & set(action.updates)
        for action in result.actions
    )


RULES: tuple[Callable[[Decided], bool], ...] = (
    has_an_answer,
    spares_the_working,
    leaves_unknown_words_alone,
    leaves_unknown_vms_alone,
    leaves_unknown_requests_alone,
    asks_only_for_free_names,
    powers_up_only_what_is_off,
    gives_a_young_vm_time_to_boot,
    leaves_what_a_person_took_out_alone,
    keeps_what_a_person_said,
    repairs_only_what_is_condemned_and_free,
    repairs_alone,
    never_undrains,
)


def broken_rules(results: Iterator[Decided], least: int) -> dict[str, Decided]:
    """One example for each rule that does not hold over at least so many cases."""
    broken: dict[str, Decided] = {}
    count = 0
    for result in results:
        count += 1
        for rule in RULES:
            if not rule(result):
                broken.setdefault(rule.__name__, result)
    assert count >= least
    return broken


def test_every_power_state_in_its_surroundings() -> None:
    around = surroundings(FEW_VMS, (None, RequestState.ACCEPTED), FEW_JOBS)
    states = node_states(Version.V22_05, most_power_flags=5, most_side_flags=0)
    assert broken_rules(decided(states, around), least=25_000) == {}


def test_every_state_of_a_request_and_vm() -> None:
    around = surroundings(ALL_VMS, ALL_REQUESTS, FEW_JOBS)
    states = node_states(Version.V24_11, most_power_flags=0, most_side_flags=0)
    assert broken_rules(decided(states, around), least=10_000) == {}


def test_every_state_of_a_request_vm_and_job() -> None:
    around = surroundings(ALL_VMS, ALL_REQUESTS, ALL_JOBS)
    states = node_states(Version.V24_11, most_power_flags=1, most_side_flags=0)
    assert broken_rules(decided(states, around), least=200_000) == {}


@pytest.mark.parametrize("version", Version)
def test_every_flag_of_a_version(version: Version) -> None:
    around = surroundings((None, InstanceStatus.RUNNING), (None,), (None, JobState.RUNNING))
    states = node_states(version, most_power_flags=1, most_side_flags=1)
    assert broken_rules(decided(states, around), least=7_000) == {}


def test_every_flag_with_every_reason() -> None:
    around = surroundings((None, InstanceStatus.RUNNING), (None,), (None, JobState.RUNNING))
    states = node_states(Version.V24_11, most_power_flags=1, most_side_flags=1)
    assert broken_rules(decided(states, around, REASONS), least=30_000) == {}


def test_every_power_state_with_every_request_and_vm() -> None:
    around = surroundings(ALL_VMS, ALL_REQUESTS, (*FEW_JOBS, JobState.COMPLETING))
    states = node_states(Version.V24_11, most_power_flags=5, most_side_flags=0)
    assert broken_rules(decided(states, around), least=400_000) == {}


@pytest.mark.parametrize("version", Version)
def test_every_pair_of_flags_of_a_version(version: Version) -> None:
    around = surroundings((None, InstanceStatus.RUNNING), (None,), (None, JobState.RUNNING))
    states = node_states(version, most_power_flags=2, most_side_flags=2)
    assert broken_rules(decided(states, around), least=100_000) == {}


@pytest.mark.parametrize("version", [Version.V22_05, Version.LATER])
def test_every_flag_of_a_condemned_node(version: Version) -> None:
    around = surroundings((None, InstanceStatus.RUNNING), (None,), (None, JobState.RUNNING))
    states = node_states(version, most_power_flags=1, most_side_flags=2)
    drained = [state for state in states if state.has(NodeFlag.DRAIN)]
    results = list(decided(drained, around, HEALTH_REASONS))
    assert broken_rules(iter(results), least=15_000) == {}
    assert sum(bool(result.of(RepairNode)) for result in results) > 100
