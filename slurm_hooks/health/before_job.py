"""What slurmd's Prolog does: a job starts on this node only if the node is well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from slurm_hooks.health.host import Host
from slurm_hooks.health.job_files import keep_baseline
from slurm_hooks.health.model import Context, Finding, JobOnNode
from slurm_hooks.health.policy_file import policy_or_defaults
from slurm_hooks.health.run import run_health
from slurm_hooks.health.site_scripts import run_site_scripts
from slurm_hooks.health.slurmd import job_of


def before_job(host: Host, environment: Mapping[str, str]) -> int:
    """Check the node for a job. The exit status for slurmd: 0 lets the job start, 1 does not.

    On 1 slurmd drains the node, if we have not done so with a better reason, and the job goes back
    to the queue.
    """
    job = job_of(environment)
    policy = policy_or_defaults(host, Context.PROLOG)
    report = run_health(Context.PROLOG, host, policy, job)
    _log(host, report.findings, job)
    finding = report.decisive
    if finding is None or not report.verdict.fails_job:
        failed = run_site_scripts(Context.PROLOG, host, environment, policy.deadlines.site_script)
        _log(host, failed, job)
        finding = failed[0] if failed else None
    if finding is not None:
        from slurm_hooks.health.consequences import drain  # a healthy node pays nothing for it

        drain(host, policy, report, finding, job)
        return 1
    if job is not None:
        keep_baseline(host, job.job_id, datetime.now(UTC), report.counters)
    return 0


def _log(host: Host, findings: Sequence[Finding], job: JobOnNode | None) -> None:
    if findings:
        from slurm_hooks.health.consequences import log_findings

        log_findings(host, Context.PROLOG, findings, job)
