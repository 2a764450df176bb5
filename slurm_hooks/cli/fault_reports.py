"""A report of a faulty node as the command shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_hooks.cli.mistakes import printable

if TYPE_CHECKING:
    from slurm_hooks.history.report import FaultReport


def report_as_line(report: FaultReport) -> str:
    """A line for people: when, which node, how far it is, and who ordered what."""
    from slurm_hooks.history.report import FaultAction
    from slurm_hooks.status.words import stamp

    what = f"host, {report.behavior}" if report.action is FaultAction.REPORT_HOST else "node"
    by = f" by {report.ordered_by}" if report.ordered_by else ""
    said = f" ({report.description})" if report.description else ""
    detail = f": {report.detail}" if report.detail else ""
    text = f"{stamp(report.changed_utc)} {report.node} {report.state}{detail}; {what}{by}{said}"
    return printable(text)


def report_as_object(report: FaultReport) -> dict[str, object]:
    """The report for programs; times are RFC 3339 in UTC."""
    from slurm_hooks.status.words import stamp

    return {
        "number": report.number,
        "node": report.node,
        "pool": report.pool,
        "instance_id": report.instance_id,
        "action": report.action.value,
        "behavior": report.behavior.value,
        "description": report.description,
        "ordered_time": stamp(report.ordered_utc),
        "ordered_by": report.ordered_by,
        "state": report.state.value,
        "changed_time": stamp(report.changed_utc),
        "report_error": report.report_error,
        "detail": report.detail,
    }
