"""What slurmd's HealthCheckProgram does: looks at the node now and then, jobs or not."""

from __future__ import annotations

from slurm_hooks.health.consequences import drain, log, log_findings
from slurm_hooks.health.drains import OwnDrain, forget_drain, read_drain, remember_drain
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import Identity
from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.policy import HealthPolicy
from slurm_hooks.health.policy_file import policy_or_defaults
from slurm_hooks.health.reason import HealthReason, format_reason
from slurm_hooks.health.run import run_health
from slurm_hooks.health.slurmctld import NotTold, SlurmController

PASSED = "health_run"


def in_background(host: Host) -> int:
    """Check the node while nobody waits for it. The exit status: 1 where the node is not well.

    A node that was drained by a run before its reboot, and passes now, asks to be let back.
    """
    policy = policy_or_defaults(host, Context.BACKGROUND)
    report = run_health(Context.BACKGROUND, host, policy)
    log_findings(host, Context.BACKGROUND, report.findings, None)
    finding = report.decisive
    if finding is not None and report.verdict.drains:
        drain(host, policy, report, finding, None)
        return 1
    if not report.verdict.fails_job:
        _ask_for_return(host, policy, report.identity)
    return 0


def _tell_later(host: Host, policy: HealthPolicy, drained: OwnDrain) -> None:
    """What was not heard is told now, though it passed: without it nobody would know that the node
    may be repaired, or let back."""
    try:
        controller = SlurmController(host, policy.deadlines.report)
        was_told = controller.tell_later(drained.untold)
    except NotTold as error:
        log(host, Context.BACKGROUND, "WARNING", "reason not written", why=error)
        return
    if was_told:
        log(host, Context.BACKGROUND, "ERROR", "reason told later", reason=drained.untold)
        remember_drain(host, drained._replace(untold=""))
    else:
        forget_drain(host)


def _ask_for_return(host: Host, policy: HealthPolicy, identity: Identity) -> None:
    drained = read_drain(host)
    if drained is not None and drained.untold:
        _tell_later(host, policy, drained)
        return
    if drained is None or not drained.may_be_over(identity.boot):
        return
    passed = HealthReason(
        Verdict.OK,
        PASSED,
        "passed",
        identity.instance_id,
        identity.boot,
        context=Context.BACKGROUND,
    )
    try:
        controller = SlurmController(host, policy.deadlines.report)
        has_asked = controller.ask_for_return(format_reason(passed))
    except NotTold as error:
        log(host, Context.BACKGROUND, "WARNING", "not asked to be let back", why=error)
        return
    forget_drain(host)
    if has_asked:
        log(host, Context.BACKGROUND, "WARNING", "asked to be let back", was=drained.verdict)
