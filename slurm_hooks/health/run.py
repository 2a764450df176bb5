"""A health run: every check of a context, in a child that is never waited for.

Invariant: the run is over a moment after its deadline whatever the driver does. A child that hangs
in the kernel cannot be killed, so it is left behind, remembered, and no other is started beside it.
One that is merely slow gets that moment, and then ends the run without condemning the node.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from slurm_hooks.health import hung_probe
from slurm_hooks.health.cleared import cleared_time
from slurm_hooks.health.driver.call_signs import CallSigns
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import read_identity
from slurm_hooks.health.job_files import Baseline, read_baseline
from slurm_hooks.health.machine_types import expected_hardware
from slurm_hooks.health.model import Context, Finding, JobOnNode, Verdict
from slurm_hooks.health.policy import ExpectedHardware, HealthPolicy
from slurm_hooks.health.probe_child import ProbeTimes, Told, hang_of, run_probe
from slurm_hooks.health.registry import checks_of
from slurm_hooks.health.report import PROBE_HANG, Report, acting_of

_STILL_SECONDS = 3.0
"""How long a probe must have stood still to count as hanging: one that waits for another process
which starts the GPUs stands still, too, for as long as one GPU takes."""
_STILL_SHARE = 0.5
"""Of a run's time, where that is short."""
_GRACE_SECONDS = 1.5
_PROLOG_SECONDS = 9.5
"""For a Prolog that ends badly, its report included: slurmd calls one of ten seconds hung."""


def run_health(
    context: Context,
    host: Host,
    policy: HealthPolicy,
    job: JobOnNode | None = None,
    only: Sequence[str] = (),
    *,
    may_act: bool = True,
) -> Report:
    """Run all checks of a context, or those named `only`, and say what came of them. Without
    `may_act` nothing is mended, ended or noted on the way.

    Never raises and never lasts longer than the context's deadline and a moment.
    """
    began = time.monotonic()
    identity = read_identity(host)
    expected = expected_hardware(host, identity, policy)
    checks = [
        check for check in checks_of(context, only) if check.name not in policy.disabled_checks
    ]
    earlier = hung_probe.given_up(host, context)
    if earlier is not None:
        told = Told(check=earlier.check)
        told.findings.append(_finding_of_earlier(earlier, job))
    else:
        signs = CallSigns()
        evidence = _evidence(context, host, policy, expected, job, signs)
        times = _times(context, policy, began)
        evidence.deadline = times.deadline
        evidence.may_act = may_act
        told = run_probe(checks, evidence, signs, times)
        if told.is_over and may_act:
            hung_probe.forget_if_gone(host)
    findings = tuple(told.findings)
    hung_check = "" if told.is_over else told.check or PROBE_HANG
    return Report(
        context,
        findings,
        acting_of(findings, policy, hung_check),
        time.monotonic() - began,
        hung_check,
        told.counters,
        expected.gpus,
        identity,
    )


def deadline_of(context: Context, policy: HealthPolicy) -> float:
    """How many seconds the run of a context may take."""
    return {
        Context.PROLOG: policy.deadlines.prolog,
        Context.EPILOG: policy.deadlines.epilog,
        Context.BACKGROUND: policy.deadlines.background,
    }[context]


def _evidence(
    context: Context,
    host: Host,
    policy: HealthPolicy,
    expected: ExpectedHardware,
    job: JobOnNode | None,
    signs: CallSigns,
) -> Evidence:
    from slurm_hooks.health.driver.nvml import NvmlDriver

    is_over = context is Context.EPILOG and job is not None
    baseline = read_baseline(host, job.job_id) if job is not None and is_over else Baseline()
    return Evidence(
        context,
        host,
        policy,
        expected,
        NvmlDriver(host.driver_library, signs),
        datetime.now(UTC),
        job=job,
        baseline=baseline.counters,
        baseline_time=baseline.time,
        cleared_time=cleared_time(host),
    )


def _times(context: Context, policy: HealthPolicy, began: float) -> ProbeTimes:
    seconds = deadline_of(context, policy)
    grace = _GRACE_SECONDS
    if context is Context.PROLOG:
        grace = max(0.0, min(grace, _PROLOG_SECONDS - seconds - policy.deadlines.report))
    still_seconds = min(_STILL_SECONDS, _STILL_SHARE * seconds)
    return ProbeTimes(began + seconds, began + seconds + grace, still_seconds)


def _finding_of_earlier(earlier: hung_probe.GivenUp, job: JobOnNode | None) -> Finding:
    """What it means that an earlier probe was given up: this run starts no other one."""
    if not earlier.is_hang:
        detail = "an earlier probe that was only slow has not ended yet"
        return Finding(earlier.check, Verdict.UNKNOWN, detail)
    hangs = "still hangs" if earlier.is_there else "hung a moment ago"
    return hang_of(f"an earlier probe {hangs} in {earlier.check}", job)
