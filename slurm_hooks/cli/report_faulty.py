"""`slurm-hooks report-faulty`: have a node replaced at a person's word, its host reported first."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.fault_reports import report_as_line, report_as_object
from slurm_hooks.cli.mistakes import EXIT_NOT_DONE, printable, refuse, require_somebody_to_ask
from slurm_hooks.cli.options import AsJson, SettingsFile

if TYPE_CHECKING:
    from slurm_hooks.cluster.topology import NodePool
    from slurm_hooks.compute.model import Instance
    from slurm_hooks.history.report import FaultBehavior, FaultReport
    from slurm_hooks.history.reports import FaultReports
    from slurm_hooks.status.read import StatusSources

MOST_LISTED = 20
WAIT_SECONDS = 1.0
BEHAVIORS = "PERFORMANCE, SILENT_DATA_CORRUPTION, UNRECOVERABLE_GPU_ERROR or BEHAVIOR_UNSPECIFIED"


def report_faulty(
    node: Annotated[str, typer.Argument(metavar="[NODE]", help="The node's name.")] = "",
    host: Annotated[
        bool, typer.Option("--host", help="Report the VM's host to Compute Engine first.")
    ] = False,
    behavior: Annotated[str, typer.Option(metavar="WORD", help=f"With --host: {BEHAVIORS}.")] = "",
    description: Annotated[
        str, typer.Option(metavar="TEXT", help="What was seen, for whoever reads it later.")
    ] = "",
    listed: Annotated[
        bool, typer.Option("--list", help="Show the last reports and what became of them.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until the VM is gone.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
    settings_file: SettingsFile = "",
) -> None:
    """Have the VM of a faulty node deleted; its jobs are queued again.

    A static node comes back on a new VM at once, a login node too, a dynamic one when a job needs
    it. slurm-hooksd does it; no limit of repairs holds. With --host the VM's host is reported to
    Compute Engine first, which repairs it: only A3 Ultra, A4 and A4X in a reservation. That takes
    ten minutes or more, in which the node takes no jobs, and then the VM is deleted.

    One report at a time: another is refused until the last one is over, see --list. Exit status: 0
    when the report is ordered, with --wait when the VM is gone; 1 when not confirmed, or when the
    report failed; 2 for a mistake and for what is refused. Nothing is changed by what is refused.

    Examples:

        slurm-hooks report-faulty demo-a3u-3 --description "half of the bandwidth"

        slurm-hooks report-faulty demo-a3u-3 --host --behavior PERFORMANCE --wait

        slurm-hooks report-faulty --list
    """
    sources = _sources(settings_file)
    if listed:
        _show(_latest(_store(sources)), as_json)
        return
    word = _behavior(host, behavior)
    _require_a_daemon_that_acts(sources)
    pool = _pool(sources, node, host)
    vm = _vm(sources, node, host)
    _ask(sources, node, host, yes, as_json)
    ordered = _order(sources, _report(pool, vm, host, word, description))
    _tell_ordered(sources, ordered, as_json)
    if wait:
        raise typer.Exit(_wait(_store(sources), ordered, as_json))


def _sources(settings_file: str) -> StatusSources:
    from slurm_hooks import settings
    from slurm_hooks.cluster.errors import ClusterFileError
    from slurm_hooks.status.read import status_sources

    try:
        return status_sources(settings_file or settings.find(os.environ.get("SLURM_CONF")))
    except settings.SettingsError as error:
        refuse(str(error), "name the settings file with --settings")
    except ClusterFileError as error:
        refuse(str(error), "see slurm-hooks validate")


def _store(sources: StatusSources) -> FaultReports:
    from slurm_hooks.history.reports import FILE_NAME, FaultReports

    return FaultReports(sources.spool_directory / FILE_NAME)


def _behavior(host: bool, text: str) -> FaultBehavior:
    from slurm_hooks.history.report import FaultBehavior

    if not host:
        if text:
            refuse("--behavior tells Compute Engine about a host", "add --host, or leave it out")
        return FaultBehavior.BEHAVIOR_UNSPECIFIED
    if text.upper() not in FaultBehavior.__members__:
        refuse(f"--host needs --behavior, not {text!r}", f"write {BEHAVIORS}")
    return FaultBehavior(text.upper())


def _require_a_daemon_that_acts(sources: StatusSources) -> None:
    """An order lies in the spool of this host: the daemon of another one never finds it."""
    from slurm_hooks.reconcile.deleting import is_marked
    from slurm_hooks.slurm.controllers import Charge

    if is_marked(sources.spool_directory):
        refuse("the cluster is deleted, nothing of it is replaced", "see slurm-hooks status")
    if sources.charge() is not Charge.HERE:
        refuse(
            "the slurmctld of this host is not in charge, or none answers",
            "run it where `scontrol ping` says that slurmctld is UP first",
        )


def _pool(sources: StatusSources, node: str, host: bool) -> NodePool:
    """The node's pool, whose hosts can be reported where that is wanted."""
    from slurm_hooks.reconcile.report_rules import why_not_reportable

    pool = sources.cluster.pool_of(node)
    if pool is None:
        refuse(
            f"no node {node!r} in the cluster file" if node else "no node is named",
            "write one of those that slurm-hooks status shows",
        )
    why = why_not_reportable(pool) if host else ""
    if why:
        refuse(f"the host of {node} cannot be reported: {why}", "leave out --host: a new VM comes")
    return pool


