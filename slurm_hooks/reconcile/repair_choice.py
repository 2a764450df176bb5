"""Which repair a condemned node needs, before any limit. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from slurm_hooks.health.model import Verdict
from slurm_hooks.health.reason import HealthReason, health_reason_of
from slurm_hooks.health.slurm_reasons import is_reboot_issued
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.node_table import Step
from slurm_hooks.reconcile.phases import VmPhase
from slurm_hooks.reconcile.repair_actions import RepairKind
from slurm_hooks.reconcile.repair_events import Sighting, reboot_key, return_key
from slurm_hooks.reconcile.repairs import RepairLog, Standing, standing_of
from slurm_hooks.reconcile.views import NodeView
from slurm_hooks.slurm.model import NodeFlag

REST_BETWEEN_REQUEUES = timedelta(minutes=5)
"""As long as a fabric may take to register after a boot."""

LONGEST_SILENCE = timedelta(minutes=30)
"""Of a node that is back of its reboot: the longest burn-in that its policy may ask for, and the
checks around it. A site whose VMs boot faster must not lose healthy nodes in the middle of it."""

_NOT_DRAINED = (
    NodeFlag.REBOOT_ISSUED,
    NodeFlag.REBOOT_REQUESTED,
    NodeFlag.POWERED_DOWN,
    NodeFlag.POWERING_DOWN,
    NodeFlag.POWERING_UP,
)


@dataclass(frozen=True, slots=True)
class Condemned:
    """A node with a health run's reason. `has_job`: an active job has it, as far as we saw."""

    view: NodeView
    reason: HealthReason
    standing: Standing
    sighting: Sighting
    has_job: bool

    @property
    def name(self) -> str:
        return self.view.node.name

    @property
    def pool(self) -> str:
        return self.view.pool.pool_id

    @property
    def instance_id(self) -> str:
        """The id of the VM that is there now; empty where there is none."""
        return self.view.vm.instance_id if self.view.vm is not None else ""

    @property
    def is_drained(self) -> bool:
        """Whether the drain stands, and neither a reboot nor a power step is under way."""
        state = self.view.node.state
        return state.has(NodeFlag.DRAIN) and not state.has(*_NOT_DRAINED)

    @property
    def is_fresh(self) -> bool:
        """Whether the drain stands and is not one from before a reboot, which slurmctld stamps
        anew when it tells slurmd."""
        return self.is_drained and not is_reboot_issued(self.view.node.reason)


@dataclass(frozen=True, slots=True)
class Repair:
    """What a node needs, and why."""

    kind: RepairKind
    why: str

    @property
    def is_limited(self) -> bool:
        """Whether it costs the node its VM or a reboot."""
        return self.kind in (RepairKind.REBOOT, RepairKind.REPLACE)


def condemned_of(view: NodeView, *, has_job: bool, now: datetime) -> Condemned | None:
    """The node as a condemned one; None where its reason is not a health run's."""
    reason = health_reason_of(view.node.reason)
    if reason is None:
        return None
    given_utc = view.node.reason_time_utc
    sighting = Sighting(view.node.name, view.pool.pool_id, reason, given_utc, now)
    return Condemned(view, reason, standing_of(view.node), sighting, has_job)


def choose_repair(
    one: Condemned, log: RepairLog, boot_timeout_seconds: int, now: datetime
) -> Repair | None:
    """What the node needs; None while it is to be left alone."""
    if one.standing is Standing.OFF and one.view.vm_phase is VmPhase.NONE:
        return Repair(RepairKind.RETURN_OFF, "the VM that the drain was about is gone")
    if one.has_job or one.view.vm_phase is not VmPhase.RUNNING or one.view.step is Step.RECYCLE:
        return None
    match one.standing:
        case Standing.DRAINED:
            return _for_drained(one, log, boot_timeout_seconds, now)
        case Standing.REBOOTING:
            return _for_rebooting(one, log, boot_timeout_seconds, now)
        case Standing.SILENT:
            return Repair(RepairKind.REPLACE, "slurmd does not answer on a condemned node")
        case _:
            return None


