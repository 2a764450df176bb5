"""Act: carry out a plan, action by action; one that is refused stops no other.

Mutations of Compute Engine only start their operations.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import Operation
from slurm_hooks.compute.retry import RETRIED
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile import act_deletions, act_nodes
from slurm_hooks.reconcile.act_addresses import set_addresses
from slurm_hooks.reconcile.act_deletions import Deletions, attempt_of, failed, started
from slurm_hooks.reconcile.act_end_of_life import change_reservation, warn_job
from slurm_hooks.reconcile.act_holds import keep_pool_record, without_holds_of
from slurm_hooks.reconcile.act_nodes import change_nodes
from slurm_hooks.reconcile.act_repairs import Repairs
from slurm_hooks.reconcile.act_reports import Reports
from slurm_hooks.reconcile.actions import (
    Action,
    CancelRequest,
    ClearReason,
    CreateInstances,
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
    SetNodeAddress,
    SetReason,
    TellJob,
    UpdateNode,
    WaitKind,
    WarnJob,
)
from slurm_hooks.reconcile.comments import job_comment
from slurm_hooks.reconcile.outcome import Outcome, Outcomes
from slurm_hooks.reconcile.repair_actions import RecordEvents, RepairNode
from slurm_hooks.reconcile.report_actions import KeepReport, ReportHost
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.reconcile.turns import Shares, in_turn, not_done, parts, up_to_silence
from slurm_hooks.slurm.client import SlurmClient, SlurmError

LOG = logging.getLogger("slurm-hooksd")

ActionType = TypeVar("ActionType")


class Actor:
    """Carries out plans on one cluster."""

    def __init__(
        self,
        slurm: SlurmClient,
        compute: ComputeClient,
        calls: CallsDirectory,
        consoles: ConsolesDirectory,
        alive: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        repairs: Repairs | None = None,
        reports: Reports | None = None,
    ) -> None:
        """`alive` is called after each call to a system: a pass of many calls is no hang.

        `clock` gives seconds that only go forward. Without `repairs` no node is repaired,
        without `reports` none is reported.
        """
        self._slurm = slurm
        self._compute = compute
        self._calls = calls
        self._consoles = consoles
        self._alive = alive
        self._clock = clock
        self._deletions = Deletions(compute)
        self._reports = reports
        self._repairs = repairs or Repairs(slurm, None, lambda: datetime.now(UTC))

    def act(self, plan: Plan, memory: Memory) -> tuple[Outcome, ...]:
        """Carry out the actions of a plan and say what came of each.

        A system that does not answer is not asked again, and of each kind of action only so
        many are carried out, and for so long: those without an outcome are left for the next pass.

        Compute Engine comes first: VMs are asked for before people are told, and a request must
        be given up before its nodes look free to Slurm. Jobs are told before their nodes change,
        since a job that has ended takes no comment. A pool's nodes are drained before its record
        says that it is held, which would else be a hold of no nodes if we died in between; its
        other nodes change after it, since a comment costs a node in service its reason.
        Reservations come last of all that is of one job or node: until then they guard nodes
        whose VMs ended. Addresses of nodes that are off can wait.
        """
        due = in_turn(plan.actions, memory.in_vain)
        shares = Shares(self._clock)
        outcomes: list[Outcome] = []
        for of_call in itertools.chain(
            up_to_silence(
                of_call
                for part in parts(due, memory.in_vain)
                for of_call in self._change_compute(part, memory, shares)
            ),
            up_to_silence(self._change_slurm(due, plan, memory, shares)),
        ):
            outcomes.extend(of_call)
            self._alive()
        self._calls.remove_spent()
        for forget in _of_type(due, ForgetCall):
            self._calls.forget(forget.call_id)
            outcomes.append(Outcome(forget))
        return tuple(outcomes)

    def _change_compute(
        self, due: Sequence[Action], memory: Memory, shares: Shares
    ) -> Iterator[Outcomes]:
        deletions, within = self._deletions, shares.within
        yield from within(
            CancelRequest, _each(due, CancelRequest, lambda action: self._cancel(action, memory))
        )
        yield from within(InsertRequest, self._insert_all(due, memory))
        yield from within(
            DeleteRequest, _each(due, DeleteRequest, lambda action: self._delete(action, memory))
        )
        if self._reports is not None:
            hosts = self._reports.report_hosts(_of_type(due, ReportHost))
            yield from within(ReportHost, hosts)
        yield from within(KeepConsole, _each(due, KeepConsole, self._keep_console))
        yield from within(
            DeleteInstance,
            deletions.delete_instances(list(_of_type(due, DeleteInstance)), memory),
            act_deletions.MOST_CALLS_A_PASS,
        )
        yield from within(
            DeleteGroup,
            _each(due, DeleteGroup, lambda action: deletions.delete_group(action, memory)),
        )
        yield from within(
            DeleteTemplate,
            _each(due, DeleteTemplate, lambda action: deletions.delete_template(action, memory)),
        )
        yield from within(
            DeleteWorkloadPolicy,
            _each(
                due,
                DeleteWorkloadPolicy,
                lambda action: deletions.delete_workload_policy(action, memory),
            ),
        )

    def _change_slurm(
        self, due: Sequence[Action], plan: Plan, memory: Memory, shares: Shares
    ) -> Iterator[Outcomes]:
        slurm, within = self._slurm, shares.within
        yield from within(RecordEvents, self._repairs.record(_of_type(due, RecordEvents)))
        if self._reports is not None:
            yield from within(KeepReport, self._reports.keep(_of_type(due, KeepReport)))
        untold = _jobs_to_tell_of_failure(plan)
        for of_call in within(TellJob, _each(due, TellJob, self._tell)):
            tried = (outcome.action for outcome in of_call)
            untold.difference_update(tell.job_id for tell in _of_type(tried, TellJob))
            yield of_call
        yield from within(WarnJob, _each(due, WarnJob, lambda action: warn_job(slurm, action)))
        changes = [
            action
            for action in due
            if isinstance(action, ClearReason | SetReason)
            or (isinstance(action, UpdateNode) and action.told_job not in untold)
        ]
        drains = list(filter(_begins_hold, _of_type(changes, UpdateNode)))
        others = [a for a in changes if not isinstance(a, UpdateNode) or not _begins_hold(a)]
        most = act_nodes.MOST_BATCHES_A_PASS
        untried = {drain.subject: drain for drain in drains}
        for of_call in within(UpdateNode, change_nodes(slurm, drains, memory.refusals), most):
            for outcome in of_call:
                untried.pop(outcome.action.subject, None)
            yield of_call
        left = untried.values() if shares.is_used_up(UpdateNode, most) else ()
        records = without_holds_of(left, _of_type(due, KeepPoolRecord))
        yield from within(KeepPoolRecord, ((keep_pool_record(slurm, r),) for r in records))
        yield from within(UpdateNode, change_nodes(slurm, others, memory.refusals), most)
        yield from within(RepairNode, self._repairs.repair(list(_of_type(due, RepairNode))))
        yield from within(
            CreateReservation,
            (
                (change_reservation(slurm, action),)
                for action in due
                if isinstance(action, CreateReservation | DeleteReservation)
            ),
        )
        addresses = list(_of_type(due, SetNodeAddress))
        yield from within(SetNodeAddress, set_addresses(slurm, addresses, memory.refusals), most)

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
            log_event(LOG, logging.DEBUG, "console not kept", node=action.node, error=error)
            unanswered = isinstance(error, ComputeError) and error.kind in RETRIED
            return Outcome(action, note=str(error), unanswered=unanswered)
        log_event(LOG, logging.INFO, "console kept", node=action.node, file=path)
        return Outcome(action)

    def _insert_all(self, due: Iterable[Action], memory: Memory) -> Iterator[Outcomes]:
        """In the plan's order. After a full quota of active requests the later ones of the same
        region are left for the next pass: one of them must not get a place that falls free now."""
        full_regions: set[str] = set()
        for action in due:
            if isinstance(action, InsertGroup):
                yield (self._insert_group(action, attempt_of(action, memory)),)
            elif isinstance(action, InsertRequest):
                region = action.request.reference.group.scope.region
                if region in full_regions:
                    continue
                outcome = self._insert(action, memory)
                if outcome.error is not None and outcome.error.kind is ErrorKind.QUOTA:
                    full_regions.add(region)
                yield (outcome,)
            elif isinstance(action, CreateInstances):
                yield (self._create(action, memory),)

    def _create(self, action: CreateInstances, memory: Memory) -> Outcome:
        request_id = attempt_of(action, memory)
        return started(
            action,
            lambda: self._compute.create_instances(action.group, action.names, request_id),
        )

    def _insert(self, action: InsertRequest, memory: Memory) -> Outcome:
        request_id = attempt_of(action, memory)
        return started(
            action, lambda: self._compute.insert_resize_request(action.request, request_id)
        )

    def _cancel(self, action: CancelRequest, memory: Memory) -> Outcome:
        request_id = attempt_of(action, memory)
        return started(
            action, lambda: self._compute.cancel_resize_request(action.request, request_id)
        )

    def _delete(self, action: DeleteRequest, memory: Memory) -> Outcome:
        request_id = attempt_of(action, memory)
        return started(
            action, lambda: self._compute.delete_resize_request(action.request, request_id)
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


def _of_type(actions: Iterable[Action], kind: type[ActionType]) -> Iterator[ActionType]:
    return (action for action in actions if isinstance(action, kind))


def _each(
    due: Iterable[Action], kind: type[ActionType], call: Callable[[ActionType], Outcome]
) -> Iterator[Outcomes]:
    """A call for each action of a kind."""
    return ((call(action),) for action in _of_type(due, kind))


def _jobs_to_tell_of_failure(plan: Plan) -> set[int]:
    """The jobs whose nodes must not change before: they may be gone from them a moment later."""
    return {
        tell.job_id
        for tell in _of_type(plan.actions, TellJob)
        if tell.status is not None and tell.status.kind is WaitKind.FAILED
    }


def _begins_hold(action: UpdateNode) -> bool:
    return action.reason is ReasonCode.POOL_HELD
