"""Whatever the ends of VMs are: only idle nodes are renewed, and others' reservations stay."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_hooks.compute.model import Instance
from slurm_hooks.reconcile.actions import (
    CreateReservation,
    DeleteReservation,
    ReasonCode,
    UpdateNode,
)
from slurm_hooks.reconcile.end_of_life import NAME_PREFIX
from slurm_hooks.slurm.model import BaseState, Job, JobState, Node, Reservation
from tests.property.test_decide_properties import jobs, name_sets, nodes, vms
from tests.unit.reconcile.builders import NOW, World

hours = st.integers(-2, 200).map(lambda number: timedelta(hours=number))


@st.composite
def ending_vms(draw: st.DrawFn) -> list[Instance]:
    ends = st.none() | hours.map(lambda left: NOW + left)
    return [replace(vm, termination_time_utc=draw(ends)) for vm in draw(vms())]


@st.composite
def nodes_of_a_partition(draw: st.DrawFn) -> list[Node]:
    return [replace(node, partitions=("a3u",)) for node in draw(nodes())]


@st.composite
def waiting_jobs(draw: st.DrawFn) -> list[Job]:
    limits = st.none() | st.integers(60, 10**6)
    return [
        Job(
            100 + number,
            JobState.PENDING,
            partition=draw(st.sampled_from(["a3u", "other,a3u", "other"])),
            reason=draw(st.sampled_from(["Resources", "ReqNodeNotAvail", "Priority", ""])),
            node_count=draw(st.integers(0, 3)),
            priority=draw(st.integers(0, 2)),
            time_limit_seconds=draw(limits),
        )
        for number in range(draw(st.integers(0, 3)))
    ]


@st.composite
def reservations(draw: st.DrawFn) -> list[Reservation]:
    names = st.sampled_from(["maintenance", f"{NAME_PREFIX}20260501T120000Z-1", f"{NAME_PREFIX}x"])
    return [
        Reservation(name, tuple(draw(name_sets)), NOW + draw(hours))
        for name in draw(st.lists(names, unique=True))
    ]


worlds = st.builds(
    World,
    nodes=nodes_of_a_partition(),
    jobs=st.tuples(jobs(), waiting_jobs()).map(lambda both: [*both[0], *both[1]]),
    vms=ending_vms(),
    reservations=reservations(),
)


@settings(max_examples=300, deadline=None)
@given(worlds)
def test_only_idle_nodes_are_renewed_and_no_more_than_jobs_need(world: World) -> None:
    renewed = [
        action.node
        for action in world.plan().actions
        if isinstance(action, UpdateNode) and action.reason is ReasonCode.END_NEAR
    ]
    states = {node.name: node.state for node in world.nodes}
    held = {name for job in world.jobs if job.is_active for name in job.nodes}
    needed = [
        max(job.node_count, 1)
        for job in world.jobs
        if job.state is JobState.PENDING and job.reason in ("Resources", "ReqNodeNotAvail")
    ]
    assert len(renewed) <= sum(needed)
    assert not set(renewed) & held
    assert all(states[name].base is BaseState.IDLE for name in renewed)
    assert all(not states[name].unknown for name in renewed)


@settings(max_examples=300, deadline=None)
@given(worlds)
def test_reservations_follow_from_the_vms_and_those_of_others_stay(world: World) -> None:
    plan = world.plan()
    gone = {action.name for action in plan.actions if isinstance(action, DeleteReservation)}
    made = [action for action in plan.actions if isinstance(action, CreateReservation)]
    assert all(name.startswith(NAME_PREFIX) for name in gone)
    assert all(action.name.startswith(NAME_PREFIX) for action in made)
    assert all(action.start_time_utc >= NOW for action in made)
    assert len({name for action in made for name in action.nodes}) == sum(
        len(action.nodes) for action in made
    )
    after = [r for r in world.reservations if r.name not in gone]
    after += [Reservation(action.name, action.nodes, action.start_time_utc) for action in made]
    again = replace(world, reservations=after).plan()
    assert not any(isinstance(action, CreateReservation) for action in again.actions)
    assert not any(isinstance(action, DeleteReservation) for action in again.actions)
