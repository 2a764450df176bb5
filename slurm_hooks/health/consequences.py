"""What follows from a report: the lines of log, the drain, the job back in the queue."""

from __future__ import annotations

from collections.abc import Iterable

from slurm_hooks.health.drains import OwnDrain, remember_drain
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, JobOnNode, Verdict
from slurm_hooks.health.policy import HealthPolicy
from slurm_hooks.health.reason import HealthReason, format_reason
from slurm_hooks.health.report import Report
from slurm_hooks.health.slurmctld import NotTold, SlurmController
from slurm_hooks.programs import node_log

_LEVELS = {Verdict.OK: "INFO", Verdict.WARN: "WARNING", Verdict.UNKNOWN: "WARNING"}


def log_findings(
    host: Host, context: Context, findings: Iterable[Finding], job: JobOnNode | None
) -> None:
    """One line a finding; a healthy run leaves none."""
    for finding in findings:
        log(
            host,
            context,
            _LEVELS.get(finding.verdict, "ERROR"),
            finding.detail,
            check=finding.check,
            verdict=finding.verdict,
            **({"gpu": finding.gpu} if finding.gpu is not None else {}),
            **({"job": job.job_id} if job is not None else {}),
        )


def log(host: Host, context: Context, level: str, message: str, **fields: object) -> None:
    """One line of the node's health log."""
    node_log.write(host.log_file, str(context), level, message, node=host.name, **fields)


def drain(
    host: Host, policy: HealthPolicy, report: Report, finding: Finding, job: JobOnNode | None
) -> None:
    """Take this node out of service for a finding, with one bounded call. Never raises: where
    slurmctld is not told, the exit status of the program drains the node all the same."""
    identity = report.identity
    uses_gpus = job is not None and report.gpus_present is not None and report.gpus_present > 0
    reason = HealthReason(
        finding.verdict,
        finding.check,
        _detail(finding),
        identity.instance_id,
        identity.boot,
        context=report.context,
        job_id=job.job_id if job is not None else None,
        restart_count=job.restart_count if job is not None else None,
        gpus_used=len(job.gpus) if job is not None and uses_gpus else None,
        gpus_present=report.gpus_present if uses_gpus else None,
    )
    text = format_reason(reason)
    remember_drain(host, OwnDrain(finding.verdict, identity.boot, untold=text))
    try:
        is_new = SlurmController(host, policy.deadlines.report).drain(text)
    except NotTold as error:
        log(host, report.context, "ERROR", "reason not written", reason=text, why=error)
    else:
        remember_drain(host, OwnDrain(finding.verdict, identity.boot))
        if is_new:
            log(host, report.context, "ERROR", "node drained", reason=text)


def _detail(finding: Finding) -> str:
    parts = [] if finding.gpu is None else [f"gpu {finding.gpu}"]
    return " ".join([*parts, finding.detail])
