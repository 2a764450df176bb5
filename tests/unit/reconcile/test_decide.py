"""What is decided for nodes, requests and jobs, case by case."""

from dataclasses import replace
from datetime import timedelta

from slurm_hooks.compute.errors import ErrorKind
from slurm_hooks.compute.model import InstanceStatus, Operation, RequestState, Scope, ScopeKind
from slurm_hooks.compute.ownership import Mark, decode, encode
from slurm_hooks.reconcile.actions import (
    CancelRequest,
    DeleteInstance,
    DeleteRequest,
    Expectation,
    ForgetCall,
    InsertGroup,
    InsertRequest,
    NoticeKind,
    TellJob,
    UpdateNode,
    WaitKind,
)
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.snapshot import Failure, Memory, Snapshot, System, Unavailable
from slurm_hooks.slurm.client import NodeUpdate
from slurm_hooks.slurm.model import BaseState, JobState, Node, NodeFlag, NodeState, SlurmSnapshot
from tests.unit.reconcile.builders import (
    CLUSTER,
    GROUP,
    N0,
    N1,
    NOW,
    World,
    call,
    job,
    long_seen,
    node,
    off,
    request,
    starting,
    stopping,
    vm,
)

OPERATION = Operation("operation-1", Scope(ScopeKind.ZONE, "us-central1-a"))


def requests_of(world: World) -> list[InsertRequest]:
    return [a for a in world.plan().actions if isinstance(a, InsertRequest)]


def updates_of(world: World) -> list[UpdateNode]:
    return [a for a in world.plan().actions if isinstance(a, UpdateNode)]


def told_of(world: World) -> list[TellJob]:
    return [a for a in world.plan().actions if isinstance(a, TellJob)]


def test_job_gets_one_request_with_exactly_its_nodes() -> None:
    world = World([starting(N0), starting(N1)], [job(12, N0, N1)], calls=(call(12, N0, N1),))
    (action,) = requests_of(world)
    assert action.request.instances == (N0, N1)
    assert action.job_id == 12
    mark = decode(action.request.description)
    assert mark is not None and (mark.job_id, mark.restarts) == (12, 0)


def test_job_is_found_in_the_queue_when_the_resume_file_is_missing() -> None:
    world = World([starting(N0), starting(N1)], [job(12, N0, N1)])
    (action,) = requests_of(world)
    assert (action.job_id, action.request.instances) == (12, (N0, N1))


def test_vm_that_still_leaves_has_to_be_looked_at_again() -> None:
    """A one-shot pass that ended here would never see the VM's end, nor clean up after it."""
    world = World([stopping(N0)], vms=[vm(N0, InstanceStatus.STOPPING)])
    assert not world.plan().actions
    assert world.plan().unsettled


def test_jobs_that_came_first_are_asked_for_first() -> None:
    world = World([starting(N0), starting(N1)], [job(12, N1), job(13, N0)])
    assert [a.job_id for a in requests_of(world)] == [12, 13]


def test_shared_node_is_asked_for_by_the_job_that_slurm_named() -> None:
    world = World(
        [starting(N0), starting(N1)], [job(12, N0), job(13, N0, N1)], calls=(call(13, N0, N1),)
    )
    assert [(a.job_id, a.request.instances) for a in requests_of(world)] == [(13, (N0, N1))]


def test_request_of_another_cluster_is_never_touched() -> None:
    foreign = replace(
        request("r", N0, state=RequestState.FAILED, error="QUOTA_EXCEEDED"),
        description=encode(Mark("other", "a3u", job_id=12, restarts=0)),
    )
    world = World([starting(N0)], [job(12, N0)], [foreign])
    kinds = {type(action) for action in world.plan().actions}
    assert kinds == {InsertRequest, TellJob}


def test_two_jobs_get_two_requests() -> None:
    world = World([starting(N0), starting(N1)], [job(12, N0), job(13, N1)])
    assert [(a.job_id, a.request.instances) for a in requests_of(world)] == [
        (12, (N0,)),
        (13, (N1,)),
    ]


def test_node_powered_up_by_hand_gets_a_request_of_its_own() -> None:
    world = World([starting(N0, BaseState.IDLE), starting(N1, BaseState.IDLE)])
    assert [(a.job_id, a.request.instances) for a in requests_of(world)] == [
        (None, (N0,)),
        (None, (N1,)),
    ]


def test_missing_group_is_created_once_before_any_request() -> None:
    world = World([starting(N0), starting(N1)], [job(12, N0), job(13, N1)], has_group=False)
    assert len(world.actions(InsertGroup)) == 1
    assert requests_of(world) == []
    assert {t.status.kind for t in told_of(world) if t.status} == {WaitKind.GROUP}


