"""Pools whose jobs want their VMs close together: a group with a workload policy for each job."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.ownership import Mark, decode
from slurm_hooks.reconcile.actions import InsertGroup
from slurm_hooks.reconcile.specifications import generation_of, group_of_job, template_of
from slurm_hooks.slurm.model import BaseState, JobState
from tests.unit.reconcile.builders import (
    CLUSTER,
    GROUP,
    N0,
    N1,
    World,
    example_cluster,
    job,
    starting,
)
from tests.unit.reconcile.scenario import Scenario


def compact(cluster: Cluster = CLUSTER) -> Cluster:
    pool = replace(cluster.pools["a3u"], compact_placement=True)
    return replace(cluster, pools={**cluster.pools, "a3u": pool})


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path, compact(example_cluster(max_node_count=1600)))


def group_names(scenario: Scenario) -> set[str]:
    return {reference.name for reference in scenario.compute.state.groups}


def test_group_of_a_job_says_whose_it_is_and_names_the_pools_policy() -> None:
    pool = CLUSTER.pools["a3u"]
    group = group_of_job(CLUSTER, pool, job(7, N0, restarts=2))
    generation = generation_of(template_of(CLUSTER, pool))
    assert group.reference.name == f"flexvm-a3u-{generation}-j7-2"
    assert decode(group.description) == Mark("flexvm", "a3u", generation, job_id=7, restarts=2)
    assert group.workload_policy is not None
    assert (str(group.workload_policy.scope), group.workload_policy.name) == (
        "regions/us-central1",
        "flexvm-a3u-compact",
    )


def test_longest_names_are_names_that_compute_engine_takes() -> None:
    pool = replace(CLUSTER.pools["a3u"], pool_id="p" * 49)
    group = group_of_job(CLUSTER, pool, replace(job(4_294_967_294, N0), restarts=999))
    assert len(f"{group.reference.name}-65") <= 63
    assert group.workload_policy is not None
    assert len(group.workload_policy.name) <= 63


def test_node_without_a_job_shares_the_groups_of_the_pool() -> None:
    lone = World([starting(N0, BaseState.IDLE)], has_group=False, cluster=compact())
    (insertion,) = lone.actions(InsertGroup)
    assert isinstance(insertion, InsertGroup)
    assert insertion.group == GROUP


def test_each_job_gets_its_group_runs_and_the_group_goes_after_it(scenario: Scenario) -> None:
    first, second = scenario.slurm.submit([N0]), scenario.slurm.submit([N1])
    scenario.settle()
    stem = GROUP.reference.name
    assert group_names(scenario) == {f"{stem}-j{first}-0", f"{stem}-j{second}-0"}
    assert [name for _, name in scenario.compute.state.workload_policies] == ["flexvm-a3u-compact"]
    scenario.grant_all()
    scenario.settle_with_vms()
    assert scenario.slurm.jobs[first].state is JobState.RUNNING

    scenario.slurm.complete(first)
    scenario.slurm.suspend([N0])
    scenario.settle_with_vms()
    scenario.now += timedelta(hours=1)
    for _ in range(2):
        scenario.wait_for_second_look(scenario.run())
    assert group_names(scenario) == {f"{stem}-j{second}-0"}
    assert scenario.slurm.jobs[second].state is JobState.RUNNING


def end_job(scenario: Scenario, job_id: int, node: str) -> None:
    """The job ends, its node sleeps, and every grace passes."""
    scenario.slurm.complete(job_id)
    scenario.slurm.suspend([node])
    scenario.settle_with_vms()
    scenario.now += timedelta(hours=1)


def test_policy_of_a_pool_stays_between_jobs_and_goes_when_the_pool_places_none(
    scenario: Scenario,
) -> None:
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()

    scenario.cluster = example_cluster(max_node_count=1600)
    scenario.restart()
    for _ in range(3):
        scenario.run()
    assert scenario.slurm.jobs[job_id].state is JobState.RUNNING
    assert len(scenario.compute.state.workload_policies) == 1, "its group lives"

    end_job(scenario, job_id, N0)
    scenario.cluster = compact(scenario.cluster)
    scenario.restart()
    scenario.settle()
    assert group_names(scenario) == set()
    assert len(scenario.compute.state.workload_policies) == 1, "the next job needs it"

    scenario.cluster = example_cluster(max_node_count=1600)
    scenario.restart()
    scenario.wait_for_second_look(scenario.run())
    assert len(scenario.compute.state.workload_policies) == 1, "seen once"
    scenario.run()
    assert scenario.compute.state.workload_policies == {}


def test_policy_goes_in_the_passes_after_its_last_group(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    scenario.cluster = example_cluster(max_node_count=1600)
    scenario.restart()
    scenario.run()
    end_job(scenario, job_id, N0)
    scenario.settle()
    assert group_names(scenario) == set()
    assert scenario.compute.state.workload_policies == {}


def test_policies_are_listed_as_seldom_as_templates(scenario: Scenario) -> None:
    for _ in range(10):
        scenario.run()
    assert len(scenario.compute.calls_of("read_workload_policies")) == 1


def test_job_of_1500_nodes_gets_two_groups_of_its_own(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([f"flexvm-a3u-{index}" for index in range(1500)])
    scenario.settle()
    stem = f"{GROUP.reference.name}-j{job_id}-0"
    sizes = {r.name: g.target_size for r, g in scenario.compute.state.groups.items()}
    assert sizes == {stem: 1000, f"{stem}-2": 500}


def test_policy_that_may_not_be_made_fails_the_job_with_the_reason(scenario: Scenario) -> None:
    job_id = scenario.slurm.submit([N0])
    error = ComputeError(ErrorKind.PERMISSION, "forbidden", "grant compute.x to y", 403)
    scenario.compute.fail_next(error, "insert_workload_policy")
    for _ in range(4):
        scenario.run()
    assert scenario.slurm.jobs[job_id].state is JobState.PENDING
    assert "grant compute.x to y" in scenario.slurm.jobs[job_id].admin_comment
