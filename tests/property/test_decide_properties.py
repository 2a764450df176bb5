"""Whatever the two systems say, a decision is made, and it never harms a node that works."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_hooks.compute.model import Instance, InstanceStatus, RequestState, ResizeRequest
from slurm_hooks.reconcile.actions import (
    CancelRequest,
    DeleteInstance,
    InsertRequest,
    Plan,
    UpdateNode,
)
from slurm_hooks.reconcile.sightings import Sightings
from slurm_hooks.reconcile.snapshot import Memory, ResumeCall
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, Job, JobState, Node, NodeFlag, NodeState
from tests.unit.reconcile.builders import NOW, World, call, job, request, vm

NAMES = [f"flexvm-a3u-{index}" for index in range(4)]
POWER_FLAGS = frozenset(
    {
        NodeFlag.POWERED_DOWN,
        NodeFlag.POWERING_DOWN,
        NodeFlag.POWERING_UP,
    }
)

node_states = st.builds(
    NodeState,
    base=st.sampled_from(BaseState),
    flags=st.frozensets(st.sampled_from(NodeFlag), max_size=4).map(lambda f: f | {NodeFlag.CLOUD}),
    unknown=st.frozensets(st.sampled_from(["NEW_WORD"]), max_size=1),
)
name_sets = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    present = draw(st.lists(st.sampled_from(NAMES), unique=True))
    reasons = st.sampled_from(["", "ResumeTimeout reached", "of a person"])
    return [Node(name, draw(node_states), reason=draw(reasons)) for name in present]


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    states = st.sampled_from(JobState)
    comments = st.sampled_from(["", "of a person", "slurm-hooks: x", "slurm-hooks: failed: x"])
    return [
        job(
            number,
            *draw(name_sets),
            state=draw(states),
            restarts=draw(st.integers(0, 1)),
            admin_comment=draw(comments),
        )
        for number in range(1, draw(st.integers(0, 3)) + 1)
    ]


@st.composite
def requests(draw: st.DrawFn) -> list[ResizeRequest]:
    return [
        request(
            f"r{number}",
            *draw(name_sets),
            state=draw(st.sampled_from(RequestState)),
            job_id=draw(st.sampled_from([None, 1, 2, 3])),
            restarts=draw(st.integers(0, 1)),
            error=draw(st.sampled_from(["", "QUOTA_EXCEEDED"])),
        )
        for number in range(draw(st.integers(0, 3)))
    ]


@st.composite
def vms(draw: st.DrawFn) -> list[Instance]:
    present = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return [vm(name, draw(st.sampled_from(InstanceStatus))) for name in present]


@st.composite
def calls(draw: st.DrawFn) -> tuple[ResumeCall, ...]:
    asker = draw(st.sampled_from([None, 1, 2]))
    return (call(asker, *draw(name_sets)),) if draw(st.booleans()) else ()


sightings = st.dictionaries(
    st.sampled_from(NAMES), st.integers(-60, 60).map(lambda ago: NOW - timedelta(seconds=ago))
)
worlds = st.builds(
    World,
    nodes=nodes(),
    jobs=jobs(),
    requests=requests(),
    vms=vms(),
    calls=calls(),
    has_group=st.booleans(),
    memory=st.builds(Memory, sightings=st.builds(Sightings, missing=sightings, surplus=sightings)),
)


def deleted(plan: Plan) -> set[str]:
    return {action.name for action in plan.actions if isinstance(action, DeleteInstance)}


@settings(max_examples=400, deadline=None)
@given(worlds)
def test_every_world_gets_a_plan_with_each_subject_once(world: World) -> None:
    subjects = [action.subject for action in world.plan().actions]
    assert len(subjects) == len(set(subjects))


DRAIN = (NodeUpdate.DRAIN,)
"""What a person has set DOWN is kept out of service, and keeps its VM."""


def updates_of(name: str, plan: Plan) -> list[UpdateNode]:
    return [a for a in plan.actions if isinstance(a, UpdateNode) and a.node == name]


@settings(max_examples=400, deadline=None)
@given(worlds)
def test_registered_node_with_a_living_vm_is_never_killed(world: World) -> None:
    plan = world.plan()
    living = {v.name for v in world.vms if v.status is InstanceStatus.RUNNING}
    for node in world.nodes:
        if node.name in living and not node.state.has(*POWER_FLAGS):
            assert node.name not in deleted(plan)
            assert all(update.updates == DRAIN for update in updates_of(node.name, plan))


@settings(max_examples=400, deadline=None)
@given(worlds)
def test_no_name_is_asked_for_twice_or_while_a_vm_has_it(world: World) -> None:
    asked = [
        name
        for action in world.plan().actions
        if isinstance(action, InsertRequest)
        for name in action.request.instances
    ]
    assert len(asked) == len(set(asked))
    assert not set(asked) & {v.name for v in world.vms}
    waiting = {n for r in world.requests if r.state.is_active for n in r.instances}
    assert not set(asked) & waiting


@settings(max_examples=400, deadline=None)
@given(worlds)
def test_node_with_an_unknown_word_is_never_changed(world: World) -> None:
    odd = {node.name for node in world.nodes if node.state.unknown}
    plan = world.plan()
    assert not odd & deleted(plan)
    for action in plan.actions:
        if isinstance(action, UpdateNode):
            assert action.node not in odd
        if isinstance(action, InsertRequest):
            assert not odd & set(action.request.instances)


@settings(max_examples=400, deadline=None)
@given(worlds)
def test_request_whose_members_are_all_wanted_is_never_cancelled(world: World) -> None:
    held = {name for job in world.jobs if job.is_active for name in job.nodes}
    wanted = {
        node.name
        for node in world.nodes
        if node.name in held
        and not node.state.unknown
        and node.state.base in (BaseState.ALLOCATED, BaseState.MIXED)
        and node.state.has(NodeFlag.POWERING_UP)
        and not node.state.has(NodeFlag.POWERING_DOWN)
    }
    members = {r.reference: set(r.instances) for r in world.requests}
    for action in world.plan().actions:
        if isinstance(action, CancelRequest):
            assert not members[action.request] <= wanted
