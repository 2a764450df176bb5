"""What slurmd's Epilog does: a node that a job broke takes no other, and the job runs again."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from slurm_hooks.health.consequences import drain, log, log_findings
from slurm_hooks.health.host import Host
from slurm_hooks.health.job_files import forget_job
from slurm_hooks.health.model import Context, JobOnNode
from slurm_hooks.health.policy import HealthPolicy
from slurm_hooks.health.policy_file import policy_or_defaults
from slurm_hooks.health.report import Report
from slurm_hooks.health.run import run_health
from slurm_hooks.health.site_scripts import run_site_scripts
from slurm_hooks.health.slurmctld import NotTold, SlurmController
from slurm_hooks.health.slurmd import job_of

_OF_SLURM = (signal.SIGTERM, signal.SIGKILL)


def after_job(host: Host, environment: Mapping[str, str]) -> int:
    """Check the node after a job. The exit status for slurmd: 1 keeps the node drained.

    The node is drained before the job is queued again, so that it cannot come back here, and both
    before the site's scripts, which slurmd may lose patience with.
    """
    job = job_of(environment)
    policy = policy_or_defaults(host, Context.EPILOG)
    report = run_health(Context.EPILOG, host, policy, job)
    log_findings(host, Context.EPILOG, report.findings, job)
    finding = report.decisive if report.verdict.drains else None
    if finding is not None:
        drain(host, policy, report, finding, job)
    if job is not None:
        if must_run_again(job, report, policy):
            _requeue(host, policy, job)
        forget_job(host, job.job_id)
    failed = run_site_scripts(Context.EPILOG, host, environment, policy.deadlines.site_script)
    log_findings(host, Context.EPILOG, failed, job)
    if failed and finding is None:
        drain(host, policy, report, failed[0], job)
    return 1 if failed or finding is not None else 0


def must_run_again(job: JobOnNode, report: Report, policy: HealthPolicy) -> bool:
    """Whether a job is queued again: it failed, and hardware that it had was at fault.

    Slurm's requeue runs a job that ended well once more, too, and one that its user cancelled, so
    this is the gate.
    """
    at_fault = any(finding.of_job and finding.verdict.fails_job for finding in report.acting)
    return at_fault and _failed(job) and job.restart_count < policy.most_restarts


def _failed(job: JobOnNode) -> bool:
    """Whether the job's script failed. Where SIGTERM or SIGKILL ended the script itself, Slurm
    did so: for a user who cancelled, at the time limit, for a job that goes first."""
    status = job.exit_code
    if not status:
        return False
    return not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in _OF_SLURM


def _requeue(host: Host, policy: HealthPolicy, job: JobOnNode) -> None:
    try:
        SlurmController(host, policy.deadlines.report).requeue(job.job_id)
    except NotTold as error:
        log(host, Context.EPILOG, "WARNING", "job not queued again", job=job.job_id, why=error)
    else:
        log(host, Context.EPILOG, "WARNING", "job queued again", job=job.job_id)
