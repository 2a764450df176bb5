"""Which nodes are asked for together, in which order, in which group, and who waits for a place."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from slurm_hooks.compute.errors import ErrorKind
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    Group,
    Operation,
    RequestState,
    ResizeRequest,
    Scope,
    ScopeKind,
)
from slurm_hooks.reconcile.actions import (
    InsertGroup,
    InsertRequest,
    JobStatus,
    Plan,
    TellJob,
    UpdateNode,
    WaitKind,
    subject_of_insertion,
)
from slurm_hooks.reconcile.comments import job_comment
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.failure_table import Occasion
from slurm_hooks.reconcile.places import KEPT_FOR_JOBS, MOST_ACTIVE_REQUESTS
from slurm_hooks.reconcile.plan_jobs import MOST_TOLD_A_PASS
from slurm_hooks.reconcile.snapshot import Failure, Memory
from slurm_hooks.reconcile.specifications import with_ordinal
from slurm_hooks.slurm.model import BaseState, Job, Node, NodeFlag
from tests.unit.reconcile.builders import (
    GROUP,
    N0,
    N1,
    NOW,
    World,
    call,
    example_cluster,
    job,
    node,
    request,
    starting,
    vm,
)

BIG = example_cluster(max_node_count=5000)
SECOND = with_ordinal(GROUP, 2)
OPERATION = Operation("operation-1", Scope(ScopeKind.ZONE, "us-central1-a"))


def names(count: int, first: int = 0) -> list[str]:
    return [f"flexvm-a3u-{index}" for index in range(first, first + count)]


def world(jobs: list[Job], memory: Memory | None = None, **more: object) -> World:
    """The jobs' nodes powering up, in the big cluster."""
    nodes = [starting(name) for job in jobs for name in job.nodes]
    return World(nodes, jobs, memory=memory or Memory(), cluster=BIG, **more)  # type: ignore[arg-type]


def asked(of: World) -> list[tuple[str, ...]]:
    return [action.request.instances for action in insertions(of)]


def insertions(of: World) -> list[InsertRequest]:
    return [a for a in of.plan().actions if isinstance(a, InsertRequest)]


def told(of: World) -> dict[int, WaitKind]:
    return {
        action.job_id: action.status.kind
        for action in of.plan().actions
        if isinstance(action, TellJob) and action.status is not None
    }


def plan_with_groups(of: World, *sizes: int) -> Plan:
    """What is decided where the pool's groups have these target sizes."""
    snapshot = of.snapshot()
    assert isinstance(snapshot.compute, ComputeSnapshot)
    references = [with_ordinal(GROUP, number + 1).reference for number in range(len(sizes))]
    groups = {r: Group(r, GROUP.template, size) for r, size in zip(references, sizes, strict=True)}
    compute = replace(snapshot.compute, groups=groups)
    return decide(replace(snapshot, compute=compute), BIG, NOW)


def with_groups(of: World, *sizes: int) -> list[InsertRequest | InsertGroup]:
    """What is inserted then."""
    actions = plan_with_groups(of, *sizes).actions
    return [a for a in actions if isinstance(a, InsertRequest | InsertGroup)]


def group_names(actions: list[InsertRequest | InsertGroup]) -> list[str]:
    return [
        a.group.reference.name if isinstance(a, InsertGroup) else a.request.reference.group.name
        for a in actions
    ]


def active(count: int, job_id: int | None = 900) -> list[ResizeRequest]:
    """So many waiting requests for nodes of another pool's index range."""
    return [request(f"r{n}", f"flexvm-a3u-{4000 + n}", job_id=job_id) for n in range(count)]


def test_jobs_are_asked_for_by_falling_priority_then_id_and_lone_nodes_last() -> None:
    jobs = [
        replace(job(1, "flexvm-a3u-1"), priority=5),
        replace(job(2, "flexvm-a3u-2"), priority=9),
        replace(job(3, "flexvm-a3u-3"), priority=9),
    ]
    lone = starting("flexvm-a3u-0", BaseState.IDLE)
    of = World([lone, *(starting(j.nodes[0]) for j in jobs)], jobs, cluster=BIG)
    assert [a.job_id for a in insertions(of)] == [2, 3, 1, None]