def _for_drained(
    one: Condemned, log: RepairLog, boot_timeout_seconds: int, now: datetime
) -> Repair | None:
    reason = one.reason
    if reason.instance_id and reason.instance_id != one.instance_id:
        return Repair(RepairKind.RETURN, "the VM that the drain was about is gone")
    match reason.verdict:
        case Verdict.OK:
            return Repair(RepairKind.RETURN, "a health run passed")
        case Verdict.REQUEUE if _rests(one, log, now):
            return None
        case Verdict.REQUEUE:
            return Repair(RepairKind.RETURN, f"{reason.check} failed a job and not the node")
        case Verdict.RESET | Verdict.REBOOT:
            return _reboot_or_more(one, log, boot_timeout_seconds, now)
        case Verdict.REPLACE | Verdict.MANUAL:
            return Repair(RepairKind.REPLACE, f"{reason.check}: {reason.detail}".rstrip(": "))
        case _:
            return None


def _rests(one: Condemned, log: RepairLog, now: datetime) -> bool:
    """Whether the node has failed another job for the same cause a moment ago: returned at once, it
    would fail one after another."""
    own = return_key(one.sighting)
    return any(
        event.check == one.reason.check
        and event.verdict == Verdict.REQUEUE
        and event.key != own
        and now - event.time_utc < REST_BETWEEN_REQUEUES
        for event in log.of_node(one.name, EventKind.VM_RETURNED)
    )


def _reboot_or_more(
    one: Condemned, log: RepairLog, boot_timeout_seconds: int, now: datetime
) -> Repair | None:
    """A reboot that was asked for and is not to be seen is asked for again, until it is late; one
    that was carried out and helped nothing is the last. In between it is the node's turn to say
    how it is."""
    reason = one.reason
    reboots = [
        event
        for event in _reboots_of_vm(one, log)
        if event.check == reason.check or not reason.boot
    ]
    if not reboots:
        return Repair(RepairKind.REBOOT, f"{reason.check}: {reason.detail}".rstrip(": "))
    last = reboots[-1]
    if _is_about_boot_after(one, reboots):
        return Repair(RepairKind.REPLACE, f"{reason.check} fails again after a reboot")
    back_utc = _back_utc(one, last)
    boot_timeout = timedelta(seconds=boot_timeout_seconds)
    if back_utc is not None:
        is_silent = now - back_utc > max(boot_timeout, LONGEST_SILENCE)
        late = Repair(RepairKind.REPLACE, "no health run has passed since its reboot")
        return late if is_silent else None
    if now - last.time_utc > boot_timeout:
        return Repair(RepairKind.REPLACE, "its reboot was asked for in vain")
    return Repair(RepairKind.REBOOT, f"{reason.check}: {reason.detail}".rstrip(": "))


def _is_about_boot_after(one: Condemned, reboots: list[Event]) -> bool:
    """Whether the finding is one of a boot that such a reboot has led to. What is about an unknown
    boot may come of any, unless the node has booted since it was told."""
    node = one.view.node
    if one.reason.boot:
        key = reboot_key(one.sighting, one.instance_id)
        return any(event.key != key for event in reboots)
    booted_utc, told_utc = node.boot_time_utc, node.reason_time_utc
    if booted_utc is None or told_utc is None or node.state.has(NodeFlag.INVALID_REG):
        return True
    return booted_utc <= reboots[-1].time_utc or told_utc > booted_utc


def _back_utc(one: Condemned, reboot: Event) -> datetime | None:
    """Since when the node is back of a reboot; None where it is not, as far as can be told."""
    node = one.view.node
    if node.boot_time_utc is not None and node.boot_time_utc > reboot.time_utc:
        return node.boot_time_utc
    return reboot.time_utc if is_reboot_issued(node.reason) else None


def _for_rebooting(
    one: Condemned, log: RepairLog, boot_timeout_seconds: int, now: datetime
) -> Repair | None:
    """A reboot that nobody of ours has asked for is a person's."""
    reboots = _reboots_of_vm(one, log)
    if not reboots or now - reboots[-1].time_utc <= timedelta(seconds=boot_timeout_seconds):
        return None
    return Repair(RepairKind.REPLACE, "it did not come back of its reboot in time")


def _reboots_of_vm(one: Condemned, log: RepairLog) -> list[Event]:
    return [
        event
        for event in log.of_node(one.name, EventKind.VM_REBOOT)
        if event.instance_id == one.instance_id
    ]
