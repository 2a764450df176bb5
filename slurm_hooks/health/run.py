"""A health run: every check of a context, in a child that is never waited for.

Invariant: the run is over at its deadline whatever the driver does. A child that hangs in the
kernel cannot be killed, so it is left behind, remembered, and no other is started beside it.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from slurm_hooks.health import hung_probe, probe
from slurm_hooks.health.checks.base import Check
from slurm_hooks.health.cleared import cleared_time
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import read_identity
from slurm_hooks.health.job_files import Baseline, read_baseline
from slurm_hooks.health.machine_types import expected_hardware
from slurm_hooks.health.model import Context, Finding, JobOnNode, Verdict
from slurm_hooks.health.policy import ExpectedHardware, HealthPolicy
from slurm_hooks.health.probe_name import take_probe_name
from slurm_hooks.health.registry import checks_of
from slurm_hooks.health.report import Report, report_of

PROBE_HANG = "probe_hang"
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL})
_READ_BYTES = 65_536
_REAP_SECONDS = 0.2


@dataclass(slots=True)
class _Told:
    """What the child has told so far."""

    findings: list[Finding] = field(default_factory=list)
    counters: dict[str, float] = field(default_factory=dict)
    check: str = ""
    is_over: bool = False

    def take(self, frame: tuple[Any, ...]) -> None:
        kind, *values = frame
        if kind == probe.START:
            self.check = values[0]
        elif kind == probe.FOUND:
            check, verdict, detail, gpu, xid, of_job = values
            finding = Finding(check, Verdict(verdict), detail, gpu=gpu, xid=xid, of_job=of_job)
            self.findings.append(finding)
        elif kind == probe.COUNTERS:
            self.counters = values[0]
        elif kind == probe.END:
            self.is_over = True


def run_health(
    context: Context,
    host: Host,
    policy: HealthPolicy,
    job: JobOnNode | None = None,
    only: Sequence[str] = (),
) -> Report:
    """Run all checks of a context, or those named `only`, and say what came of them.

    Never raises and never lasts longer than the context's deadline and a moment.
    """
    began = time.monotonic()
    identity = read_identity(host)
    expected = expected_hardware(host, identity, policy)
    checks = [
        check for check in checks_of(context, only) if check.name not in policy.disabled_checks
    ]
    hung = hung_probe.still_hanging(host)
    if hung is not None:
        finding = Finding(
            PROBE_HANG, Verdict.REBOOT, f"an earlier probe still hangs in {hung.check}"
        )
        told = _Told(findings=[finding])
    else:
        evidence = _evidence(context, host, policy, expected, job)
        told = _probe(checks, evidence, host, deadline_of(context, policy) + began)
    return report_of(
        context,
        tuple(told.findings),
        policy,
        time.monotonic() - began,
        hung_check=told.check if not told.is_over and hung is None else "",
        counters=told.counters,
        gpus_present=expected.gpus,
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
) -> Evidence:
    from slurm_hooks.health.driver.nvml import NvmlDriver

    is_over = context is Context.EPILOG and job is not None
    baseline = read_baseline(host, job.job_id) if job is not None and is_over else Baseline()
    return Evidence(
        context,
        host,
        policy,
        expected,
        NvmlDriver(host.driver_library),
        datetime.now(UTC),
        job=job,
        baseline=baseline.counters,
        baseline_time=baseline.time,
        cleared_time=cleared_time(host),
    )


def _probe(checks: Sequence[Check], evidence: Evidence, host: Host, deadline: float) -> _Told:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        _be_probe(checks, evidence, writer)
    os.close(writer)
    told = _Told()
    try:
        _listen(reader, told, deadline)
    finally:
        os.close(reader)
    if told.is_over:
        os.waitpid(child, 0)
    elif time.monotonic() >= deadline:
        _give_up(child, told, host)
    else:
        told.findings.append(_end_of_child(child, told.check))
    return told


def _be_probe(checks: Sequence[Check], evidence: Evidence, writer: int) -> None:
    """What the child does, and all that it does."""
    try:
        os.setsid()
        take_probe_name()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        probe.run_checks(checks, evidence, writer)
    finally:
        os._exit(0)


def _listen(reader: int, told: _Told, deadline: float) -> None:
    """Take in what the child tells until it has ended or the deadline has come."""
    frames = probe.Frames()
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            continue
        data = os.read(reader, _READ_BYTES)
        if not data:
            return
        for frame in frames.feed(data):
            told.take(frame)


def _give_up(child: int, told: _Told, host: Host) -> None:
    """Leave the child behind. It is not waited for: in the kernel it may never end."""
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:
        os.kill(child, signal.SIGKILL)
    hung_probe.remember(host, child, told.check)
    detail = f"{told.check or 'the probe'} did not answer in time"
    told.findings.append(Finding(PROBE_HANG, Verdict.REBOOT, detail))


def _end_of_child(child: int, check: str) -> Finding:
    """A probe that ended too early: by a crash in the driver's library, or by something else."""
    status = _status_of(child, _REAP_SECONDS)
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        verdict = Verdict.REBOOT if number in _CRASHES else Verdict.UNKNOWN
        return Finding(check or PROBE_HANG, verdict, f"the probe ended by signal {number}")
    return Finding(check or PROBE_HANG, Verdict.UNKNOWN, "the probe ended without a word")


def _status_of(child: int, seconds: float) -> int | None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    return None