def test_nothing_is_asked_for_while_the_same_request_is_in_flight() -> None:
    world = World([starting(N0)], [job(12, N0)])
    (action,) = requests_of(world)
    world.memory = Memory(in_flight={action.subject: OPERATION})
    assert requests_of(world) == []
    assert world.plan().unsettled


def test_requeued_job_gets_a_request_under_a_new_name() -> None:
    first = requests_of(World([starting(N0)], [job(12, N0)]))[0].request.reference
    second = requests_of(World([starting(N0)], [job(12, N0, restarts=1)]))[0].request.reference
    assert first != second


def test_name_of_a_finished_request_is_not_used_again() -> None:
    first = requests_of(World([starting(N0)], [job(12, N0)]))[0].request.reference.name
    old = request(first, N0, state=RequestState.CANCELLED, job_id=12)
    (action,) = requests_of(World([starting(N0)], [job(12, N0)], [old]))
    assert action.request.reference.name != first


def test_waiting_job_is_told_for_what_with_which_code_since_when() -> None:
    waiting = request("r", N0, job_id=12, last_attempt="ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    (tell,) = told_of(World([starting(N0)], [job(12, N0)], [waiting]))
    assert tell.job_id == 12 and tell.status is not None
    assert tell.status.kind is WaitKind.CAPACITY
    assert tell.status.code == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert tell.status.since_utc == NOW - timedelta(minutes=5)


def test_waiting_alone_is_settled_and_asks_for_nothing() -> None:
    world = World([starting(N0)], [job(12, N0, admin_comment="of a person")], [request("r", N0)])
    assert world.plan().actions == ()
    assert not world.plan().unsettled


def test_comment_of_a_person_is_never_overwritten() -> None:
    world = World([starting(N0)], [job(12, N0, admin_comment="keep me")])
    assert told_of(world) == []


def test_comment_is_cleared_when_the_job_runs() -> None:
    running = job(12, N0, state=JobState.RUNNING, admin_comment="slurm-hooks: waiting")
    (tell,) = told_of(World([node(N0, base=BaseState.ALLOCATED)], [running], vms=[vm(N0)]))
    assert tell.status is None


def test_comment_of_a_failure_stays_while_the_job_is_pending() -> None:
    pending = job(12, state=JobState.PENDING, admin_comment="slurm-hooks: failed: x")
    assert told_of(World([off(N0)], [pending])) == []


def test_cancelled_job_releases_its_resize_request() -> None:
    world = World(
        [starting(N0, BaseState.IDLE), starting(N1, BaseState.IDLE)],
        [job(12, N0, N1, state=JobState.CANCELLED)],
        [request("r", N0, N1, job_id=12)],
    )
    assert len(world.actions(CancelRequest)) == 1
    assert {u.node for u in updates_of(world)} == {N0, N1}
    assert {u.expectation for u in updates_of(world)} == {Expectation.STARTING_WITHOUT_JOB}
    assert {u.updates for u in updates_of(world)} == {(NodeUpdate.POWER_DOWN_FORCE,)}


def test_job_cancelled_before_its_request_was_made_asks_for_nothing() -> None:
    world = World([starting(N0, BaseState.IDLE)], calls=(call(12, N0),))
    assert requests_of(world) == []
    assert [u.node for u in updates_of(world)] == [N0]


def test_node_is_still_abandoned_when_its_request_is_already_cancelled() -> None:
    cancelled = request("r", N0, state=RequestState.CANCELLED, job_id=12)
    world = World([starting(N0, BaseState.IDLE)], requests=[cancelled])
    assert [u.node for u in updates_of(world)] == [N0]
    assert world.actions(DeleteRequest) == []


def test_next_job_on_the_same_nodes_keeps_the_place_in_the_queue() -> None:
    world = World(
        [starting(N0), starting(N1)], [job(13, N0, N1)], [request("r", N0, N1, job_id=12)]
    )
    assert world.actions(CancelRequest) == []
    assert requests_of(world) == []


def test_request_with_one_unwanted_member_is_given_up() -> None:
    world = World([starting(N0), off(N1)], [job(13, N0)], [request("r", N0, N1, job_id=12)])
    assert len(world.actions(CancelRequest)) == 1
    assert requests_of(world) == []


def test_vms_of_a_cancelled_job_that_boot_already_are_kept_for_others() -> None:
    world = World(
        [starting(N0, BaseState.IDLE)],
        requests=[request("r", N0, state=RequestState.SUCCEEDED, job_id=12)],
        vms=[vm(N0, InstanceStatus.STAGING)],
    )
    assert world.plan().steps == {N0: Step.AWAIT_BOOT}
    assert updates_of(world) == []


def test_nodes_read_before_their_job_ended_are_looked_at_again() -> None:
    world = World([starting(N0)], [job(12, N0, state=JobState.CANCELLED)])
    assert world.plan().actions == ()
    assert world.plan().unsettled


def test_failed_request_fails_the_start_with_its_code_and_tells_the_job() -> None:
    failed = request("r", N0, N1, state=RequestState.FAILED, job_id=12, error="QUOTA_EXCEEDED")
    world = World([starting(N0), starting(N1)], [job(12, N0, N1)], [failed])
    assert {(u.node, u.code) for u in updates_of(world)} == {
        (N0, "QUOTA_EXCEEDED"),
        (N1, "QUOTA_EXCEEDED"),
    }
    (tell,) = told_of(world)
    assert tell.status is not None and tell.status.kind is WaitKind.FAILED
    assert tell.status.code == "QUOTA_EXCEEDED"
    assert world.actions(DeleteRequest) == []


def test_failed_request_of_an_earlier_start_does_not_fail_the_next_one() -> None:
    failed = request("r", N0, state=RequestState.FAILED, job_id=12, restarts=0, error="X")
    world = World([starting(N0)], [job(12, N0, restarts=1)], [failed])
    assert updates_of(world) == []
    assert len(requests_of(world)) == 1
    assert world.plan().sightings.finished == {DeleteRequest(failed.reference).subject}


def test_refused_request_fails_the_start_of_its_job_alone() -> None:
    world = World([starting(N0), starting(N1)], [job(12, N0), job(13, N1)])
    refused = requests_of(world)[0].subject
    failure = Failure(ErrorKind.PERMISSION, "forbidden", "no", NOW + timedelta(seconds=9))
    world.memory = Memory(failures={refused: failure})
    assert [(u.node, u.code) for u in updates_of(world)] == [(N0, "forbidden")]
    assert [a.job_id for a in requests_of(world)] == [13]
    assert NoticeKind.FAILURE in {notice.kind for notice in world.plan().notices}


def test_refusal_does_not_stand_for_ever() -> None:
    world = World([starting(N0)], [job(12, N0)])
    refused = requests_of(world)[0].subject
    failure = Failure(ErrorKind.PERMISSION, "forbidden", "no", NOW - timedelta(seconds=1))
    world.memory = Memory(failures={refused: failure})
    assert len(requests_of(world)) == 1


def test_suspended_node_loses_its_vm() -> None:
    world = World([stopping(N0)], vms=[vm(N0)])
    (action,) = world.actions(DeleteInstance)
    assert isinstance(action, DeleteInstance)
    assert (action.name, action.zone, action.group) == (N0, "us-central1-a", GROUP.reference)


def test_suspended_node_that_boots_loses_its_vm() -> None:
    world = World([stopping(N0)], vms=[vm(N0, InstanceStatus.PROVISIONING)])
    assert len(world.actions(DeleteInstance)) == 1


def test_vm_that_is_being_deleted_is_not_deleted_again() -> None:
    world = World([stopping(N0)], vms=[vm(N0, InstanceStatus.STOPPING)])
    assert world.actions(DeleteInstance) == []
    running = World([stopping(N0)], vms=[vm(N0)])
    (action,) = running.actions(DeleteInstance)
    running.memory = Memory(in_flight={action.subject: OPERATION})
    assert running.actions(DeleteInstance) == []


def test_suspended_node_in_a_queued_request_cancels_it() -> None:
    world = World([stopping(N0)], requests=[request("r", N0, job_id=12)])
    assert len(world.actions(CancelRequest)) == 1


def test_vm_of_a_powered_down_node_goes_only_at_the_second_sighting() -> None:
    world = World([off(N0)], vms=[vm(N0)])
    assert world.actions(DeleteInstance) == []
    world.memory = long_seen(surplus=[N0])
    assert len(world.actions(DeleteInstance)) == 1


def test_whole_gang_waits_while_one_old_vm_of_its_names_goes() -> None:
    world = World(
        [starting(N0), starting(N1)], [job(12, N0, N1)], vms=[vm(N1, InstanceStatus.STOPPING)]
    )
    assert requests_of(world) == []
    (tell,) = told_of(world)
    assert tell.status is not None and tell.status.kind is WaitKind.DELETION


def test_vm_that_vanished_while_booting_is_asked_for_again_at_the_second_sighting() -> None:
    granted = request("r", N0, state=RequestState.SUCCEEDED, job_id=12)
    world = World([starting(N0)], [job(12, N0)], [granted])
    assert requests_of(world) == []
    world.memory = long_seen(missing=[N0])
    assert len(requests_of(world)) == 1


def test_registered_node_without_vm_is_lost_at_the_second_sighting() -> None:
    world = World([node(N0, base=BaseState.ALLOCATED)], [job(12, N0, state=JobState.RUNNING)])
    assert updates_of(world) == []
    world.memory = long_seen(missing=[N0])
    (update,) = updates_of(world)
    assert update.updates == (NodeUpdate.DOWN, NodeUpdate.POWER_DOWN)
    assert update.expectation is Expectation.REGISTERED


def test_node_that_slurm_is_about_to_suspend_is_not_taken_for_lost() -> None:
    asked = node(N0, NodeFlag.POWER_DOWN)
    world = World([asked], memory=long_seen(missing=[N0]))
    assert world.plan().actions == ()
    stuck = node(N0, NodeFlag.POWER_DOWN, NodeFlag.COMPLETING)
    assert len(updates_of(World([stuck], memory=long_seen(missing=[N0])))) == 1


def test_node_after_resume_timeout_comes_back_once_its_vm_is_gone() -> None:
    reason = "Node unexpectedly rebooted : ResumeTimeout reached"
    down = node(N0, NodeFlag.POWERED_DOWN, base=BaseState.DOWN, reason=reason)
    with_vm = World([down], vms=[vm(N0)])
    assert len(with_vm.actions(DeleteInstance)) == 1
    assert updates_of(with_vm) == []
    (update,) = updates_of(World([down]))
    assert update.updates == (NodeUpdate.POWER_DOWN,)


def test_node_set_down_by_a_person_is_left_down() -> None:
    down = node(N0, NodeFlag.POWERED_DOWN, base=BaseState.DOWN, reason="broken fan")
    assert World([down]).plan().actions == ()


def test_granted_request_is_kept_until_its_last_vm_is_gone() -> None:
    granted = request("r", N0, N1, state=RequestState.SUCCEEDED, job_id=12)
    needed = World([off(N0), stopping(N1)], [], [granted], [vm(N1)])
    assert needed.plan().sightings.finished == frozenset()
    over = World([off(N0), off(N1)], [], [granted])
    assert over.plan().sightings.finished == {DeleteRequest(granted.reference).subject}


def test_call_is_forgotten_when_its_nodes_have_requests() -> None:
    open_call = World([starting(N0)], [job(12, N0)], calls=(call(12, N0),))
    assert open_call.actions(ForgetCall) == []
    closed = World([starting(N0)], [job(12, N0)], [request("r", N0)], calls=(call(12, N0),))
    assert len(closed.actions(ForgetCall)) == 1


def test_nothing_is_decided_about_what_could_not_be_read() -> None:
    down = Unavailable(System.SLURM, "no answer")
    whole = World([stopping(N0)], vms=[vm(N0)]).snapshot()
    for snapshot in (
        Snapshot(down, whole.compute),
        Snapshot(whole.slurm, Unavailable(System.COMPUTE, "503")),
    ):
        plan = decide(snapshot, CLUSTER, NOW)
        assert plan.actions == ()
        assert [notice.kind for notice in plan.notices] == [NoticeKind.UNAVAILABLE]


def test_node_with_an_unknown_flag_is_left_alone_and_reported() -> None:
    odd = Node(
        N0,
        NodeState(
            BaseState.IDLE,
            frozenset({NodeFlag.CLOUD, NodeFlag.POWERING_DOWN}),
            frozenset({"NEW_WORD"}),
        ),
    )
    plan = World([odd], vms=[vm(N0)]).plan()
    assert plan.actions == ()
    assert [(n.kind, n.subject) for n in plan.notices] == [(NoticeKind.UNKNOWN_FLAG, N0)]


def test_nodes_that_are_not_ours_are_never_touched() -> None:
    foreign = [
        node("other-a3u-0", NodeFlag.POWERING_DOWN),
        node("flexvmx-a3u-9", NodeFlag.POWERING_UP),
        Node("flexvm-a3u-99", NodeState(BaseState.IDLE, frozenset({NodeFlag.POWERING_UP}))),
        Node(N1, NodeState(BaseState.IDLE, frozenset({NodeFlag.POWERING_DOWN}))),
    ]
    assert World(foreign, vms=[vm(N1)]).plan().actions == ()


def test_unreadable_record_is_reported_and_stops_nothing() -> None:
    whole = World([starting(N0)], [job(12, N0)]).snapshot()
    assert isinstance(whole.slurm, SlurmSnapshot)
    slurm = SlurmSnapshot(whole.slurm.nodes, whole.slurm.jobs, unreadable=("NodeName=???",))
    plan = decide(Snapshot(slurm, whole.compute), CLUSTER, NOW)
    assert NoticeKind.UNREADABLE in {notice.kind for notice in plan.notices}
    assert any(isinstance(action, InsertRequest) for action in plan.actions)
