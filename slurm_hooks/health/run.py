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
from slurm_hooks.health.report import PROBE_HANG, Report, acting_of

_CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL})
_READ_BYTES = 65_536
_REAP_SECONDS = 0.2
_MOST_DESCRIPTORS = 65_536


class _Told:
    """What the child has told so far."""

    def __init__(self, check: str = "") -> None:
        self.findings: list[Finding] = []
        self.counters: dict[str, float] = {}
        self.check = check
        self.is_over = False

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
    hung = hung_probe.still_hanging(host)
    if hung is not None:
        told = _Told(check=hung.check)
        told.findings.append(_hang(f"an earlier probe still hangs in {hung.check}", job))
    else:
        evidence = _evidence(context, host, policy, expected, job)
        evidence.deadline = began + deadline_of(context, policy)
        evidence.may_act = may_act
        told = _probe(checks, evidence, evidence.deadline)
    findings = tuple(told.findings)
    hung_check = "" if told.is_over else told.check
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


def _probe(checks: Sequence[Check], evidence: Evidence, deadline: float) -> _Told:
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
        # Its end closes the devices, which can hang as any other call: no waiting without limit.
        _status_of(child, _REAP_SECONDS)
    elif time.monotonic() >= deadline:
        _give_up(child, told, evidence)
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
        # Whoever waits for the end of an inherited pipe must not wait for a probe that hangs.
        os.closerange(3, writer)
        os.closerange(writer + 1, _MOST_DESCRIPTORS)
        probe.run_checks(checks, evidence, writer)
    finally:
        os._exit(0)


def _listen(reader: int, told: _Told, deadline: float) -> None:
    """Take in what the child tells until it has told all or the deadline has come."""
    frames = probe.Frames()
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    while not told.is_over and (left := deadline - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            continue
        data = os.read(reader, _READ_BYTES)
        if not data:
            return
        for frame in frames.feed(data):
            told.take(frame)


def _give_up(child: int, told: _Told, evidence: Evidence) -> None:
    """Leave the child behind. It is not waited for: in the kernel it may never end."""
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:
        os.kill(child, signal.SIGKILL)
    hung_probe.remember(evidence.host, child, told.check)
    detail = f"{told.check or 'the probe'} did not answer in time"
    told.findings.append(_hang(detail, evidence.job))


def _hang(detail: str, job: JobOnNode | None) -> Finding:
    """A driver that hangs hits every job that has GPUs."""
    has_gpus = job is not None and bool(job.gpus)
    return Finding(PROBE_HANG, Verdict.REBOOT, detail, of_job=has_gpus)


def _end_of_child(child: int, check: str) -> Finding:
    """A probe that ended too early: by a crash in the driver's library, or by something else."""
    status = _status_of(child, _REAP_SECONDS)
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        verdict = Verdict.REBOOT if number in _CRASHES else Verdict.UNKNOWN
        return Finding(check or PROBE_HANG, verdict, f"the probe ended by signal {number}")
    return Finding(check or PROBE_HANG, Verdict.UNKNOWN, "the probe ended without a word")


def _status_of(child: int, seconds: float) -> int | None:
    """How a child ended; None if it has not within these seconds."""
    descriptor = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(descriptor)
    ended, status = os.waitpid(child, os.WNOHANG)
    return status if ended else None
