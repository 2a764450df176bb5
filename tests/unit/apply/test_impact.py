"""What a plan costs the jobs, and what it forbids before anything is changed."""

from __future__ import annotations

import pytest

from slurm_hooks.apply.changes import compare
from slurm_hooks.apply.departures import held_up
from slurm_hooks.apply.impact import Impact, impact_of
from slurm_hooks.apply.plan import Plan, obstacles_of
from slurm_hooks.apply.plan_text import plan_as_json, plan_lines
from slurm_hooks.apply.taking import Taking, Way
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    GroupReference,
    Instance,
    InstanceStatus,
    RequestReference,
    RequestState,
    ResizeRequest,
    Scope,
    ScopeKind,
)
from slurm_hooks.slurm.model import (
    BaseState,
    Job,
    JobState,
    Node,
    NodeFlag,
    NodeState,
    Reservation,
    SlurmSnapshot,
)
from tests.unit.cluster.files import build, changed

MAX = "node_pools__1__scaling_spec__max_node_count"
SMALL, LARGE = build(changed(**{MAX: 2})), build(changed(**{MAX: 4}))
DISK = build(changed(node_pools__1__boot_disk__boot_disk_size_gb=500))
N = [f"flexvm-a3u-{index}" for index in range(4)]
OFF = NodeState(BaseState.IDLE, frozenset({NodeFlag.CLOUD, NodeFlag.POWERED_DOWN}))
UP = NodeState(BaseState.IDLE, frozenset({NodeFlag.CLOUD}))
GROUP = GroupReference(Scope(ScopeKind.ZONE, "us-central1-a"), "g")


def slurm(*jobs: Job, states: dict[str, NodeState] | None = None, **more: object) -> SlurmSnapshot:
    states = dict.fromkeys(N, OFF) | (states or {})
    nodes = {name: Node(name, state) for name, state in states.items()}
    strangers = {name: Node(name, UP) for name in ("onprem1", "other-a3u-3")}
    return SlurmSnapshot(
        nodes=nodes | strangers,
        jobs={job.job_id: job for job in jobs},
        reservations={"maint": Reservation("maint", (N[3],))} if more else {},
    )


def job(job_id: int, state: JobState, *nodes: str, required: tuple[str, ...] = ()) -> Job:
    return Job(job_id, state, user="ann", nodes=nodes, required_nodes=required)


def plan(applied: Cluster, wanted: Cluster, snapshot: SlurmSnapshot | None) -> Plan:
    changes = compare(applied, wanted)
    impact = impact_of(changes, applied, wanted, snapshot)
    return Plan(wanted, changes, impact, {}, Taking(Way.RESTART, "why"))


def impact(*jobs: Job) -> Impact:
    return plan(LARGE, SMALL, slurm(*jobs)).impact


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.CONFIGURING, JobState.UNKNOWN])
def test_job_that_has_a_node_that_leaves_is_named_with_it(state: JobState) -> None:
    found = impact(job(7, state, N[1], N[2]))
    assert [(use.job, use.nodes) for use in found.leaving.holding] == [("7", (N[2],))]
    assert found.leaving.nodes == (N[2], N[3])


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.CANCELLED, JobState.FAILED])
def test_job_that_is_over_holds_nothing(state: JobState) -> None:
    assert impact(job(7, state, N[2], required=(N[2],))).leaving.holding == ()


def test_job_that_waits_holds_nothing_though_slurm_shows_the_nodes_that_it_had() -> None:
    found = impact(job(7, JobState.PENDING, N[2]), job(8, JobState.PENDING, required=(N[3],)))
    assert found.leaving.holding == ()
    assert [use.job for use in found.leaving.naming] == ["8"]


def test_nodes_of_others_never_leave() -> None:
    assert set(impact().leaving.nodes) <= set(N)


def test_reservation_of_a_person_with_a_node_that_leaves_is_named() -> None:
    found = plan(LARGE, SMALL, slurm(reservations=True))
    assert found.impact.leaving.reservations == ("maint",)


def test_removal_under_a_job_is_refused_unless_it_is_waited_for() -> None:
    found = plan(LARGE, SMALL, slurm(job(7, JobState.RUNNING, N[2])))
    [obstacle] = obstacles_of(found, waits=False)
    assert "job 7 of ann on flexvm-a3u-2" in obstacle.problem
    assert "--wait" in obstacle.remedy
    assert list(obstacles_of(found, waits=True)) == []


