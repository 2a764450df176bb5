"""Pools that fail in a row: counted, held, probed again, and given back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.reconcile.act import Actor
from slurm_hooks.reconcile.pool_record import hold_end, read_record
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.slurm.client import NodeUpdate, SlurmUnavailable
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from tests.fakes.slurm import SLURM_22_05, SLURM_24_11, SLURM_26_05, FakeSlurm
from tests.unit.reconcile.builders import CLUSTER, N0, N1, example_cluster
from tests.unit.reconcile.scenario import Scenario

HOLD_SECONDS = 300
POLICY = Policy(hold_after_failures=3, hold_seconds=HOLD_SECONDS, longest_hold_seconds=1000)
OTHER = dataclasses.replace(CLUSTER.pools["a3u"], pool_id="spare")
TWO_POOLS = dataclasses.replace(
    CLUSTER,
    pools={**CLUSTER.pools, "spare": OTHER},
    partitions={"a3u": ("a3u", "spare")},
    policy=POLICY,
)
A3U = [f"flexvm-a3u-{index}" for index in range(4)]
SPARE = [f"flexvm-spare-{index}" for index in range(4)]


@pytest.fixture(params=[SLURM_22_05, SLURM_24_11, SLURM_26_05], ids=str)
def scenario(tmp_path: Path, request: pytest.FixtureRequest) -> Scenario:
    started = Scenario(tmp_path, TWO_POOLS, FakeSlurm(version=request.param))
    started.slurm.add_nodes(SPARE, partition="a3u")
    return started


def advance(scenario: Scenario, seconds: float) -> None:
    scenario.now += timedelta(seconds=seconds)
    scenario.compute.state.now_utc = scenario.now
    scenario.slurm.now_utc = scenario.now


def rest(scenario: Scenario) -> None:
    """Passes until nothing is to be done, and nodes that were going off are off."""
    scenario.settle()
    going = [n for n, x in scenario.slurm.nodes.items() if x.state.has(NodeFlag.POWERING_DOWN)]
    scenario.slurm.slept(going)
    scenario.settle()


def fail_request(scenario: Scenario, node: str = N0, code: str = "QUOTA_EXCEEDED") -> None:
    """A job asks for a node, and its request ends FAILED. The job is cancelled then."""
    job_id = scenario.slurm.submit([node])
    scenario.settle()
    for reference in scenario.waiting():
        scenario.compute.state.fail(reference, code, "GPUS in us-central1")
    rest(scenario)
    scenario.slurm.cancel(job_id)
    advance(scenario, 1)


def refuse_request(scenario: Scenario, node: str = N0) -> None:
    """A job asks for a node, and the call is refused. The job is cancelled then."""
    job_id = scenario.slurm.submit([node])
    error = ComputeError(ErrorKind.PERMISSION, "forbidden", "grant compute.x", 403)
    scenario.compute.fail_next(error, "insert_resize_request")
    rest(scenario)
    scenario.slurm.cancel(job_id)
    advance(scenario, 31)


def fail_boot(scenario: Scenario, node: str = N0) -> None:
    """A job gets a VM whose slurmd never registers; it is replaced, and the job cancelled."""
    job_id = scenario.slurm.submit([node])
    scenario.settle()
    scenario.grant_all()
    scenario.compute.state.run_all()
    advance(scenario, POLICY.boot_timeout_seconds + 1)
    scenario.run()
    scenario.slurm.cancel(job_id)
    for _ in range(4):
        scenario.run()
        scenario.compute.state.step()
        scenario.slurm.pass_power_thread()
    rest(scenario)
    advance(scenario, 1)


def hold(scenario: Scenario) -> None:
    for _ in range(POLICY.hold_after_failures):
        fail_request(scenario)


def drained(scenario: Scenario) -> list[str]:
    return [n for n, node in scenario.slurm.nodes.items() if node.state.has(NodeFlag.DRAIN)]


def failures_of(scenario: Scenario) -> int:
    """How many failures in a row Slurm's nodes tell of."""
    records = [read_record(node.comment) for node in scenario.slurm.nodes.values()]
    return sum(record.failures for record in records if record is not None)


def succeed(scenario: Scenario, node: str) -> None:
    scenario.slurm.submit([node])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()


@pytest.mark.parametrize("fail", [fail_request, refuse_request, fail_boot])
def test_pool_is_held_after_so_many_failures_in_a_row(
    scenario: Scenario, fail: Callable[[Scenario], None]
) -> None:
    for count in range(POLICY.hold_after_failures):
        assert (drained(scenario), failures_of(scenario)) == ([], count)
        fail(scenario)
    assert drained(scenario) == A3U