def test_job_is_not_asked_for_while_slurm_has_not_resumed_all_of_its_nodes() -> None:
    rest = node(N1, NodeFlag.POWERED_DOWN, base=BaseState.ALLOCATED)
    of = World([starting(N0), rest], [job(1, N0, N1)])
    assert asked(of) == []
    assert asked(World([starting(N0), starting(N1)], [job(1, N0, N1)])) == [(N0, N1)]


def test_other_jobs_do_not_wait_for_a_job_that_comes_in_pieces() -> None:
    rest = node(N1, NodeFlag.POWERED_DOWN, base=BaseState.ALLOCATED)
    other = "flexvm-a3u-2"
    of = World([starting(N0), rest, starting(other)], [job(1, N0, N1), job(2, other)])
    assert asked(of) == [(other,)]


def test_node_that_two_jobs_of_a_call_share_is_asked_for_once() -> None:
    third = "flexvm-a3u-2"
    jobs = [job(1, N0, N1), job(2, N1, third)]
    of = World([starting(N0), starting(N1), starting(third)], jobs, calls=(call(1, N0, N1),))
    assert sorted(asked(of)) == [(N0, N1), (third,)]


def test_every_task_of_an_array_and_component_of_a_job_gets_its_own_request() -> None:
    jobs = [job(7, N0), job(8, N1)]
    of = World([starting(N0), starting(N1)], jobs)
    assert asked(of) == [(N0,), (N1,)]


def test_job_of_1500_nodes_gets_its_second_group_before_any_request() -> None:
    of = world([job(1, *names(1500))])
    first = with_groups(of, 0)
    assert [type(a) for a in first] == [InsertGroup]
    assert group_names(first) == [SECOND.reference.name]
    assert told(of) == {1: WaitKind.GROUP}

    both = with_groups(of, 0, 0)
    assert [len(a.request.instances) for a in both if isinstance(a, InsertRequest)] == [1000, 500]
    assert group_names(both) == [GROUP.reference.name, SECOND.reference.name]


def test_part_whose_request_stands_already_leaves_the_other_as_it_was() -> None:
    members = names(1500)
    of = world([job(1, *members)])
    rest = [a for a in with_groups(of, 0, 0) if isinstance(a, InsertRequest)][1]
    of.requests = [request("job-1-0-x", *members[:1000], job_id=1)]
    assert with_groups(of, 1000, 0) == [rest]


def test_group_is_filled_up_before_the_next_one_is_created() -> None:
    jobs = [job(1, *names(600)), job(2, *names(600, 600)), job(3, *names(400, 1200))]
    of = world(jobs)
    planned = with_groups(of, 0)
    assert group_names(planned) == [
        GROUP.reference.name,
        SECOND.reference.name,
        GROUP.reference.name,
    ]
    assert isinstance(planned[1], InsertGroup)


def test_members_of_a_group_count_by_its_size_and_by_what_is_listed() -> None:
    of = world([job(1, *names(10))])
    assert group_names(with_groups(of, 990, 0)) == [GROUP.reference.name]
    assert group_names(with_groups(of, 991, 0)) == [SECOND.reference.name]
    of.vms = [vm(name) for name in names(991, 1000)]
    assert group_names(with_groups(of, 0, 0)) == [SECOND.reference.name]


def test_request_that_is_made_already_keeps_its_group_and_takes_its_room() -> None:
    jobs = [job(1, *names(600)), job(2, *names(600, 600))]
    (first,) = insertions(world(jobs[:1]))
    memory = Memory(in_flight={first.subject: OPERATION})
    of = world(jobs, memory)
    assert group_names(with_groups(of, 0, 0)) == [SECOND.reference.name]
    assert group_names(with_groups(of, 600, 0)) == [SECOND.reference.name]


def test_request_that_was_made_and_is_listed_late_is_not_made_in_another_group() -> None:
    (first,) = insertions(world([job(1, *names(600))]))
    memory = Memory(attempts={first.subject: 1})
    assert with_groups(world([job(1, *names(600))], memory), 600, 0) == [first]


def test_101st_request_of_a_region_waits_for_its_turn_and_its_owner_is_told() -> None:
    jobs = [job(1, N0), job(2, N1)]
    of = world(jobs, requests=active(MOST_ACTIVE_REQUESTS - 1))
    assert asked(of) == [(N0,)]
    assert told(of) == {1: WaitKind.REQUEST, 2: WaitKind.PLACE}


def test_requests_that_are_over_take_no_place() -> None:
    over = [replace(r, state=RequestState.SUCCEEDED) for r in active(MOST_ACTIVE_REQUESTS)]
    assert asked(world([job(1, N0)], requests=over)) == [(N0,)]


