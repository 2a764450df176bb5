"""Xids: what the driver wrote into the kernel log since the last time that somebody dealt with it.

A healthy log costs a Prolog one reading and no more modules: the rest is loaded when there is an
Xid to judge.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from slurm_hooks.health import files
from slurm_hooks.health.cleared import read_cleared
from slurm_hooks.health.driver.model import DriverError
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.identity import boot_of
from slurm_hooks.health.model import Context, Finding, Verdict
from slurm_hooks.health.xids.gpu_places import attached_gpus, keep_minors, minor_at, plain_address
from slurm_hooks.health.xids.kernel_log import KernelLog, read_kernel_log
from slurm_hooks.health.xids.window import (
    BOOT_COUNTER,
    SEQUENCE_COUNTER,
    ThisBoot,
    Window,
    window_of,
)

if TYPE_CHECKING:
    from slurm_hooks.health.xids.cases import XidCase
    from slurm_hooks.health.xids.judge import Circumstances

_RECOVERY_ACTION_CHECK = "recovery_action"


class XidCheck:
    """Judges the Xids of the kernel log by table, policy, recovery action and job."""

    name = "xid"
    contexts = frozenset(Context)
    summary = "errors that the NVIDIA driver wrote into the kernel log (Xids)"
    explanation = (
        "Reads /dev/kmsg of this boot. In a Prolog and in the background, Xids count since boot or"
        " since `slurm-hooks-health clear`; in an Epilog, those that came while the job ran, and"
        " the job was hit if they are about its GPUs. Xids of applications are only logged. A"
        " contained memory error (94) concerns the job of then alone. Where the driver asks for a"
        " recovery action, the check recovery_action has the verdict and Xids are told as"
        " warnings. `xids` in the policy overrides the verdict of single Xids."
        " After a repair by hand (`nvidia-smi -r`), run `slurm-hooks-health clear`; a reboot needs"
        " no clear. A log that cannot be read in full is UNKNOWN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Read the log, leave to the next run how far it had come, and judge what it says."""
        this_boot = _this_boot(evidence)
        window = _window(evidence, this_boot)
        log = read_kernel_log(evidence.host.kernel_log, window.since)
        _keep(evidence, this_boot, log)
        problem = log.problem or _lost(window, log)
        if problem and evidence.expects_gpus:
            yield Finding(self.name, Verdict.UNKNOWN, problem)
        if log.xids:
            yield from self._judge(evidence, this_boot, window, log)
        if evidence.context is Context.PROLOG:
            keep_minors(evidence)

    def _judge(
        self, evidence: Evidence, this_boot: ThisBoot, window: Window, log: KernelLog
    ) -> Iterator[Finding]:
        from slurm_hooks.health.xids.cases import PEER_ACCESS_ERROR, cases_of
        from slurm_hooks.health.xids.judge import judge

        cases = cases_of(log.xids, own_processes=(os.getpid(),))
        had_peer_errors = any(case.xid == PEER_ACCESS_ERROR for case in cases)
        for case in cases:
            minor = minor_at(evidence, case.pci_address)
            is_of_job = window.is_of_job and _has(evidence, minor)
            around = _circumstances(case, evidence, this_boot, is_of_job, had_peer_errors)
            judgement = judge(case, around)
            if judgement is not None:
                yield Finding(
                    self.name,
                    judgement.verdict,
                    judgement.detail,
                    gpu=minor,
                    xid=case.xid,
                    of_job=judgement.of_job,
                )


def _this_boot(evidence: Evidence) -> ThisBoot:
    """The kernel's stamps count from its start, as its uptime does."""
    uptime = files.read_text(evidence.host.path("proc", "uptime")).partition(" ")[0]
    try:
        began = evidence.now - timedelta(seconds=float(uptime))
    except (ValueError, OverflowError):
        began = None
    return ThisBoot(boot_of(evidence.host), began)


def _window(evidence: Evidence, this_boot: ThisBoot) -> Window:
    cleared = read_cleared(evidence.host) if evidence.cleared_time is not None else None
    return window_of(
        evidence.context, this_boot, cleared, evidence.baseline, evidence.baseline_time
    )


def _keep(evidence: Evidence, this_boot: ThisBoot, log: KernelLog) -> None:
    if log.last_sequence is not None and this_boot.boot:
        evidence.counters[SEQUENCE_COUNTER] = log.last_sequence
        evidence.counters[BOOT_COUNTER] = int(this_boot.boot, 16)


def _lost(window: Window, log: KernelLog) -> str:
    """The log is a ring: what is lost is of a job's time if it begins after the job did."""
    begins_at = window.since.sequence
    if not window.is_of_job or begins_at is None or log.first_sequence is None:
        return ""
    lost = log.first_sequence - begins_at - 1
    return f"the kernel log has lost {lost} lines of the job's time" if lost > 0 else ""


def _has(evidence: Evidence, minor: int | None) -> bool:
    return evidence.job is not None and minor in evidence.job.gpus


def _circumstances(
    case: XidCase,
    evidence: Evidence,
    this_boot: ThisBoot,
    is_of_job: bool,
    had_peer_errors: bool,
) -> Circumstances:
    from slurm_hooks.health.xids.judge import Circumstances, needs_driver

    override = evidence.policy.xids.get(case.xid)
    action, has_no_ecc_errors = None, False
    if needs_driver(case, override):
        action = _recovery_action(evidence, case.pci_address)
        has_no_ecc_errors = had_peer_errors and _has_no_ecc_errors(evidence, case.pci_address)
    return Circumstances(
        context=evidence.context,
        override=override,
        is_of_job=is_of_job,
        recovery_action=action,
        has_no_ecc_errors=has_no_ecc_errors,
        had_peer_errors=had_peer_errors,
        age_seconds=_age(case, evidence, this_boot),
    )


def _recovery_action(evidence: Evidence, pci_address: str) -> int | None:
    policy = evidence.policy
    gpu = attached_gpus(evidence).get(plain_address(pci_address))
    if gpu is None or _RECOVERY_ACTION_CHECK in policy.disabled_checks | policy.observed_checks:
        return None
    try:
        return evidence.driver.recovery_action(gpu)
    except DriverError:
        return None


def _has_no_ecc_errors(evidence: Evidence, pci_address: str) -> bool:
    """Whether every ECC counter that the GPU keeps is at 0, and it keeps some."""
    gpu = attached_gpus(evidence).get(plain_address(pci_address))
    if gpu is None:
        return False
    try:
        ecc, sram = evidence.driver.ecc_counts(gpu), evidence.driver.sram_errors(gpu)
    except DriverError:
        return False
    counts = [ecc.corrected, ecc.uncorrected] if ecc is not None else []
    counts += [sram.parity, sram.sec_ded, sram.corrected] if sram is not None else []
    return bool(counts) and not any(counts)


def _age(case: XidCase, evidence: Evidence, this_boot: ThisBoot) -> float | None:
    if case.last_seconds is None or this_boot.time is None:
        return None
    return (evidence.now - this_boot.time).total_seconds() - case.last_seconds