def test_reason_of_a_held_node_says_until_when_and_why(scenario: Scenario) -> None:
    hold(scenario)
    text = scenario.slurm.nodes[N1].reason
    end = scenario.now + timedelta(seconds=HOLD_SECONDS - 1)
    assert text == (
        f"slurm-hooks: pool held until {end:%Y-%m-%dT%H:%M:%SZ} after 3 failures,"
        " the last at 2026-01-05T12:00:02Z: QUOTA_EXCEEDED: GPUS in us-central1"
    )
    assert hold_end(text) == end


def test_other_pool_of_the_partition_takes_the_job(scenario: Scenario) -> None:
    hold(scenario)
    succeed(scenario, SPARE[0])
    assert [job.state for job in scenario.slurm.jobs.values()][-1] is JobState.RUNNING
    assert drained(scenario) == A3U


def test_failure_is_counted_once_however_many_passes_see_it(scenario: Scenario) -> None:
    scenario.slurm.submit([N0], batch=False)
    error = ComputeError(ErrorKind.PERMISSION, "forbidden", "", 403)
    scenario.compute.fail_next(error, "insert_group")
    for _ in range(10):
        scenario.run()
        scenario.slurm.pass_power_thread()
    assert failures_of(scenario) == 1


def test_failure_is_counted_in_the_end_though_slurm_does_not_answer_at_first(
    scenario: Scenario,
) -> None:
    scenario.slurm.submit([N0])
    scenario.settle()
    (reference,) = scenario.waiting()
    scenario.compute.state.fail(reference, "QUOTA_EXCEEDED")
    scenario.slurm.fail_next(SlurmUnavailable("no answer"))
    scenario.run()
    assert failures_of(scenario) == 0
    rest(scenario)
    assert failures_of(scenario) == 1


def test_success_ends_the_count(scenario: Scenario) -> None:
    fail_request(scenario)
    fail_request(scenario)
    succeed(scenario, N1)
    assert failures_of(scenario) == 0
    fail_request(scenario)
    assert drained(scenario) == []


def test_vm_older_than_the_failure_proves_nothing(scenario: Scenario) -> None:
    succeed(scenario, N1)
    advance(scenario, 1)
    hold(scenario)
    assert drained(scenario) == [N0, *A3U[2:]]


def test_bad_vm_among_good_ones_of_its_request_is_no_failure_of_the_pool(
    scenario: Scenario,
) -> None:
    scenario.slurm.submit([N0, N1])
    scenario.settle()
    advance(scenario, 1)
    scenario.grant_all()
    scenario.compute.state.run_all()
    scenario.slurm.register([N0])
    advance(scenario, POLICY.boot_timeout_seconds + 1)
    scenario.run()
    scenario.run()
    assert failures_of(scenario) == 0


def test_nodes_are_given_back_when_the_hold_is_over(scenario: Scenario) -> None:
    hold(scenario)
    advance(scenario, HOLD_SECONDS - 2)
    rest(scenario)
    assert drained(scenario) == A3U
    advance(scenario, 1)
    rest(scenario)
    assert drained(scenario) == []
    assert not any(n.state.has(NodeFlag.NOT_RESPONDING) for n in scenario.slurm.nodes.values())
    succeed(scenario, N0)
    assert failures_of(scenario) == 0


def test_next_failure_after_a_hold_holds_again_for_twice_as_long_within_the_limit(
    scenario: Scenario,
) -> None:
    hold(scenario)
    lengths = []
    for _ in range(3):
        end = hold_end(scenario.slurm.nodes[N1].reason)
        assert end is not None
        lengths.append((end - scenario.now).total_seconds() + 1)
        advance(scenario, lengths[-1])
        rest(scenario)
        assert drained(scenario) == []
        fail_request(scenario)
    assert lengths == [HOLD_SECONDS, 2 * HOLD_SECONDS, POLICY.longest_hold_seconds]


def test_old_failures_are_forgotten(scenario: Scenario) -> None:
    fail_request(scenario)
    fail_request(scenario)
    advance(scenario, POLICY.longest_hold_seconds + POLICY.boot_timeout_seconds + 1)
    rest(scenario)
    assert failures_of(scenario) == 0


@pytest.mark.parametrize("moment", range(6))
def test_restart_changes_nothing(scenario: Scenario, moment: int) -> None:
    """The daemon dies before the first failure, between any two, in the hold and after it."""
    for step in range(6):
        if step == moment:
            scenario.restart()
        if step < POLICY.hold_after_failures:
            fail_request(scenario)
        elif step == POLICY.hold_after_failures:
            rest(scenario)
            assert drained(scenario) == A3U
        elif step == POLICY.hold_after_failures + 1:
            advance(scenario, HOLD_SECONDS)
            rest(scenario)
            assert drained(scenario) == []
        else:
            fail_request(scenario)
            end = hold_end(scenario.slurm.nodes[N1].reason)
            assert drained(scenario) == A3U
            assert end is not None
            assert end - scenario.now == timedelta(seconds=2 * HOLD_SECONDS - 1)


