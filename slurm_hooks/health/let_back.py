"""A node that was drained and is well now: what it must stand before it asks to be let back.

Only the run that passes may ask, and only in another boot than the one that was condemned. The
daemon lifts the drain; what stands in the node's reason until then is nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from slurm_hooks.health.burn_in import CHECK, Command, Progress, command_of, read_burn_in
from slurm_hooks.health.consequences import drain, log
from slurm_hooks.health.drains import OwnDrain, forget_drain, read_drain, remember_drain
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import boot_of
from slurm_hooks.health.model import Context, Finding, Verdict
from slurm_hooks.health.policy import HealthPolicy
from slurm_hooks.health.reason import HealthReason, format_reason
from slurm_hooks.health.registry import all_checks
from slurm_hooks.health.report import Report
from slurm_hooks.health.slurmctld import NotTold, SlurmController

PASSED = "health_run"


def checks_before_return(host: Host) -> tuple[str, ...]:
    """The checks of a run after which the node may ask to be let back: the next Prolog's, too.
    Empty for any other run, which makes those of its context."""
    drained = read_drain(host)
    if drained is None or not drained.may_be_over(boot_of(host)):
        return ()
    contexts = {Context.PROLOG, Context.BACKGROUND}
    return tuple(check.name for check in all_checks() if contexts & check.contexts)


def let_back(host: Host, policy: HealthPolicy, report: Report, again: Callable[[], object]) -> bool:
    """Take a node whose run has passed a step further; whether it is well as far as is known.

    `again` is a whole new run; it is made as soon as a burn-in has ended.
    """
    drained = read_drain(host)
    if drained is not None and drained.untold:
        _tell_later(host, policy, drained)
        return True
    if drained is None or not drained.may_be_over(report.identity.boot):
        return True
    if not report.identity.instance_id:
        _log(host, "WARNING", "not let back", why="nobody could tell which VM this is")
        return True
    command = command_of(host, policy, report.gpus_present) if drained.verdict.drains else None
    if command is not None:
        burn_in = read_burn_in(host, report.identity.boot)
        if burn_in.progress is Progress.FAILED:
            _condemn_again(host, policy, report, burn_in.detail)
            return False
        if burn_in.progress is Progress.NOT_STARTED:
            _start_burn_in(host, policy, report, command, again)
        if burn_in.progress is not Progress.PASSED:
            return True
    _ask_for_return(host, policy, report, drained)
    return True


def _tell_later(host: Host, policy: HealthPolicy, drained: OwnDrain) -> None:
    """What was not heard is told now, though it passed: without it nobody would know that the node
    may be repaired, or let back."""
    try:
        controller = SlurmController(host, policy.deadlines.report)
        was_told = controller.tell_later(drained.untold)
    except NotTold as error:
        _log(host, "WARNING", "reason not written", why=error)
        return
    if was_told:
        _log(host, "ERROR", "reason told later", reason=drained.untold)
        remember_drain(host, drained._replace(untold=""))
    else:
        forget_drain(host)


def _start_burn_in(
    host: Host,
    policy: HealthPolicy,
    report: Report,
    command: Command,
    again: Callable[[], object],
) -> None:
    """Start it where slurmctld says that no job can be on the node and that the drain is ours."""
    from slurm_hooks.health.burn_in import start_burn_in

    if not _is_condemned(host, policy, "burn-in not started"):
        return
    _log(host, "WARNING", "burn-in started", command=command.arguments[0])
    tell = partial(_log, host, "WARNING", "burn-in not judged")
    start_burn_in(host, report.identity.boot, command, lambda why: tell(why=why), again)


def _condemn_again(host: Host, policy: HealthPolicy, report: Report, detail: str) -> None:
    """A person may have let the node serve meanwhile: what fails beside a job says nothing."""
    _log(host, "ERROR", "burn-in failed", why=detail)
    if _is_condemned(host, policy, "reason not written"):
        drain(host, policy, report, Finding(CHECK, Verdict.REPLACE, detail), None)


def _is_condemned(host: Host, policy: HealthPolicy, otherwise: str) -> bool:
    """Whether the drain is ours and no job can be on the node; `otherwise` is for the log, where
    slurmctld does not say. A drain that is over is forgotten."""
    try:
        is_ours = SlurmController(host, policy.deadlines.report).is_condemned()
    except NotTold as error:
        _log(host, "WARNING", otherwise, why=error)
        return False
    if not is_ours:
        forget_drain(host)
    return is_ours


def _ask_for_return(host: Host, policy: HealthPolicy, report: Report, drained: OwnDrain) -> None:
    passed = HealthReason(
        Verdict.OK,
        PASSED,
        "passed",
        report.identity.instance_id,
        report.identity.boot,
        context=Context.BACKGROUND,
    )
    try:
        controller = SlurmController(host, policy.deadlines.report)
        has_asked = controller.ask_for_return(format_reason(passed))
    except NotTold as error:
        _log(host, "WARNING", "not asked to be let back", why=error)
        return
    forget_drain(host)
    if has_asked:
        _log(host, "WARNING", "asked to be let back", was=drained.verdict)


def _log(host: Host, level: str, message: str, **fields: object) -> None:
    log(host, Context.BACKGROUND, level, message, **fields)
