"""The report of a faulty node that a person has ordered: what is next for it. Pure.

A person's word is enough: no limit of repairs holds, and jobs on the node are queued again. The VM
is deleted, and asked for again where the node is static or a job needs it, as after any loss.

A host is reported first, while its VM runs, and until that operation has ended nothing of ours may
take the VM away: a VM that goes is reported in vain. Whether Compute Engine takes the report shows
within seconds in the operation, so the node is left to its jobs until then.

What was deleted is told by the VM's id: the next VM of the name is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from slurm_hooks.compute.model import ErrorDetail, Instance, InstanceStatus
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.history.report import FaultAction, FaultReport, ReportState
from slurm_hooks.reconcile.actions import (
    Action,
    DeleteInstance,
    Expectation,
    Notice,
    NoticeKind,
    ReasonCode,
    UpdateNode,
)
from slurm_hooks.reconcile.comments import gives
from slurm_hooks.reconcile.expectations import still_holds
from slurm_hooks.reconcile.phases import Intent, VmPhase, vm_phase_of
from slurm_hooks.reconcile.repair_actions import RepairNode
from slurm_hooks.reconcile.report_actions import KeepReport, OpenReport, ReportHost
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.snapshot import Unavailable
from slurm_hooks.reconcile.views import NodeView, deletion_of
from slurm_hooks.slurm.client import NodeUpdate

TAKEN_AFTER = timedelta(seconds=30)
"""A report that the service does not take fails within seconds."""

LONGEST_REPORT = timedelta(hours=1)
LONGEST_REPLACEMENT = timedelta(minutes=30)
"""After these, something else is wrong, and the next report must not wait for it."""

_LOSE = (NodeUpdate.DOWN, NodeUpdate.POWER_DOWN)
_SET_ASIDE = (NodeUpdate.DOWN, NodeUpdate.DRAIN)
_WITHOUT_SLURMD = frozenset(
    {
        Intent.STARTING,
        Intent.DISOWNED,
        Intent.ABANDONED,
        Intent.WITHDRAWN,
        Intent.OFF,
        Intent.STATIC_OFF,
        Intent.TRAPPED,
        Intent.RESUME_FAILED,
    }
)
"""Nodes on which no job can run. The VMs of all others go when Slurm has powered these down."""


def with_report(scene: Scene, wanted: Iterable[Action]) -> Iterable[Action]:
    """The actions of a pass with those of the open report, and without those that spoil it."""
    found = scene.report
    if not isinstance(found, OpenReport):
        return wanted
    own = list(_next_actions(scene, found))
    changes = any(isinstance(action, UpdateNode) for action in own) or _is_at_the_host(found.report)
    return [*(a for a in wanted if not (changes and _spoils(a, found.report))), *own]


def report_notices(scene: Scene) -> Iterator[Notice]:
    """What is said where nobody knows whether a report is open."""
    if isinstance(scene.report, Unavailable):
        yield Notice(NoticeKind.HISTORY_UNAVAILABLE, "reports", scene.report.why)


def _is_at_the_host(report: FaultReport) -> bool:
    """Whether the VM is needed for the report of its host."""
    return report.action is FaultAction.REPORT_HOST and report.state in (
        ReportState.ORDERED,
        ReportState.REPORTED,
    )


def _spoils(action: Action, report: FaultReport) -> bool:
    if isinstance(action, DeleteInstance):
        return _is_at_the_host(report) and action.instance_id == report.instance_id
    return isinstance(action, UpdateNode | RepairNode) and action.node == report.node


def _next_actions(scene: Scene, found: OpenReport) -> Iterator[Action]:
    report = found.report
    vm = scene.compute.instances.get(report.node)
    present = vm if vm is not None and vm.instance_id == report.instance_id else None
    if _is_at_the_host(report):
        yield from _at_the_host(scene, found, present)
    elif present is None:
        yield _over(report, scene.now)
    elif scene.now - report.changed_utc > LONGEST_REPLACEMENT:
        yield _kept(report, ReportState.FAILED, "its VM is still there", scene.now)
    else:
        if report.state is ReportState.ORDERED:
            yield _kept(report, ReportState.REPLACING, "its VM is deleted", scene.now)
        yield from _replacement(scene, report, present)


def _at_the_host(scene: Scene, found: OpenReport, vm: Instance | None) -> Iterator[Action]:
    report, now = found.report, scene.now
    if report.state is ReportState.ORDERED:
        if vm is None or vm.status is not InstanceStatus.RUNNING:
            status = "gone" if vm is None else vm.status.value
            why = f"its VM is {status}, and must run for a report of its host"
            yield _kept(report, ReportState.FAILED, why, now)
        else:
            yield ReportHost(report)
        return
    error = _error_of(found, now)
    if error is not None:
        yield _failed_report(scene, report, error)
    elif found.operation is not None and found.operation.done:
        yield _kept(report, ReportState.REPLACING, "its host was reported", now)
    elif now - report.changed_utc > TAKEN_AFTER:
        yield from _set_aside(scene, report)


def _error_of(found: OpenReport, now: datetime) -> ErrorDetail | None:
    """Why the report has failed; None while it has not."""
    if found.operation is not None and found.operation.error is not None:
        return found.operation.error
    if now - found.report.changed_utc > LONGEST_REPORT:
        return ErrorDetail("TIMEOUT", "Compute Engine has not ended the report in an hour")
    return None


def _failed_report(scene: Scene, report: FaultReport, error: ErrorDetail) -> KeepReport:
    """A node that was taken from its jobs for it is replaced all the same; any other one is left
    as it is."""
    text = f"{error.code}: {error.message}".rstrip(": ")
    view = scene.world.views.get(report.node)
    is_aside = view is not None and gives(view.node.reason, ReasonCode.HOST_REPORTED)
    told = replace(report, report_error=text)
    if is_aside:
        why = f"the report of its host failed: {text}; its VM is deleted all the same"
        return _kept(told, ReportState.REPLACING, why, scene.now)
    why = f"the report of its host failed: {text}; the node is as it was"
    return _kept(told, ReportState.FAILED, why, scene.now)


def _over(report: FaultReport, now: datetime) -> KeepReport:
    if report.report_error:
        why = f"its VM is gone; the report of its host had failed: {report.report_error}"
        return _kept(report, ReportState.FAILED, why, now)
    return _kept(report, ReportState.REPLACED, "its VM is gone", now)


def _set_aside(scene: Scene, report: FaultReport) -> Iterator[UpdateNode]:
    """No job runs on a host that is about to stop; DOWN has them queued again, the drain stays
    when slurmd registers."""
    view = scene.world.views.get(report.node)
    if view is None or gives(view.node.reason, ReasonCode.HOST_REPORTED):
        return
    if still_holds(Expectation.UP, view.node):
        yield UpdateNode(
            report.node,
            _SET_ASIDE,
            Expectation.UP,
            ReasonCode.HOST_REPORTED,
            detail=report.behavior.value,
        )


def _replacement(scene: Scene, report: FaultReport, vm: Instance) -> Iterator[Action]:
    """A node that is up goes by way of Slurm, which queues its jobs again; any other VM at once."""
    view = scene.world.views.get(report.node)
    if view is not None and still_holds(Expectation.UP, view.node):
        yield _taken_down(view, report)
    elif view is None or view.intent in _WITHOUT_SLURMD:
        deletion = deletion_of(vm)
        in_flight = deletion.subject in scene.memory.in_flight
        if vm_phase_of(vm, deletion_in_flight=in_flight) is not VmPhase.LEAVING:
            yield deletion


def _taken_down(view: NodeView, report: FaultReport) -> UpdateNode:
    by = f"by {report.ordered_by}" if report.ordered_by else ""
    return UpdateNode(
        view.node.name,
        _LOSE,
        Expectation.UP,
        ReasonCode.REPORTED_FAULTY,
        code=by,
        detail=report.description,
    )


def _kept(report: FaultReport, state: ReportState, why: str, now: datetime) -> KeepReport:
    after = replace(report, state=state, detail=why, changed_utc=now)
    return KeepReport(after, report_event(after))


def report_event(report: FaultReport) -> Event:
    """The event that tells how far a report is; one for each state."""
    kind = EventKind.VM_REPORT_AND_REPLACEMENT
    key = f"{kind} {report.node} {report.instance_id} {report.ordered_utc.isoformat()}"
    return Event(
        report.changed_utc,
        kind,
        report.pool,
        f"{key} {report.state}",
        node=report.node,
        message=f"{report.state}: {report.detail}".rstrip(": "),
        instance_id=report.instance_id,
    )