def test_removal_of_a_node_that_a_waiting_job_names_is_refused_in_any_case() -> None:
    found = plan(LARGE, SMALL, slurm(job(8, JobState.PENDING, required=(N[3],))))
    for waits in (False, True):
        [obstacle] = obstacles_of(found, waits=waits)
        assert "job 8 of ann on flexvm-a3u-3" in obstacle.problem


def test_removal_while_slurmctld_does_not_answer_is_refused_and_growth_is_not() -> None:
    [obstacle] = obstacles_of(plan(LARGE, SMALL, None), waits=True)
    assert "flexvm-a3u-[2-3]" in obstacle.problem
    assert list(obstacles_of(plan(SMALL, LARGE, None), waits=False)) == []


def test_new_vms_under_a_job_are_told_and_forbid_nothing() -> None:
    found = plan(SMALL, DISK, slurm(job(7, JobState.RUNNING, N[0]), states={N[0]: UP}))
    assert list(obstacles_of(found, waits=False)) == []
    text = "\n".join(plan_lines(found))
    assert "! pool a3u: replace" in text
    assert "boot_disk_size_gb: 400 -> 500" in text
    assert "job 7 of ann has flexvm-a3u-0, which gets a new VM after it" in text
    assert "slurmctld: restart: why" in text


def test_plan_for_programs_has_what_the_one_for_people_has() -> None:
    tree = plan_as_json(plan(LARGE, SMALL, slurm(job(7, JobState.RUNNING, N[2]))))
    leaving = tree["nodes_that_leave"]
    assert isinstance(leaving, dict)
    assert leaving["nodes"] == [N[2], N[3]]
    assert leaving["jobs_that_hold_them"] == [{"job": "7", "user": "ann", "nodes": [N[2]]}]


def test_cluster_as_it_should_be_is_an_empty_plan() -> None:
    changes = compare(LARGE, LARGE)
    found = Plan(LARGE, changes, Impact(), {}, Taking(Way.KEEP))
    assert found.is_empty
    assert not plan(LARGE, LARGE, slurm()).is_empty, "slurmctld has yet to take it"


def vm(name: str) -> Instance:
    return Instance(name, "1", "us-central1-a", InstanceStatus.RUNNING)


def test_nodes_that_are_off_without_vms_leave_at_once() -> None:
    assert (
        held_up(SMALL, slurm(states={N[0]: UP}), ComputeSnapshot(instances={N[0]: vm(N[0])})) == ()
    )


@pytest.mark.parametrize(
    "flags",
    [
        {NodeFlag.POWERING_DOWN},
        {NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN},
        {NodeFlag.POWERED_DOWN, NodeFlag.POWER_UP},
        {NodeFlag.POWERED_DOWN, NodeFlag.COMPLETING},
        {NodeFlag.POWERING_UP},
        set(),
    ],
)
def test_node_that_is_not_off_for_good_holds_it_up(flags: set[NodeFlag]) -> None:
    states = {N[2]: NodeState(BaseState.IDLE, frozenset(flags))}
    [line] = held_up(SMALL, slurm(states=states), ComputeSnapshot())
    assert N[2] in line
    assert N[3] not in line


def test_vm_or_request_of_a_node_that_is_off_holds_it_up() -> None:
    [line] = held_up(SMALL, slurm(), ComputeSnapshot(instances={N[3]: vm(N[3])}))
    assert line == f"VMs still to go: {N[3]}"
    reference = RequestReference(GROUP, "r")
    for state, expected in ((RequestState.ACCEPTED, 1), (RequestState.SUCCEEDED, 0)):
        requests = {reference: ResizeRequest(reference, state, (N[2],))}
        assert len(held_up(SMALL, slurm(), ComputeSnapshot(requests=requests))) == expected


def test_job_that_came_since_the_plan_holds_it_up() -> None:
    found = slurm(job(9, JobState.RUNNING, N[3]), states={N[3]: UP})
    assert held_up(SMALL, found, ComputeSnapshot(instances={N[3]: vm(N[3])})) == (
        f"job 9 of ann needs {N[3]}",
    )
