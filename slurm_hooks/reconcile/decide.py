"""The brain: one pure function from a snapshot to a plan.

It does no input or output and takes the time as an argument. What it does not understand it
leaves alone; what it could not read it does not judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import ComputeSnapshot, InstanceStatus, RequestState
from slurm_hooks.reconcile import refusals
from slurm_hooks.reconcile.actions import (
    Action,
    CreateInstances,
    ForgetCall,
    InsertGroup,
    InsertRequest,
    Notice,
    NoticeKind,
    Plan,
)
from slurm_hooks.reconcile.kill_cap import held_kills, suspended_nodes
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import RequestPhase, VmPhase
from slurm_hooks.reconcile.plan_addresses import plan_addresses
from slurm_hooks.reconcile.plan_components import plan_components, with_components
from slurm_hooks.reconcile.plan_end_of_life import plan_end_of_life
from slurm_hooks.reconcile.plan_generations import plan_generations
from slurm_hooks.reconcile.plan_holds import plan_holds
from slurm_hooks.reconcile.plan_jobs import tell_jobs
from slurm_hooks.reconcile.plan_login import LoginPlan, plan_login
from slurm_hooks.reconcile.plan_nodes import SETTLED_STEPS, is_powering_up, node_actions
from slurm_hooks.reconcile.plan_reaping import plan_reaping, unneeded
from slurm_hooks.reconcile.plan_reasons import plan_reasons
from slurm_hooks.reconcile.plan_recycling import plan_recycling
from slurm_hooks.reconcile.plan_removals import plan_removals
from slurm_hooks.reconcile.plan_repairs import plan_repairs
from slurm_hooks.reconcile.plan_reports import report_notices, with_report
from slurm_hooks.reconcile.plan_requests import finished_requests, plan_requests
from slurm_hooks.reconcile.plan_waits import count_by_pool, plan_waits, waiting_pools, waiting_views
from slurm_hooks.reconcile.scene import Planner, Scene
from slurm_hooks.reconcile.sightings import Sightings, seen_since
from slurm_hooks.reconcile.snapshot import Memory, Snapshot, Unavailable
from slurm_hooks.reconcile.views import World, join
from slurm_hooks.slurm.model import SlurmSnapshot

PLANNERS: tuple[Planner, ...] = (
    plan_reaping,
    plan_end_of_life,
    plan_recycling,
    plan_generations,
    plan_removals,
    plan_components,
    plan_holds,
    plan_reasons,
    plan_addresses,
    plan_waits,
)
"""Concerns beside the node table, in the order in which their actions are carried out."""


def decide(snapshot: Snapshot, cluster: Cluster, now: datetime, confirmed_kills: int = 0) -> Plan:
    """Compare what Slurm wants with what Compute Engine has, and name the next actions.

    `now` is aware and in UTC. `confirmed_kills` is how many kills an operator allows this pass.
    Never raises for any snapshot: one bad node stops nothing.
    """
    slurm, compute = snapshot.slurm, snapshot.compute
    if isinstance(slurm, Unavailable) or isinstance(compute, Unavailable):
        return _undecided(snapshot)
    memory = _without_stale_failures(snapshot.memory, now)
    world = join(cluster, slurm, compute, snapshot.resume_calls, memory, now)
    scene = Scene(
        cluster,
        slurm,
        compute,
        world,
        memory,
        now,
        snapshot.templates,
        snapshot.workload_policies,
        repairs=snapshot.repairs,
        report=snapshot.report,
    )
    requests = plan_requests(scene)
    repairs, login = plan_repairs(scene), plan_login(scene)
    wanted: Iterable[Action] = [
        *tell_jobs(scene, requests),
        *node_actions(scene),
        *requests.actions,
        *login.actions,
        *_closed_calls(snapshot, world),
        *(action for planner in PLANNERS for action in planner(scene)),
        *repairs.actions,
    ]
    wanted = with_report(scene, with_components(scene, wanted))
    busy = memory.in_flight.keys() | memory.failures.keys()
    free = _once_each(
        action
        for action in wanted
        if action.subject not in busy and not refusals.stands(memory, action, now)
    )
    kills = held_kills(scene, free, confirmed_kills)
    held = {action.subject: action for part in kills for action in part.actions}
    actions = tuple(action for action in free if action.subject not in held)
    waiting = waiting_views(scene, requests)
    sightings = _sightings(scene, login)
    second_look = sightings.seconds_to_belief(now)
    is_new = not sightings.finished <= memory.sightings.finished
    return Plan(
        actions=actions,
        notices=(
            *_notices(slurm, compute, memory),
            *(part.notice for part in kills),
            *repairs.notices,
            *report_notices(scene),
            *login.notices,
            *waiting_pools(scene, requests, waiting),
        ),
        unsettled=_is_unsettled(world, memory, actions) or is_new or second_look is not None,
        steps={name: view.step for name, view in world.views.items()},
        held=tuple(held.values()),
        kills_in_question=max((part.count for part in kills), default=0),
        sightings=sightings,
        second_look_seconds=second_look,
        suspended=suspended_nodes(slurm, memory.suspended),
        waiting=count_by_pool(scene, waiting),
        login_lacking=login.lacking,
    )


_MISSING_STEPS = frozenset({Step.REQUEST_AGAIN, Step.LOSE_NODE, Step.LOSE_JOBS, Step.SET_ASIDE})
_SIGHTED_STEPS = _MISSING_STEPS | {Step.DELETE_SURPLUS_VM}


def _sightings(scene: Scene, login: LoginPlan) -> Sightings:
    """What is seen now that needs a second sighting, and since when in a row."""
    before, views, now = scene.memory.sightings, scene.world.views, scene.now
    doubtful = [view for view in views.values() if view.step in _SIGHTED_STEPS]
    missing = [view.node.name for view in doubtful if view.step in _MISSING_STEPS]
    missing += login.doubtful
    surplus = [view.node.name for view in doubtful if view.step is Step.DELETE_SURPLUS_VM]
    return Sightings(
        missing=seen_since(before.missing, missing, now),
        surplus=seen_since(before.surplus, surplus, now),
        unneeded=seen_since(before.unneeded, (act.subject for act in unneeded(scene)), now),
        finished=frozenset(action.subject for action in finished_requests(scene)),
    )


def _undecided(snapshot: Snapshot) -> Plan:
    """No action; what the passes before have sighted stays."""
    slurm, memory = snapshot.slurm, snapshot.memory
    suspended = memory.suspended
    if not isinstance(slurm, Unavailable):
        suspended = suspended_nodes(slurm, suspended)
    return Plan(
        notices=tuple(_unavailable(slurm, snapshot.compute)),
        unsettled=True,
        sightings=memory.sightings,
        suspended=suspended,
    )


def _unavailable(*parts: object) -> Iterator[Notice]:
    for part in parts:
        if isinstance(part, Unavailable):
            yield Notice(NoticeKind.UNAVAILABLE, part.system.value, part.why)


def _without_stale_failures(memory: Memory, now: datetime) -> Memory:
    standing = {key: value for key, value in memory.failures.items() if value.until_utc > now}
    return replace(memory, failures=standing)


def _once_each(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Each subject once: several nodes of a request may ask for its cancellation."""
    return tuple({action.subject: action for action in actions}.values())