def _vm(sources: StatusSources, node: str, host: bool) -> Instance:
    from slurm_hooks.compute.errors import ComputeError
    from slurm_hooks.compute.model import InstanceStatus

    try:
        vm = sources.compute.read(sources.cluster.cluster_id).instances.get(node)
    except ComputeError as error:
        refuse(f"Compute Engine could not be read: {error}", "try again when it can")
    if vm is None:
        refuse(f"{node} has no VM", "see slurm-hooks status for why")
    if host and vm.status is not InstanceStatus.RUNNING:
        refuse(
            f"the VM of {node} is {vm.status}, and must run for a report of its host",
            "leave out --host: a new VM comes",
        )
    return vm


def _ask(sources: StatusSources, node: str, host: bool, yes: bool, as_json: bool) -> None:
    """Ask a person, who learns which jobs it costs their present start."""
    if yes:
        return
    require_somebody_to_ask(as_json, "add --yes to carry it out")
    first = "Report the host of" if host else "Delete the VM of"
    then = " and delete its VM" if host else ""
    if not typer.confirm(f"{first} {node}{then}? {_jobs_text(sources, node)}"):
        raise typer.Exit(EXIT_NOT_DONE)


def _jobs_text(sources: StatusSources, node: str) -> str:
    from slurm_hooks.reconcile.owners import holders_of
    from slurm_hooks.slurm.client import SlurmError

    try:
        jobs = holders_of(sources.slurm.read().jobs.values()).get(node, ())
    except SlurmError as error:
        return f"Its jobs are not known: {printable(str(error))}."
    ids = ", ".join(str(job.job_id) for job in jobs)
    return f"Queued again: {ids}." if ids else "No job runs there."


def _report(
    pool: NodePool, vm: Instance, host: bool, behavior: FaultBehavior, description: str
) -> FaultReport:
    from slurm_hooks.history.report import FaultAction, FaultReport

    now = datetime.now(UTC)
    return FaultReport(
        vm.name,
        pool.pool_id,
        vm.zone,
        vm.instance_id,
        FaultAction.REPORT_HOST if host else FaultAction.DELETE,
        now,
        now,
        ordered_by=_person(),
        behavior=behavior,
        description=" ".join(description.split()),
        detail="the daemon is told",
    )


def _person() -> str:
    """Who gives the order; empty where the system does not know."""
    import getpass

    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return ""


def _order(sources: StatusSources, report: FaultReport) -> FaultReport:
    """Write the order down where the daemon finds it, and wake it."""
    from slurm_hooks.history.events import FILE_NAME, EventHistory, HistoryUnavailable
    from slurm_hooks.history.reports import ReportOpen
    from slurm_hooks.reconcile.plan_reports import report_event

    try:
        ordered = _store(sources).order(report)
        history = EventHistory(sources.spool_directory / FILE_NAME)
        history.record([report_event(ordered)], ordered.ordered_utc)
        return ordered
    except ReportOpen as error:
        other = error.report
        refuse(
            f"the report of {other.node} is still open: {other.state} {other.detail}".rstrip(),
            "wait until it is over: slurm-hooks report-faulty --list",
        )
    except HistoryUnavailable as error:
        refuse(str(error), "run it as the Slurm user or as root, on the controller")


def _tell_ordered(sources: StatusSources, report: FaultReport, as_json: bool) -> None:
    from slurm_hooks.reconcile.bell import ring

    woken = ring(Path(sources.spool_directory))
    if as_json:
        typer.echo(json.dumps(report_as_object(report)))
        return
    typer.echo(report_as_line(report))
    if not woken:
        typer.echo("slurm-hooksd does not run here: it is carried out when it does", err=True)


def _wait(store: FaultReports, report: FaultReport, as_json: bool) -> int:
    """Tell each step until the report is over; Ctrl-C leaves it to the daemon."""
    last = report
    try:
        while last.state.is_open:
            time.sleep(WAIT_SECONDS)
            now = next((one for one in _latest(store) if one.number == report.number), last)
            if now.state is not last.state:
                typer.echo(json.dumps(report_as_object(now)) if as_json else report_as_line(now))
            last = now
    except KeyboardInterrupt:
        return EXIT_NOT_DONE
    from slurm_hooks.history.report import ReportState

    return 0 if last.state is ReportState.REPLACED else EXIT_NOT_DONE


def _latest(store: FaultReports) -> list[FaultReport]:
    from slurm_hooks.history.database import HistoryUnavailable

    try:
        return store.latest(MOST_LISTED)
    except HistoryUnavailable as error:
        refuse(str(error), "run it as the Slurm user or as root, on the controller")


def _show(reports: list[FaultReport], as_json: bool) -> None:
    """The oldest first, as events are shown."""
    if as_json:
        typer.echo(json.dumps([report_as_object(report) for report in reports], indent=2))
        return
    for report in reversed(reports):
        typer.echo(report_as_line(report))
