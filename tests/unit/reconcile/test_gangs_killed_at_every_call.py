"""Jobs with several requests, and a controller that dies at every single call of their stories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.slurm.model import JobState
from tests.unit.reconcile.builders import CLUSTER, N0, example_cluster
from tests.unit.reconcile.deaths import Story, assert_death_at_any_call_changes_nothing
from tests.unit.reconcile.life import Life, lives

pytestmark = pytest.mark.slow
"""A death at each call of many stories takes minutes: one of them is quick enough for all runs."""

SPARE = "flexvm-spare-0"
TWO_POOLS = replace(
    CLUSTER,
    pools={**CLUSTER.pools, "spare": replace(CLUSTER.pools["a3u"], pool_id="spare")},
    partitions={"a3u": ("a3u", "spare")},
)


def job_of_two_pools_waits_runs_and_its_nodes_go(life: Life) -> None:
    life.slurm.add_nodes([SPARE], partition="a3u")
    job_id = life.slurm.submit([N0, SPARE])
    life.deliver_calls()
    life.rest()
    assert len(life.waiting()) == 2
    life.grant_all()
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.RUNNING
    life.slurm.complete(job_id)
    life.slurm.suspend([N0, SPARE])
    life.rest()
    assert life.vm_names() == []


def one_of_two_requests_fails_and_the_other_is_given_up(life: Life) -> None:
    life.slurm.add_nodes([SPARE], partition="a3u")
    job_id = life.slurm.submit([N0, SPARE])
    life.deliver_calls()
    life.rest()
    failed = next(r.reference for r in life.requests() if r.instances == (SPARE,))
    life.compute.state.fail(failed, "QUOTA_EXCEEDED", "GPUS in us-central1")
    life.rest()
    assert life.slurm.jobs[job_id].state is JobState.PENDING
    assert not life.waiting()
    assert not life.vm_names()


@pytest.mark.parametrize(
    "story",
    [
        job_of_two_pools_waits_runs_and_its_nodes_go,
        one_of_two_requests_fails_and_the_other_is_given_up,
    ],
)
@pytest.mark.parametrize(
    "after_the_call", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["after", "before"]
)
def test_death_at_any_call_leads_to_the_same_end(
    tmp_path: Path, story: Story, after_the_call: bool
) -> None:
    make = lives(tmp_path, TWO_POOLS, True)
    assert_death_at_any_call_changes_nothing(make, story, after_the_call=after_the_call)


@pytest.mark.slow
def test_job_of_1500_nodes_never_gets_more_than_its_two_requests(tmp_path: Path) -> None:
    make = lives(tmp_path, example_cluster(max_node_count=1500), True)

    def requested(life: Life) -> list[int]:
        life.slurm.submit(list(life.cluster.node_names("a3u")))
        life.deliver_calls()
        life.rest()
        return sorted(len(names) for names in life.asked_for.values())

    undisturbed = make()
    assert requested(undisturbed) == [500, 1000]
    for number in range(1, undisturbed.door.calls + 1):
        life = make()
        life.door.deaths_at, life.door.dies_after_the_call = {number}, True
        assert requested(life) == [500, 1000], f"died at call {number}"