def _closed_calls(snapshot: Snapshot, world: World) -> Iterator[ForgetCall]:
    """Calls of ResumeProgram in which no node still lacks a request or a VM. A member of a group
    says of no job that asked, so the call is kept until it has a VM."""
    for call in snapshot.resume_calls:
        if not any(_is_open(name, world) for name in call.nodes):
            yield ForgetCall(call.call_id)


def _is_open(name: str, world: World) -> bool:
    view = world.views.get(name)
    return (
        view is not None
        and is_powering_up(view)
        and (view.request_phase is RequestPhase.NONE or view.member is not None)
        and view.vm_phase is VmPhase.NONE
    )


def _notices(slurm: SlurmSnapshot, compute: ComputeSnapshot, memory: Memory) -> Iterator[Notice]:
    for name in slurm.unreadable:
        yield Notice(NoticeKind.UNREADABLE, name)
    for node in slurm.nodes.values():
        if node.state.unknown:
            yield Notice(NoticeKind.UNKNOWN_FLAG, node.name, " ".join(sorted(node.state.unknown)))
    yield from _unknown_states(compute)
    for instance in compute.duplicates:
        yield Notice(NoticeKind.DUPLICATE_VM, instance.name, instance.zone)
    for subject, failure in {f.told_as or key: f for key, f in memory.failures.items()}.items():
        detail = f"{failure.code} {failure.message}"
        yield Notice(NoticeKind.FAILURE, subject, detail, failure.kind)
    yield from refusals.notices(memory.refusals)


def _unknown_states(compute: ComputeSnapshot) -> Iterator[Notice]:
    for reference, request in compute.requests.items():
        if request.state is RequestState.UNKNOWN:
            yield Notice(NoticeKind.UNKNOWN_STATE, f"resize request {reference.name}")
    for name, instance in compute.instances.items():
        if instance.status is InstanceStatus.UNKNOWN:
            yield Notice(NoticeKind.UNKNOWN_STATE, f"VM {name}")


def _is_unsettled(world: World, memory: Memory, actions: tuple[Action, ...]) -> bool:
    if memory.in_flight or memory.refusals:
        return True
    asks = InsertGroup | InsertRequest | CreateInstances
    if any(isinstance(action, asks) for action in actions):
        return True
    if any(view.step not in SETTLED_STEPS for view in world.views.values()):
        return True
    return any(
        view.vm_phase is VmPhase.LEAVING and view.step is Step.LEAVE
        for view in world.views.values()
    )
