"""What a case comes to in a run: the table's verdict, under the policy, the driver and the job.

The order of authority is that of the facts: the site's override, then the driver's own recovery
action (another check's verdict, so the Xid is only told), then the table. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.xids.cases import (
    CONTAINED_MEMORY_ERROR,
    RECOVERY_ACTION_CHANGED,
    XidCase,
)
from slurm_hooks.health.xids.table import explanation_of_xid

RECENT_SECONDS = 3600.0
"""For how long a background run tells of a case that nothing follows from."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a case is judged by besides itself.

    `override` is the policy's verdict for the Xid. `is_of_job` says that it came on a GPU of the
    job at hand while that ran. `recovery_action` is what NVML says of the GPU now, None where it
    says nothing, and None also where the check of that name does not count. `has_no_ecc_errors`
    is known to be so. `had_peer_errors` says that the node had errors of NVLink peers (137).
    `age_seconds` is how long ago it came last, None where that is unknown.
    """

    context: Context
    override: Verdict | None = None
    is_of_job: bool = False
    recovery_action: int | None = None
    has_no_ecc_errors: bool = False
    had_peer_errors: bool = False
    age_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a case, whether the job's hardware was at fault, and the words for it."""

    verdict: Verdict
    of_job: bool
    detail: str


def judge(case: XidCase, around: Circumstances) -> Judgement | None:
    """Judge a case; None for one that there is nothing to tell of in this context."""
    verdict, remark = _verdict(case, around)
    if verdict is Verdict.REQUEUE and not around.is_of_job:
        verdict, remark = Verdict.WARN, "for the job of then alone"
    if not _is_worth_telling(verdict, case, around):
        return None
    of_job = around.is_of_job and verdict.fails_job
    return Judgement(verdict, of_job, _detail(case, remark))


def needs_driver(case: XidCase, override: Verdict | None) -> bool:
    """Whether what the driver says of the GPU can change the verdict."""
    if override is not None:
        return False
    return case.verdict.fails_job or case.xid == RECOVERY_ACTION_CHANGED


def _verdict(case: XidCase, around: Circumstances) -> tuple[Verdict, str]:
    if around.override is not None:
        return around.override, ""
    if case.xid == RECOVERY_ACTION_CHANGED and around.recovery_action == 0:
        return Verdict.OK, ""
    if case.xid == CONTAINED_MEMORY_ERROR and around.had_peer_errors and around.has_no_ecc_errors:
        return Verdict.WARN, "from a peer or application: Xid 137 and no ECC errors"
    if case.verdict.drains and around.recovery_action:
        return Verdict.WARN, f"recovery action {around.recovery_action} decides"
    return case.verdict, ""


def _is_worth_telling(verdict: Verdict, case: XidCase, around: Circumstances) -> bool:
    """An Epilog tells all of its own job, so other runs need not repeat it until the next boot."""
    if verdict.fails_job:
        return True
    if around.context is Context.EPILOG:
        return around.is_of_job
    if verdict is Verdict.OK:
        return False
    if case.verdict.drains and around.override is None:
        return True
    is_recent = around.age_seconds is None or around.age_seconds <= RECENT_SECONDS
    return around.context is Context.BACKGROUND and is_recent


def _detail(case: XidCase, remark: str) -> str:
    parts = [f"{case.xid} at {case.pci_address}: {explanation_of_xid(case.xid)}"]
    if case.count > 1:
        parts.append(f"{case.count} times")
    if remark:
        parts.append(remark)
    return ", ".join(parts)