def test_requests_on_their_way_take_places() -> None:
    reference = request("on-its-way", "flexvm-a3u-3999").reference
    memory = Memory(in_flight={subject_of_insertion(reference): OPERATION})
    of = world([job(1, N0)], memory, requests=active(MOST_ACTIVE_REQUESTS - 1))
    assert asked(of) == []


def test_small_job_does_not_overtake_a_big_one_that_waits_for_two_places() -> None:
    big, small = job(1, *names(1500)), job(2, *names(1, 2000))
    of = world([big, small], requests=active(MOST_ACTIVE_REQUESTS - 1))
    assert with_groups(of, 0, 0) == []
    assert told(of) == {1: WaitKind.PLACE, 2: WaitKind.PLACE}


def test_nodes_without_a_job_leave_places_for_jobs() -> None:
    lone = [starting(name, BaseState.IDLE) for name in names(MOST_ACTIVE_REQUESTS)]
    of = World(lone, cluster=BIG)
    assert len(asked(of)) == MOST_ACTIVE_REQUESTS - KEPT_FOR_JOBS
    taken = active(MOST_ACTIVE_REQUESTS - KEPT_FOR_JOBS, job_id=None)
    nodes: list[Node] = [*lone, starting("flexvm-a3u-3000")]
    with_job = World(nodes, [job(1, "flexvm-a3u-3000")], taken, cluster=BIG)
    assert asked(with_job) == [("flexvm-a3u-3000",)]


def refusal_of_first(of: World, kind: ErrorKind, code: str) -> Memory:
    """What is remembered after the first insertion of this world was refused."""
    subject = insertions(of)[0].subject
    until = NOW + timedelta(seconds=30)
    return Memory(failures={subject: Failure(kind, code, "text", until, Occasion.INSERT_REQUEST)})


def test_full_quota_fails_no_job_and_nobody_overtakes_whom_it_refused() -> None:
    first, second = replace(job(1, N0), priority=9), replace(job(2, N1), priority=5)
    memory = refusal_of_first(world([first]), ErrorKind.QUOTA, "quotaExceeded")
    of = world([first, second], memory)
    assert asked(of) == []
    assert of.actions(UpdateNode) == []
    assert told(of) == {1: WaitKind.PLACE, 2: WaitKind.PLACE}

    third = replace(job(3, "flexvm-a3u-2"), priority=10)
    assert asked(world([first, second, third], memory)) == [("flexvm-a3u-2",)]


def test_part_that_can_never_be_asked_for_fails_the_whole_job() -> None:
    members = names(1500)
    of = world([job(1, *members)])
    second = [a for a in with_groups(of, 0, 0) if isinstance(a, InsertRequest)][1]
    failure = Failure(
        ErrorKind.CONFIG, "invalid", "", NOW + timedelta(seconds=30), Occasion.INSERT_REQUEST
    )
    memory = Memory(failures={second.subject: failure})
    broken = world([job(1, *members)], memory)
    assert with_groups(broken, 0, 0) == []
    updates = [a for a in plan_with_groups(broken, 0, 0).actions if isinstance(a, UpdateNode)]
    assert [u.node for u in updates] == members


def test_pass_tells_a_bounded_number_of_jobs_and_every_failure() -> None:
    jobs = [job(number + 1, name) for number, name in enumerate(names(150))]
    of = world(jobs)
    assert len(of.actions(TellJob)) == MOST_TOLD_A_PASS

    of.requests = [
        request(f"r{j.job_id}", *j.nodes, state=RequestState.FAILED, job_id=j.job_id, error="X")
        for j in jobs
    ]
    assert len(of.actions(TellJob)) == len(jobs)


def test_task_with_the_id_of_its_array_is_told_alone() -> None:
    of = world([replace(job(7, N0), part="_3")])
    assert [a.part for a in of.plan().actions if isinstance(a, TellJob)] == ["_3"]


def test_comment_of_a_job_that_waits_for_its_turn_says_so() -> None:
    status = JobStatus(WaitKind.PLACE, 2, "a3-ultragpu-8g", "us-central1-a", code="quotaExceeded")
    assert job_comment(status) == (
        "slurm-hooks: waiting for its turn to ask for 2 x a3-ultragpu-8g in us-central1-a:"
        " too many resize requests are active in the region (quotaExceeded)"
    )
