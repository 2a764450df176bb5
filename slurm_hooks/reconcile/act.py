"""Act: carry out a plan, action by action; one that is refused stops no other.

Mutations of Compute Engine only start their operations. Node states are read again just before
they are changed, once for all of them, and a node that is no longer as expected is left alone.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import Operation
from slurm_hooks.compute.retry import RETRIED
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.act_deletions import Deletions, attempt_of, failed, started
from slurm_hooks.reconcile.act_end_of_life import change_reservation, warn_job
from slurm_hooks.reconcile.act_holds import clear_reasons, keep_pool_record
from slurm_hooks.reconcile.actions import (
    Action,
    CancelRequest,
    ClearReason,
    CreateReservation,
    DeleteGroup,
    DeleteInstance,
    DeleteRequest,
    DeleteReservation,
    DeleteTemplate,
    DeleteWorkloadPolicy,
    ForgetCall,
    InsertGroup,
    InsertRequest,
    KeepConsole,
    KeepPoolRecord,
    Plan,
    ReasonCode,
    TellJob,
    UpdateNode,
    WarnJob,
)
from slurm_hooks.reconcile.comments import job_comment, node_reason
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.memory import Outcome
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.reconcile.turns import in_turn, is_unanswered, not_done, parts, up_to_silence
from slurm_hooks.slurm.client import SlurmClient, SlurmError

LOG = logging.getLogger("slurm-hooksd")

ActionType = TypeVar("ActionType")
Outcomes = tuple[Outcome, ...]
"""What came of one call, which may carry out many actions."""


class Actor:
    """Carries out plans on one cluster."""

    def __init__(
        self,
        slurm: SlurmClient,
        compute: ComputeClient,
        calls: CallsDirectory,
        consoles: ConsolesDirectory,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        """`alive` is called after each call to a system: a pass of many calls is no hang."""
        self._slurm = slurm
        self._compute = compute
        self._calls = calls
        self._consoles = consoles
        self._alive = alive
        self._deletions = Deletions(compute)

    def act(self, plan: Plan, memory: Memory) -> tuple[Outcome, ...]:
        """Carry out the actions of a plan and say what came of each.

        A system that does not answer is not asked again, and of some kinds of action only so
        many are carried out: those without an outcome are left for the next pass.

        Compute Engine comes first: VMs are asked for before people are told, and a request must
        be given up before its nodes look free to Slurm. Jobs are told before their nodes change,
        since a job that has ended takes no comment. A pool's nodes are drained before its record
        says that it is held, which would else be a hold of no nodes if we died in between; its
        other nodes change after it, since a comment costs a node in service its reason.
        Reservations come last: until then they guard nodes whose VMs ended.
        """
        due = in_turn(plan.actions, memory.in_vain)
        outcomes: list[Outcome] = []
        for of_call in itertools.chain(
            up_to_silence(
                of_call
                for part in parts(due, memory.in_vain)
                for of_call in self._change_compute(part, memory)
            ),
            up_to_silence(self._change_slurm(due)),
        ):
            outcomes.extend(of_call)
            self._alive()
        self._calls.remove_spent()
        for forget in _of_type(due, ForgetCall):
            self._calls.forget(forget.call_id)
            outcomes.append(Outcome(forget))
        return tuple(outcomes)

    def _change_compute(self, due: Sequence[Action], memory: Memory) -> Iterator[Outcomes]:
        for outcome in self._start_all(due, memory):
            yield (outcome,)
        for keep in _of_type(due, KeepConsole):
            yield (self._keep_console(keep),)
        yield from self._deletions.delete_instances(list(_of_type(due, DeleteInstance)), memory)
        for group in _of_type(due, DeleteGroup):
            yield (self._deletions.delete_group(group, memory),)
        for template in _of_type(due, DeleteTemplate):
            yield (self._deletions.delete_template(template, memory),)
        for policy in _of_type(due, DeleteWorkloadPolicy):
            yield (self._deletions.delete_workload_policy(policy, memory),)

    def _change_slurm(self, due: Sequence[Action]) -> Iterator[Outcomes]:
        for tell in _of_type(due, TellJob):
            yield (self._tell(tell),)
        for warning in _of_type(due, WarnJob):
            yield (warn_job(self._slurm, warning),)
        updates = list(_of_type(due, UpdateNode))
        yield from self._update_nodes([u for u in updates if u.reason is ReasonCode.POOL_HELD])
        for record in _of_type(due, KeepPoolRecord):
            yield (keep_pool_record(self._slurm, record),)
        yield from self._update_nodes([u for u in updates if u.reason is not ReasonCode.POOL_HELD])
        yield tuple(clear_reasons(self._slurm, list(_of_type(due, ClearReason))))
        for action in due:
            if isinstance(action, CreateReservation | DeleteReservation):
                yield (change_reservation(self._slurm, action),)

    def _tell(self, action: TellJob) -> Outcome:
        try:
            self._slurm.set_admin_comment(action.job_id, job_comment(action.status), action.part)
        except SlurmError as error:
            # The job may have ended meanwhile; the next pass tells it again if it has not.
            log_event(LOG, logging.DEBUG, "job not told", job=action.job_id, error=error)
            return not_done(action, error)
        return Outcome(action)

    def _keep_console(self, action: KeepConsole) -> Outcome:
        try:
            text = self._compute.get_serial_port_output(action.zone, action.node)
            path = self._consoles.keep(action.node, action.instance_id, text)
        except (ComputeError, OSError) as error:
            log_event(LOG, logging.WARNING, "console not kept", node=action.node, error=error)
            unanswered = isinstance(error, ComputeError) and error.kind in RETRIED
            return Outcome(action, note=str(error), unanswered=unanswered)
        log_event(LOG, logging.INFO, "console kept", node=action.node, file=path)
        return Outcome(action)

    def _start_all(self, actions: Iterable[Action], memory: Memory) -> Iterator[Outcome]:
        """In the plan's order. After a full quota of active requests the later ones of the same
        region are left for the next pass: one of them must not get a place that falls free now."""
        full_regions: set[str] = set()
        for action in actions:
            if isinstance(action, InsertRequest):
                region = action.request.reference.group.scope.region
                if region in full_regions:
                    continue
                outcome = self._start(action, memory)
                if outcome.error is not None and outcome.error.kind is ErrorKind.QUOTA:
                    full_regions.add(region)
                yield outcome
            elif isinstance(action, InsertGroup | CancelRequest | DeleteRequest):
                yield self._start(action, memory)

    def _start(
        self, action: InsertGroup | InsertRequest | CancelRequest | DeleteRequest, memory: Memory
    ) -> Outcome:
        request_id = attempt_of(action, memory)
        match action:
            case InsertGroup():
                return self._insert_group(action, request_id)
            case InsertRequest():
                return started(
                    action,
                    lambda: self._compute.insert_resize_request(action.request, request_id),
                )
            case CancelRequest():
                return started(
                    action,
                    lambda: self._compute.cancel_resize_request(action.request, request_id),
                )
            case DeleteRequest():
                return started(
                    action,
                    lambda: self._compute.delete_resize_request(action.request, request_id),
                )

    def _insert_group(self, action: InsertGroup, request_id: str) -> Outcome:
        """What the group names first, each in a pass of its own: it must exist by then."""
        for what, insert in self._named_by_group(action, request_id):
            try:
                return Outcome(action, operation=insert(), note=what)
            except ComputeError as error:
                if error.kind is not ErrorKind.CONFLICT:
                    return failed(action, error)
        return started(action, lambda: self._compute.insert_group(action.group, request_id))

    def _named_by_group(
        self, action: InsertGroup, request_id: str
    ) -> Iterator[tuple[str, Callable[[], Operation]]]:
        """What must exist before a group that names it, and how it is made."""
        scope, template = action.template_scope, action.template
        yield (
            "template",
            lambda: self._compute.insert_template(scope, template, f"{request_id} template"),
        )
        policy = action.group.workload_policy
        if policy is not None:
            yield (
                "workload policy",
                lambda: self._compute.insert_workload_policy(policy, f"{request_id} policy"),
            )

    def _update_nodes(self, actions: Sequence[UpdateNode]) -> Iterator[Outcomes]:
        if not actions:
            return
        try:
            present = self._slurm.read_nodes([action.node for action in actions])
        except SlurmError as error:
            level = logging.DEBUG if is_unanswered(error) else logging.WARNING
            log_event(LOG, level, "nodes not read again", error=error)
            yield _not_done(actions, error)
            return
        due = [
            action
            for action in actions
            if action.node in present and still_holds(action.expectation, present[action.node])
        ]
        by_update = sorted(due, key=lambda action: (action.updates, node_reason(action)))
        for (updates, reason), batch in itertools.groupby(
            by_update, key=lambda action: (action.updates, node_reason(action))
        ):
            members = tuple(batch)
            names = [action.node for action in members]
            try:
                for update in updates:
                    self._slurm.update_nodes(names, update, reason or None)
            except SlurmError as error:
                level = logging.DEBUG if is_unanswered(error) else logging.WARNING
                log_event(LOG, level, "nodes not changed", nodes=names, error=error)
                yield _not_done(members, error)
                continue
            states = "+".join(updates)
            log_event(LOG, logging.INFO, "nodes changed", nodes=names, to=states, reason=reason)
            yield tuple(Outcome(action) for action in members)


def _not_done(actions: Iterable[Action], error: SlurmError) -> Outcomes:
    """A node that was refused has no outcome, as one that is no longer as expected."""
    if not is_unanswered(error):
        return ()
    return tuple(not_done(action, error) for action in actions)


def _of_type(actions: Iterable[Action], kind: type[ActionType]) -> Iterator[ActionType]:
    return (action for action in actions if isinstance(action, kind))
