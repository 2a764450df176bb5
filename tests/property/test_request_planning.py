"""Whatever is asked for at once: no limit is broken, no node asked for twice, no turn jumped."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_hooks.compute.model import (
    ComputeSnapshot,
    Group,
    GroupReference,
    Operation,
    ResizeRequest,
)
from slurm_hooks.reconcile.actions import InsertGroup, InsertRequest, Plan
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.gangs import MOST_VMS_A_REQUEST
from slurm_hooks.reconcile.places import MOST_ACTIVE_REQUESTS
from slurm_hooks.reconcile.rooms import MOST_VMS_A_GROUP
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.reconcile.specifications import with_ordinal
from slurm_hooks.slurm.model import BaseState, Job, Node
from tests.unit.reconcile.builders import GROUP, NOW, World, example_cluster, job, request, starting

CLUSTER = example_cluster(max_node_count=20_000)
ACTIVE_FROM = 15_000
"""Index of the first node that a request has already been made for."""


def names(first: int, count: int) -> tuple[str, ...]:
    return tuple(f"flexvm-a3u-{index}" for index in range(first, first + count))


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    """Jobs side by side; neighbours may share nodes."""
    made, first = [], 0
    for number in range(1, draw(st.integers(0, 4)) + 1):
        count = draw(st.sampled_from([1, 2, 300, 700, 1000, 1001]))
        made.append(replace(job(number, *names(first, count)), priority=draw(st.integers(0, 3))))
        first += max(1, count - draw(st.integers(0, 2)))
    return made


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, dict[GroupReference, Group]]:
    wanted = draw(jobs())
    held = {name: starting(name) for j in wanted for name in j.nodes}
    lone = {
        name: starting(name, BaseState.IDLE)
        for name in names(14_000, draw(st.sampled_from([0, 1, 79, 81])))
    }
    waiting: list[ResizeRequest] = [
        request(f"r{number}", *names(ACTIVE_FROM + number, 1), job_id=99)
        for number in range(draw(st.sampled_from([0, 1, 79, 97, 98, 99, 100])))
    ]
    ordinals = draw(st.integers(0, 3))
    groups = {}
    for ordinal in range(1, ordinals + 1):
        reference = with_ordinal(GROUP, ordinal).reference
        size = draw(st.sampled_from([0, 1, 100, 500, 999, 1000]))
        groups[reference] = Group(reference, GROUP.template, size)
    nodes: list[Node] = [*held.values(), *lone.values()]
    return World(nodes, wanted, waiting, cluster=CLUSTER), groups


def planned(world: World, groups: dict[GroupReference, Group]) -> Plan:
    snapshot = world.snapshot()
    assert isinstance(snapshot.compute, ComputeSnapshot)
    compute = replace(snapshot.compute, groups=groups)
    return decide(replace(snapshot, compute=compute), CLUSTER, NOW)


def inserted(plan: Plan) -> list[InsertRequest]:
    return [action for action in plan.actions if isinstance(action, InsertRequest)]


@settings(max_examples=25, deadline=None)
@given(worlds())
def test_no_limit_of_the_service_is_broken(
    drawn: tuple[World, dict[GroupReference, Group]],
) -> None:
    world, groups = drawn
    requests = inserted(planned(world, groups))
    waiting = list(world.requests)
    assert len(requests) + len(waiting) <= max(MOST_ACTIVE_REQUESTS, len(waiting))
    sizes = Counter({reference: group.target_size for reference, group in groups.items()})
    listed = Counter(r.reference.group for r in waiting)
    sizes.update({key: max(0, listed[key] - sizes[key]) for key in listed})
    for action in requests:
        assert 0 < len(action.request.instances) <= MOST_VMS_A_REQUEST
        sizes[action.request.reference.group] += len(action.request.instances)
    for reference in {action.request.reference.group for action in requests}:
        assert sizes[reference] <= MOST_VMS_A_GROUP
        assert reference in groups


@settings(max_examples=25, deadline=None)
@given(worlds())
def test_no_node_is_asked_for_twice(drawn: tuple[World, dict[GroupReference, Group]]) -> None:
    asked = [name for action in inserted(planned(*drawn)) for name in action.request.instances]
    assert len(asked) == len(set(asked))


@settings(max_examples=25, deadline=None)
@given(worlds())
def test_jobs_are_asked_for_whole_and_in_turn(
    drawn: tuple[World, dict[GroupReference, Group]],
) -> None:
    world, groups = drawn
    plan = planned(world, groups)
    asked = [action.job_id for action in inserted(plan)]
    turn = sorted(world.jobs, key=lambda j: (-j.priority, j.job_id))
    order = [j.job_id for j in turn]
    positions = [len(order) if job_id is None else order.index(job_id) for job_id in asked]
    assert positions == sorted(positions)

    owners: dict[str, int] = {}
    for j in sorted(world.jobs, key=lambda j: j.job_id):
        for name in j.nodes:
            owners.setdefault(name, j.job_id)
    got = Counter(
        owners[name]
        for action in inserted(plan)
        if action.job_id is not None
        for name in action.request.instances
    )
    whole = Counter(owners.values())
    assert all(got[job_id] == whole[job_id] for job_id in got)


@settings(max_examples=20, deadline=None)
@given(worlds())
def test_what_is_on_its_way_is_not_asked_for_again(
    drawn: tuple[World, dict[GroupReference, Group]],
) -> None:
    """The second pass sees the larger groups, and nothing of the requests themselves yet."""
    world, groups = drawn
    first = planned(world, groups)
    asked = {name for action in inserted(first) for name in action.request.instances}
    scope = GROUP.reference.scope
    world.memory = Memory(
        in_flight={a.subject: Operation(f"o{n}", scope) for n, a in enumerate(inserted(first))}
    )
    grown = dict(groups)
    for action in inserted(first):
        reference = action.request.reference.group
        size = grown[reference].target_size + len(action.request.instances)
        grown[reference] = replace(grown[reference], target_size=size)
    second = planned(world, grown)
    again = {name for action in inserted(second) for name in action.request.instances}
    assert not asked & again


@settings(max_examples=20, deadline=None)
@given(worlds())
def test_groups_that_lack_are_created_until_everybody_has_one(
    drawn: tuple[World, dict[GroupReference, Group]],
) -> None:
    world, groups = drawn
    for _ in range(2):
        created = [a.group for a in planned(world, groups).actions if isinstance(a, InsertGroup)]
        for group in created:
            groups[group.reference] = Group(group.reference, group.template)
    plan = planned(world, groups)
    assert not any(isinstance(a, InsertGroup) for a in plan.actions)
