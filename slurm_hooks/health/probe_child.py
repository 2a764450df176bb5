"""The probe from its parent's side: started, listened to, and given up when it is too late.

It is never waited for. A child that hangs in the kernel cannot be killed, so it is left behind and
remembered. One that is merely slow is given up, too, but condemns no node.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slurm_hooks.health import hung_probe, probe
from slurm_hooks.health.driver.call_signs import CallSigns
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Finding, JobOnNode, Verdict
from slurm_hooks.health.probe_name import take_probe_name
from slurm_hooks.health.report import PROBE_HANG

if TYPE_CHECKING:
    from slurm_hooks.health.checks.base import Check
    from slurm_hooks.health.late_probe import Lateness

_CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL})
_READ_BYTES = 65_536
_REAP_SECONDS = 0.2
_MOST_DESCRIPTORS = 65_536
_LOOK_EVERY_SECONDS = 0.1


class ProbeTimes:
    """When a probe is late, by the monotonic clock: it must be over at `deadline`, and at
    `last_moment` if it does not hang. It hangs if it has stood still for `still_seconds`."""

    def __init__(self, deadline: float, last_moment: float, still_seconds: float) -> None:
        self.deadline = deadline
        self.last_moment = last_moment
        self.still_seconds = still_seconds


class Told:
    """What the child has told so far. `is_over`: that was all; `has_ended`: nothing will follow."""

    def __init__(self, check: str = "") -> None:
        self.findings: list[Finding] = []
        self.counters: dict[str, float] = {}
        self.check = check
        self.is_over = False
        self.has_ended = False

    def take(self, frame: tuple[Any, ...]) -> None:
        """Take in one frame."""
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
            self.is_over = self.has_ended = True


def run_probe(
    checks: Sequence[Check], evidence: Evidence, signs: CallSigns, times: ProbeTimes
) -> Told:
    """Run the checks in a child, whose driver gives those signs, and say what it told. Where it did
    not tell all, why that is so is one more finding."""
    child = _ProbeChild(checks, evidence, signs)
    lateness = None
    try:
        child.listen(times.deadline - times.still_seconds)
        if not child.told.has_ended:
            lateness = child.watch(times)
    finally:
        child.stop_listening()
    if lateness is not None:
        child.give_up(lateness)
    else:
        child.reap()
    return child.told


def hang_of(detail: str, job: JobOnNode | None) -> Finding:
    """The finding that a hang is. A driver that hangs hits every job that has GPUs."""
    has_gpus = job is not None and bool(job.gpus)
    return Finding(PROBE_HANG, Verdict.REBOOT, detail, of_job=has_gpus)


class _ProbeChild:
    """One child, from its start until it has ended or is given up."""

    def __init__(self, checks: Sequence[Check], evidence: Evidence, signs: CallSigns) -> None:
        self._evidence = evidence
        self._signs = signs
        self._frames = probe.Frames()
        self.told = Told()
        self._reader, writer = os.pipe2(os.O_CLOEXEC)
        self._process_id = os.fork()
        if self._process_id == 0:
            _be_probe(checks, evidence, writer)
        os.close(writer)

    def listen(self, until: float) -> None:
        """Take in what the child tells until nothing more will come, or that moment has."""
        told, poll = self.told, select.poll()
        poll.register(self._reader, select.POLLIN)
        while not told.has_ended and (left := until - time.monotonic()) > 0:
            if not poll.poll(left * 1000):
                continue
            data = os.read(self._reader, _READ_BYTES)
            told.has_ended = not data
            for frame in self._frames.feed(data):
                told.take(frame)

    def watch(self, times: ProbeTimes) -> Lateness | None:
        """Go on listening, with an eye on whether the child stands still; None where it has ended
        after all."""
        from slurm_hooks.health.late_probe import LateProbe

        late = LateProbe(self._process_id, self._signs, times.still_seconds)
        late.look()
        while (now := time.monotonic()) < times.last_moment:
            if now >= times.deadline and late.lateness().is_hang:
                break
            self.listen(min(now + _LOOK_EVERY_SECONDS, times.last_moment))
            if self.told.has_ended:
                return None
            late.look()
        return late.lateness()

    def stop_listening(self) -> None:
        """A child that tells more from now on ends by it."""
        os.close(self._reader)

    def give_up(self, lateness: Lateness) -> None:
        """Leave the child behind. It is not waited for: in the kernel it may never end."""
        try:
            os.killpg(self._process_id, signal.SIGKILL)
        except OSError:
            os.kill(self._process_id, signal.SIGKILL)
        check, job = self.told.check, self._evidence.job
        hung_probe.remember(self._evidence.host, self._process_id, check, is_hang=lateness.is_hang)
        late = f"{check or 'the probe'} did not answer in time: {lateness.why}"
        if lateness.is_hang:
            self.told.findings.append(hang_of(late, job))
        else:
            self.told.findings.append(Finding(check or PROBE_HANG, Verdict.UNKNOWN, late))

    def reap(self) -> None:
        """Take leave of a child that has told all, or has ended before that."""
        # Its end closes the devices, which can hang as any other call: no waiting without limit.
        status = _status_of(self._process_id, _REAP_SECONDS)
        if not self.told.is_over:
            self.told.findings.append(_end_of_child(status, self.told.check))


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


def _end_of_child(status: int | None, check: str) -> Finding:
    """A probe that ended too early: by a crash in the driver's library, or by something else."""
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
