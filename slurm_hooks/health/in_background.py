"""What slurmd's HealthCheckProgram does: looks at the node now and then, jobs or not."""

from __future__ import annotations

from functools import partial

from slurm_hooks.health.consequences import drain, log_findings
from slurm_hooks.health.host import Host
from slurm_hooks.health.let_back import checks_before_return, let_back
from slurm_hooks.health.model import Context
from slurm_hooks.health.policy_file import policy_or_defaults
from slurm_hooks.health.run import run_health


def in_background(host: Host) -> int:
    """Check the node while nobody waits for it. The exit status: 1 where the node is not well.

    A node that was drained by a run before its reboot, and passes now, asks to be let back. A run
    that was too slow to look at everything has not passed. Before it asks, it looks at all that the
    next Prolog would.
    """
    policy = policy_or_defaults(host, Context.BACKGROUND)
    report = run_health(Context.BACKGROUND, host, policy, only=checks_before_return(host))
    log_findings(host, Context.BACKGROUND, report.findings, None)
    finding = report.decisive
    if finding is not None and report.verdict.drains:
        drain(host, policy, report, finding, None)
        return 1
    is_whole = not report.hung_check
    if report.verdict.fails_job or not is_whole:
        return 0
    return 0 if let_back(host, policy, report, partial(in_background, host)) else 1
