"""The events of repairs, and the keys by which each is recorded once. Pure.

A sighting is named by what the reason says and by when Slurm got it, and so is what follows from
it. A reboot is named by the boot that it ends: what was seen how often before makes no two of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.reason import HealthReason
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.reconcile.repair_actions import RepairKind

_ERRORS = {
    Context.PROLOG: EventKind.VM_PROLOG_ERROR,
    Context.EPILOG: EventKind.VM_EPILOG_ERROR,
    Context.BACKGROUND: EventKind.VM_CONTINUOUS_GPU_ERROR,
}


@dataclass(frozen=True, slots=True)
class Sighting:
    """A health run's reason on a node. `reason_time_utc` is when Slurm got it, if known."""

    node: str
    pool: str
    reason: HealthReason
    reason_time_utc: datetime | None
    now: datetime

    @property
    def name(self) -> str:
        """What tells it from all others."""
        reason = self.reason
        stamp = self.reason_time_utc.isoformat() if self.reason_time_utc else "?"
        return (
            f"{self.node} {reason.instance_id}/{reason.boot} {reason.verdict} {reason.check}"
            f" {reason.context} {reason.job_id} {stamp}"
        )

    def event(self, kind: EventKind, key: str, time_utc: datetime, message: str) -> Event:
        """An event that this sighting tells of, or led to."""
        return Event(
            time_utc,
            kind,
            self.pool,
            key,
            node=self.node,
            message=message,
            instance_id=self.reason.instance_id,
            check=self.reason.check,
            verdict=self.reason.verdict.value,
            job_id=self.reason.job_id,
        )


def seen_events(sighting: Sighting) -> Iterator[Event]:
    """What a sighting tells: that a health run found the node ill, and whether it is condemned."""
    reason = sighting.reason
    if not reason.verdict.fails_job:
        return
    time_utc = min(sighting.reason_time_utc or sighting.now, sighting.now)
    error = _ERRORS[reason.context or Context.BACKGROUND]
    text = f"{reason.verdict} {reason.check}: {reason.detail}".rstrip(": ")
    yield sighting.event(error, f"{error} {sighting.name}", time_utc, text)
    if reason.verdict.drains:
        kind = EventKind.VM_SLURM_DRAIN
        yield sighting.event(kind, f"{kind} {sighting.name}", time_utc, text)


def reboot_key(sighting: Sighting, instance_id: str) -> str:
    """The key of a VM's reboot: one for each boot and check."""
    reason = sighting.reason
    return f"{EventKind.VM_REBOOT} {sighting.node} {instance_id}/{reason.boot} {reason.check}"


def return_key(sighting: Sighting) -> str:
    """The key of the end of a drain."""
    return f"{EventKind.VM_RETURNED} {sighting.name}"


def repair_events(
    sighting: Sighting, kind: RepairKind, instance_id: str, why: str
) -> tuple[Event, ...]:
    """What is recorded before a node is repaired. `instance_id` is the VM's that is there now."""
    now = sighting.now
    match kind:
        case RepairKind.REBOOT:
            key = reboot_key(sighting, instance_id)
            return (_of_vm(sighting, EventKind.VM_REBOOT, key, instance_id, why),)
        case RepairKind.REPLACE:
            return tuple(
                _of_vm(sighting, step, f"{step} {sighting.name}", instance_id, why)
                for step in (EventKind.VM_SLURM_POWER_DOWN, EventKind.VM_DELETION)
            )
        case RepairKind.RETURN | RepairKind.RETURN_OFF:
            return (sighting.event(EventKind.VM_RETURNED, return_key(sighting), now, why),)


def _of_vm(sighting: Sighting, kind: EventKind, key: str, instance_id: str, message: str) -> Event:
    reason = sighting.reason
    return Event(
        sighting.now,
        kind,
        sighting.pool,
        key,
        node=sighting.node,
        message=message,
        instance_id=instance_id,
        check=reason.check,
        verdict=reason.verdict.value,
        job_id=reason.job_id,
    )


def skipped_event(sighting: Sighting, why: str) -> Event:
    """Why a condemned node is not repaired; once for each sighting and cause."""
    kind = EventKind.REPAIR_SKIPPED
    return sighting.event(kind, f"{kind} {sighting.name}: {why}", sighting.now, why)


def came_back_event(reboot: Event, now: datetime) -> Event:
    """A node that came back of our reboot serves, and the drain was not ours to lift any more."""
    return Event(
        now,
        EventKind.VM_RETURNED,
        reboot.pool,
        f"{EventKind.VM_RETURNED} after {reboot.key}",
        node=reboot.node,
        message="it came back of its reboot",
        instance_id=reboot.instance_id,
        check=reboot.check,
        verdict=Verdict.OK.value,
    )
