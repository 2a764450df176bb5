"""What is reaped, at which sighting and age, and what never is."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from slurm_hooks.compute.model import (
    ComputeSnapshot,
    Group,
    GroupReference,
    Instance,
    InstanceStatus,
    RequestState,
    ResizeRequest,
    Scope,
    ScopeKind,
    Template,
    WorkloadPolicy,
)
from slurm_hooks.compute.ownership import CLUSTER_LABEL, Mark, encode
from slurm_hooks.reconcile.actions import (
    Action,
    DeleteGroup,
    DeleteInstance,
    DeleteTemplate,
    DeleteWorkloadPolicy,
    NoticeKind,
    Plan,
)
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.memory import remember
from slurm_hooks.reconcile.sightings import BELIEVED_AFTER
from slurm_hooks.reconcile.snapshot import Memory, Snapshot
from slurm_hooks.reconcile.specifications import workload_policy_of
from slurm_hooks.slurm.model import Job, JobState, Node, SlurmSnapshot
from tests.unit.reconcile.builders import (
    CLUSTER,
    GROUP,
    N0,
    NOW,
    World,
    job,
    node,
    off,
    request,
    vm,
)

GRACE = timedelta(seconds=CLUSTER.policy.reap_grace_seconds)
SCOPE = Scope(ScopeKind.ZONE, "us-central1-a")
OLD_GROUP = Group(
    GroupReference(SCOPE, "flexvm-a3u-11111111"),
    "flexvm-a3u-11111111",
    description=encode(Mark("flexvm", "a3u", generation="11111111")),
    creation_time_utc=NOW - timedelta(days=1),
)
OLD_TEMPLATE = Template("flexvm-a3u-11111111", {CLUSTER_LABEL: "flexvm"}, NOW - timedelta(days=1))
ORPHAN = replace(vm("flexvm-gone-7"), name="somebody")
A3U = CLUSTER.pools["a3u"]
COMPACT = replace(CLUSTER, pools={**CLUSTER.pools, "a3u": replace(A3U, compact_placement=True)})
REGION = Scope(ScopeKind.REGION, "us-central1")
POLICY = WorkloadPolicy(
    REGION, workload_policy_of(CLUSTER, A3U).name, encode(Mark("flexvm", "a3u")), NOW - timedelta(1)
)


def snapshot(
    *vms: Instance,
    nodes: tuple[Node, ...] = (),
    groups: tuple[Group, ...] = (),
    requests: tuple[ResizeRequest, ...] = (),
    templates: tuple[Template, ...] = (),
    policies: tuple[WorkloadPolicy, ...] = (),
) -> Snapshot:
    whole = World(nodes or (off(N0),), requests=requests, vms=vms).snapshot()
    assert isinstance(whole.compute, ComputeSnapshot)
    compute = replace(
        whole.compute,
        groups={group.reference: group for group in groups},
    )
    return replace(whole, compute=compute, templates=templates, workload_policies=policies)


def second_plan(view: Snapshot, now: datetime = NOW) -> Plan:
    """What is decided when a pass, long enough before, saw the same."""
    first = decide(view, CLUSTER, now - BELIEVED_AFTER)
    memory = remember(Memory(), first, (), now - BELIEVED_AFTER)
    return decide(replace(view, memory=memory), CLUSTER, now)


def reaped(view: Snapshot, now: datetime = NOW) -> list[Action]:
    kinds = (DeleteInstance, DeleteGroup, DeleteTemplate, DeleteWorkloadPolicy)
    return [a for a in second_plan(view, now).actions if isinstance(a, kinds)]


GROUP_OF_JOB = Group(
    GroupReference(SCOPE, f"{GROUP.reference.name}-j7-0"),
    GROUP.template,
    description=encode(Mark("flexvm", "a3u", generation=GROUP.template[-8:], job_id=7, restarts=0)),
    creation_time_utc=NOW - timedelta(days=1),
)


@pytest.mark.parametrize(
    ("jobs", "is_reaped"),
    [
        ([], True),
        ([job(7, N0, state=JobState.COMPLETED)], True),
        ([job(7, N0, restarts=1)], True),
        ([job(7, N0)], False),
        ([job(7, N0, state=JobState.RUNNING)], False),
    ],
)
def test_group_of_a_job_goes_when_the_job_has_left_that_start(
    jobs: list[Job], is_reaped: bool
) -> None:
    whole = snapshot(groups=(GROUP_OF_JOB,))
    assert isinstance(whole.slurm, SlurmSnapshot)
    seen = replace(whole, slurm=replace(whole.slurm, jobs={j.job_id: j for j in jobs}))
    plan = decide(seen, CLUSTER, NOW)
    assert (DeleteGroup(GROUP_OF_JOB.reference).subject in plan.sightings.unneeded) is is_reaped


def test_group_of_a_job_stays_while_a_job_is_unreadable() -> None:
    whole = snapshot(groups=(GROUP_OF_JOB,))
    assert isinstance(whole.slurm, SlurmSnapshot)
    seen = replace(whole, slurm=replace(whole.slurm, unreadable=("job 7",)))
    assert decide(seen, CLUSTER, NOW).sightings.unneeded == {}


@pytest.mark.parametrize(
    "view",
    [
        snapshot(ORPHAN),
        snapshot(groups=(OLD_GROUP,)),
        snapshot(templates=(OLD_TEMPLATE,)),
        snapshot(policies=(POLICY,)),
        snapshot(vm(N0)),
    ],
    ids=["VM without node", "group", "template", "policy", "VM of a powered-down node"],
)
def test_what_nothing_needs_goes_at_the_second_sighting(view: Snapshot) -> None:
    assert decide(view, CLUSTER, NOW).actions == ()
    assert len(reaped(view)) == 1


@pytest.mark.parametrize(
    ("view", "created"),
    [
        (snapshot(ORPHAN), ORPHAN.creation_time_utc),
        (snapshot(groups=(OLD_GROUP,)), OLD_GROUP.creation_time_utc),
        (snapshot(templates=(OLD_TEMPLATE,)), OLD_TEMPLATE.creation_time_utc),
        (snapshot(policies=(POLICY,)), POLICY.creation_time_utc),
        (snapshot(vm(N0)), vm(N0).creation_time_utc),
    ],
    ids=["VM without node", "group", "template", "policy", "VM of a powered-down node"],
)
def test_what_is_not_older_than_the_grace_stays(view: Snapshot, created: datetime) -> None:
    assert reaped(view, created + GRACE) == []
    assert len(reaped(view, created + GRACE + BELIEVED_AFTER + timedelta(seconds=1))) == 1


def test_sighting_asks_for_another_look_until_it_is_believed() -> None:
    view = snapshot(ORPHAN)
    first = decide(view, CLUSTER, NOW)
    assert first.unsettled
    seen = replace(view, memory=remember(Memory(), first, (), NOW))
    assert decide(seen, CLUSTER, NOW + BELIEVED_AFTER / 2).unsettled
    assert not decide(seen, CLUSTER, NOW + BELIEVED_AFTER).unsettled


def test_sighting_must_be_of_the_same_vm() -> None:
    before = NOW - BELIEVED_AFTER
    memory = remember(Memory(), decide(snapshot(ORPHAN), CLUSTER, before), (), before)
    namesake = replace(ORPHAN, instance_id="99")
    later = decide(replace(snapshot(namesake), memory=memory), CLUSTER, NOW)
    assert later.actions == ()


def test_pass_without_it_takes_the_sighting_back() -> None:
    memory = remember(Memory(), decide(snapshot(ORPHAN), CLUSTER, NOW), (), NOW)
    without = decide(replace(snapshot(), memory=memory), CLUSTER, NOW)
    memory = remember(memory, without, (), NOW)
    later = NOW + BELIEVED_AFTER
    assert decide(replace(snapshot(ORPHAN), memory=memory), CLUSTER, later).actions == ()


def test_vm_without_a_group_is_deleted_by_itself() -> None:
    (action,) = reaped(snapshot(replace(ORPHAN, group=None)))
    assert isinstance(action, DeleteInstance)
    assert action.group is None


@pytest.mark.parametrize(
    "spared",
    [
        replace(ORPHAN, labels={}),
        replace(ORPHAN, labels={CLUSTER_LABEL: "flexvm2"}),
        replace(ORPHAN, name="flexvm-a3u-3", labels={"team": "flexvm"}),
        replace(ORPHAN, status=InstanceStatus.STOPPING),
        replace(ORPHAN, status=InstanceStatus.UNKNOWN),
        replace(ORPHAN, creation_time_utc=None),
    ],
    ids=[
        "no label",
        "other cluster's",
        "node-like name",
        "goes already",
        "unknown state",
        "unknown age",
    ],
)
def test_vm_that_is_not_ours_or_not_understood_is_never_touched(spared: Instance) -> None:
    assert reaped(snapshot(spared)) == []


def test_vm_that_a_request_still_waits_for_stays() -> None:
    waiting = request("r", ORPHAN.name, job_id=12)
    assert reaped(snapshot(ORPHAN, requests=(waiting,))) == []
    over = request("r", ORPHAN.name, job_id=12, state=RequestState.SUCCEEDED)
    assert len(reaped(snapshot(ORPHAN, requests=(over,)))) == 1


def test_vm_stays_where_a_record_of_slurm_could_be_its_node() -> None:
    view = snapshot(ORPHAN)
    assert isinstance(view.slurm, SlurmSnapshot)
    unreadable = replace(view, slurm=replace(view.slurm, unreadable=("NodeName=?",)))
    assert reaped(unreadable) == []


def test_vm_of_a_node_that_slurm_knows_but_we_do_not_serve_stays() -> None:
    foreign = node("elsewhere-1")
    assert reaped(snapshot(replace(ORPHAN, name="elsewhere-1"), nodes=(foreign,))) == []


def test_two_vms_of_one_name_are_reported_only() -> None:
    view = snapshot(ORPHAN)
    assert isinstance(view.compute, ComputeSnapshot)
    twin = replace(ORPHAN, zone="us-central1-b", instance_id="88")
    compute = replace(view.compute, duplicates=(ORPHAN, twin))
    plan = second_plan(replace(view, compute=compute))
    assert plan.actions == ()
    assert {n.kind for n in plan.notices} == {NoticeKind.DUPLICATE_VM}


@pytest.mark.parametrize(
    "view",
    [
        snapshot(groups=(replace(OLD_GROUP, target_size=1),)),
        snapshot(
            replace(vm(N0), group=OLD_GROUP.reference), nodes=(node(N0),), groups=(OLD_GROUP,)
        ),
        snapshot(
            groups=(OLD_GROUP,),
            requests=(
                replace(
                    request("r", N0),
                    reference=replace(request("r", N0).reference, group=OLD_GROUP.reference),
                ),
            ),
        ),
        snapshot(groups=(replace(OLD_GROUP, description="by hand"),)),
        snapshot(groups=(replace(OLD_GROUP, description=encode(Mark("other", "a3u", "1"))),)),
        snapshot(groups=(replace(OLD_GROUP, description=encode(Mark("flexvm", "a3u"))),)),
        snapshot(groups=(replace(OLD_GROUP, creation_time_utc=None),)),
    ],
    ids=[
        "target size",
        "VM",
        "waiting request",
        "not marked",
        "other cluster's",
        "no generation",
        "unknown age",
    ],
)
def test_group_in_use_or_not_provably_outdated_stays(view: Snapshot) -> None:
    assert [a for a in reaped(view) if isinstance(a, DeleteGroup)] == []


def test_group_of_the_present_generation_stays_though_empty() -> None:
    present = Group(GROUP.reference, GROUP.template, 0, GROUP.description, NOW - timedelta(days=1))
    assert reaped(snapshot(groups=(present,))) == []


def test_group_of_a_pool_that_is_no_more_goes() -> None:
    mark = encode(Mark("flexvm", "removed", generation="22222222"))
    assert len(reaped(snapshot(groups=(replace(OLD_GROUP, description=mark),)))) == 1


@pytest.mark.parametrize(
    ("template", "groups"),
    [
        (OLD_TEMPLATE, (OLD_GROUP,)),
        (replace(OLD_TEMPLATE, name=GROUP.template), ()),
        (replace(OLD_TEMPLATE, labels={}), ()),
        (replace(OLD_TEMPLATE, labels={CLUSTER_LABEL: "other"}), ()),
        (replace(OLD_TEMPLATE, creation_time_utc=None), ()),
    ],
    ids=["a group uses it", "present generation", "no label", "other cluster's", "unknown age"],
)
def test_template_in_use_or_not_ours_stays(template: Template, groups: tuple[Group, ...]) -> None:
    actions = reaped(snapshot(templates=(template,), groups=groups))
    assert [a for a in actions if isinstance(a, DeleteTemplate)] == []


def test_policy_of_a_pool_that_still_places_jobs_stays_though_no_group_uses_it() -> None:
    view = snapshot(policies=(POLICY,))
    assert decide(view, COMPACT, NOW).sightings.unneeded == {}
    elsewhere = replace(POLICY, scope=Scope(ScopeKind.REGION, "us-east1"))
    moved = decide(snapshot(policies=(elsewhere,)), COMPACT, NOW)
    deletion = DeleteWorkloadPolicy(elsewhere.scope, elsewhere.name)
    assert moved.sightings.unneeded.keys() == {deletion.subject}


@pytest.mark.parametrize(
    ("policy", "groups"),
    [
        (POLICY, (replace(OLD_GROUP, workload_policy=POLICY.name),)),
        (replace(POLICY, description=""), ()),
        (replace(POLICY, description=encode(Mark("other", "a3u"))), ()),
        (replace(POLICY, creation_time_utc=None), ()),
    ],
    ids=["a group uses it", "not marked", "other cluster's", "unknown age"],
)
def test_policy_in_use_or_not_ours_stays(policy: WorkloadPolicy, groups: tuple[Group, ...]) -> None:
    actions = reaped(snapshot(policies=(policy,), groups=groups))
    assert [a for a in actions if isinstance(a, DeleteWorkloadPolicy)] == []


def test_group_of_another_region_keeps_no_policy_of_the_same_name() -> None:
    reference = GroupReference(Scope(ScopeKind.ZONE, "us-east1-b"), "elsewhere")
    namesake = replace(OLD_GROUP, reference=reference, workload_policy=POLICY.name)
    actions = reaped(snapshot(policies=(POLICY,), groups=(replace(namesake, target_size=1),)))
    assert actions == [DeleteWorkloadPolicy(POLICY.scope, POLICY.name)]