def test_node_that_was_up_is_not_touched_and_joins_the_hold_after_its_first_failure(
    scenario: Scenario,
) -> None:
    succeed(scenario, N1)
    advance(scenario, 1)
    hold(scenario)
    assert scenario.slurm.nodes[N1].state.base is BaseState.ALLOCATED
    job = next(j.job_id for j in scenario.slurm.jobs.values() if j.state is JobState.RUNNING)
    scenario.slurm.complete(job)
    scenario.slurm.suspend([N1])
    scenario.settle_with_vms()
    scenario.slurm.slept([N1])
    fail_request(scenario, N1)
    assert drained(scenario) == A3U


def test_node_that_a_person_gives_back_in_a_hold_stays_so(scenario: Scenario) -> None:
    hold(scenario)
    scenario.slurm.update_nodes([N1], NodeUpdate.IDLE)
    scenario.restart()
    rest(scenario)
    assert drained(scenario) == [N0, *A3U[2:]]


def test_node_that_a_person_drained_is_neither_held_nor_given_back(scenario: Scenario) -> None:
    scenario.slurm.update_nodes([N1], NodeUpdate.DRAIN, "bad cable")
    hold(scenario)
    assert scenario.slurm.nodes[N1].reason == "bad cable"
    scenario.slurm.update_nodes([A3U[2]], NodeUpdate.DRAIN, "for tests")
    advance(scenario, HOLD_SECONDS)
    rest(scenario)
    assert drained(scenario) == [N1, A3U[2]]


def test_node_with_a_persons_reason_is_not_drained(scenario: Scenario) -> None:
    node = scenario.slurm.nodes[N1]
    scenario.slurm.nodes[N1] = dataclasses.replace(node, reason="of a person")
    hold(scenario)
    assert drained(scenario) == [N0, *A3U[2:]]


def test_comment_of_a_person_is_left_and_another_node_keeps_the_record(
    scenario: Scenario,
) -> None:
    node = scenario.slurm.nodes[N0]
    scenario.slurm.nodes[N0] = dataclasses.replace(node, comment="rack 7")
    hold(scenario)
    assert scenario.slurm.nodes[N0].comment == "rack 7"
    assert read_record(scenario.slurm.nodes[N1].comment) is not None
    assert drained(scenario) == A3U


def test_node_that_is_allocated_just_before_it_would_be_drained_keeps_its_job(
    scenario: Scenario, tmp_path: Path
) -> None:
    fail_request(scenario)
    fail_request(scenario)
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    (reference,) = scenario.waiting()
    scenario.compute.state.fail(reference, "QUOTA_EXCEEDED")
    plan = scenario.passes.plan()
    late = scenario.slurm.submit([N1])
    assert any("flexvm-a3u-1" in action.subject for action in plan.actions)
    calls, consoles = CallsDirectory(tmp_path, expand), ConsolesDirectory(tmp_path)
    Actor(scenario.slurm, scenario.compute, calls, consoles).act(plan, Memory())
    assert scenario.slurm.jobs[late].state is JobState.CONFIGURING
    assert scenario.slurm.jobs[job_id].state is JobState.PENDING


def test_static_nodes_of_a_held_pool_stay_off_until_the_hold_is_over(tmp_path: Path) -> None:
    cluster = dataclasses.replace(example_cluster(min_node_count=2), policy=POLICY)
    scenario = Scenario(tmp_path, cluster)
    for _ in range(40):
        advance(scenario, 1)
        scenario.run()
        scenario.slurm.pass_power_thread()
        for reference in scenario.waiting():
            scenario.compute.state.fail(reference, "QUOTA_EXCEEDED")
        going = [n for n, x in scenario.slurm.nodes.items() if x.state.has(NodeFlag.POWERING_DOWN)]
        scenario.slurm.slept(going)
    assert drained(scenario) == A3U
    assert len(scenario.compute.calls_of("insert_resize_request")) <= 2 * 3
    advance(scenario, HOLD_SECONDS)
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    assert scenario.vm_names() == [N0, N1]
    assert [scenario.slurm.nodes[name].reason for name in (N0, N1)] == ["", ""]


def test_reason_of_ours_is_cleared_from_a_node_that_is_up_again(scenario: Scenario) -> None:
    fail_request(scenario)
    assert scenario.slurm.nodes[N0].reason.startswith("slurm-hooks: request failed QUOTA")
    scenario.slurm.update_nodes([N0], NodeUpdate.POWER_UP)
    scenario.slurm.pass_power_thread()
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    assert scenario.compute.state.instance(N0).status is InstanceStatus.RUNNING
    assert scenario.slurm.nodes[N0].reason == ""
