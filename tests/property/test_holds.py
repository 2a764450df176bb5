"""Whatever fails: a hold is bounded in time, ends, and touches no node of another pool."""

from __future__ import annotations

import dataclasses
import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.reconcile.pool_record import hold_end
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from tests.unit.reconcile.builders import CLUSTER
from tests.unit.reconcile.scenario import Scenario

POLICY = Policy(hold_after_failures=2, hold_seconds=60, longest_hold_seconds=200)
SPARE = dataclasses.replace(CLUSTER.pools["a3u"], pool_id="spare")
TWO_POOLS = dataclasses.replace(CLUSTER, pools={**CLUSTER.pools, "spare": SPARE}, policy=POLICY)
BAD = [f"flexvm-a3u-{index}" for index in range(4)]
GOOD = [f"flexvm-spare-{index}" for index in range(2)]
PASSES_A_START = 12
"""Group, template, request, VM, registration, each with a pass or two."""

WORDS = ["submit", "refuse", "fail", "grant", "end", "restart", "wait", "slept"]
scripts = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 100)), max_size=60)


def carry_out(scenario: Scenario, event: str, pick: int) -> None:
    """Something happens to the bad pool, whose nodes are offered as Slurm offers them."""
    slurm, state = scenario.slurm, scenario.compute.state
    free = [n for n in BAD if is_offered(scenario, n)]
    waiting = [r for r in scenario.waiting() if r.group.name.startswith("flexvm-a3u")]
    match event:
        case "submit" if free:
            slurm.submit([free[pick % len(free)]], batch=pick % 2 == 0)
        case "refuse" if free:
            slurm.submit([free[pick % len(free)]], batch=pick % 2 == 0)
            error = ComputeError(ErrorKind.CONFIG, "invalid", "", 400)
            scenario.compute.fail_next(error, "insert_resize_request")
        case "fail" if waiting:
            state.fail(waiting[0], "QUOTA_EXCEEDED")
        case "grant" if waiting:
            state.grant(waiting[0])
        case "end":
            for job in [j for j in slurm.jobs.values() if j.state is JobState.RUNNING]:
                slurm.complete(job.job_id)
                slurm.suspend(job.nodes)
        case "restart":
            scenario.restart()
        case "wait":
            scenario.now += timedelta(seconds=pick)
            slurm.now_utc = state.now_utc = scenario.now
        case "slept":
            slurm.slept([n for n in BAD if slurm.nodes[n].state.has(NodeFlag.POWERING_DOWN)])


def is_offered(scenario: Scenario, name: str) -> bool:
    state = scenario.slurm.nodes[name].state
    return (
        state.base is BaseState.IDLE
        and state.has(NodeFlag.POWERED_DOWN)
        and not state.has(NodeFlag.DRAIN)
    )


def move(scenario: Scenario) -> None:
    scenario.run()
    scenario.compute.state.step()
    scenario.register_running()
    scenario.slurm.pass_power_thread()


@settings(max_examples=60, deadline=None)
@given(scripts)
def test_hold_is_bounded_and_ends_and_never_keeps_another_pools_job_from_starting(
    script: list[tuple[str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        scenario = Scenario(Path(directory), TWO_POOLS)
        scenario.slurm.add_nodes(GOOD, partition="a3u")
        longest = timedelta(seconds=POLICY.longest_hold_seconds)
        for event, pick in script:
            carry_out(scenario, event, pick)
            busy = {n for n in BAD if scenario.slurm.nodes[n].state.base is not BaseState.IDLE}
            move(scenario)
            for name in BAD:
                end = hold_end(scenario.slurm.nodes[name].reason)
                assert end is None or end - scenario.now <= longest
                is_drained = scenario.slurm.nodes[name].state.has(NodeFlag.DRAIN)
                assert not (is_drained and name in busy), "a node with a job was drained"
        assert_other_pool_works(scenario)
        scenario.now += longest + timedelta(minutes=1)
        carry_out(scenario, "slept", 0)
        scenario.run()
        assert not any(n.state.has(NodeFlag.DRAIN) for n in scenario.slurm.nodes.values())


def assert_other_pool_works(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit(GOOD)
    for _ in range(PASSES_A_START):
        move(scenario)
        for reference in scenario.waiting():
            if reference.group.name.startswith("flexvm-spare"):
                scenario.compute.state.grant(reference)
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    assert not any(scenario.slurm.nodes[name].state.has(NodeFlag.DRAIN) for name in GOOD)
