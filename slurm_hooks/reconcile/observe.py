"""Observe: read Slurm first, then Compute Engine, and the calls in the spool.

What cannot be read becomes `Unavailable`; nothing here raises for a system that is down.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from slurm_hooks.compute.classify import classify_operation
from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import (
    ComputeSnapshot,
    Operation,
    Scope,
    Template,
    WorkloadPolicy,
)
from slurm_hooks.compute.retry import RETRIED
from slurm_hooks.history.events import EventHistory, HistoryUnavailable
from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.memory import (
    LONGEST_OPERATION,
    Reading,
    due_for_poll,
    overdue,
    settle,
)
from slurm_hooks.reconcile.repairs import RepairLog, log_of
from slurm_hooks.reconcile.report_actions import OpenReport
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory, Snapshot, System, Unavailable
from slurm_hooks.slurm.client import SlurmClient, SlurmError
from slurm_hooks.slurm.model import SlurmSnapshot

LOG = logging.getLogger("slurm-hooksd")


def observe(
    slurm: SlurmClient,
    compute: ComputeClient,
    calls: CallsDirectory,
    cluster_id: str,
    memory: Memory,
    *,
    with_templates: bool = False,
    repairs: RepairLog | Unavailable | None = None,
    report: OpenReport | Unavailable | None = None,
) -> Snapshot:
    """Read everything once; the instance templates and the workload policies only where asked,
    since they seldom change.

    The calls are read before Slurm: a call that comes later is about a state that this snapshot
    does not have yet, and the daemon is woken for it anyway.
    """
    open_calls = calls.read()
    slurm_part = _read_slurm(slurm)
    return Snapshot(
        slurm=slurm_part,
        compute=_read_compute(compute, cluster_id),
        resume_calls=open_calls,
        memory=memory,
        templates=_read_templates(compute, cluster_id) if with_templates else (),
        workload_policies=_read_workload_policies(compute, cluster_id) if with_templates else (),
        repairs=RepairLog() if repairs is None else repairs,
        report=report,
    )


MOST_POLLED = 100
POLLING_SECONDS = 20.0
"""How many operations are read at a time, and for how long: the rest comes first the next time."""


def poll_operations(
    compute: ComputeClient,
    memory: Memory,
    now: datetime,
    clock: Callable[[], float] = time.monotonic,
) -> Memory:
    """Read the operations in flight again, old ones less often, and take in what they have become.

    Where the service does not answer, or answers slowly, the rest is left for the next time. One
    that has been on its way for too long counts as over, whether or not it can be read.
    One operation may carry out many actions, as the deletion of a thousand VMs; it is read once.
    `clock` gives seconds that only go forward.
    """
    subjects: dict[tuple[Scope, str], list[str]] = {}
    for subject in due_for_poll(memory, now):
        operation = memory.in_flight[subject]
        subjects.setdefault((operation.scope, operation.name), []).append(subject)
    readings: list[Reading] = []
    polled_utc, end = dict(memory.polled_utc), clock() + POLLING_SECONDS
    for members in itertools.islice(subjects.values(), MOST_POLLED):
        if clock() >= end:
            break
        polled_utc |= dict.fromkeys(members, now)
        try:
            read: Operation | None = compute.get_operation(memory.in_flight[members[0]])
        except ComputeError as error:
            # An error while reading says nothing about the operation, unless it is unknown there.
            if error.kind in RETRIED:
                break
            if error.kind is not ErrorKind.GONE:
                continue
            read = None
        readings += [Reading(subject, read) for subject in members]
    kinds = {
        reading.subject: kind
        for reading in readings
        if reading.operation is not None
        and (kind := classify_operation(reading.operation)) is not None
    }
    memory = replace(memory, polled_utc=polled_utc)
    return _without_overdue(settle(memory, readings, kinds, now), now)


def _without_overdue(memory: Memory, now: datetime) -> Memory:
    subjects = overdue(memory, now)
    operations = {memory.in_flight[subject].name: subject for subject in subjects}
    for name, subject in operations.items():
        log_event(
            LOG,
            logging.WARNING,
            "operation does not end, its action will be tried again",
            operation=name,
            action=subject,
            minutes=LONGEST_OPERATION // timedelta(minutes=1),
        )
    return settle(memory, [Reading(subject, None) for subject in subjects], {}, now)


def read_repairs(history: EventHistory, since_utc: datetime) -> RepairLog | Unavailable:
    """What was done for condemned nodes since then, and which pools are not repaired."""
    try:
        return log_of(history.recent(since_utc))
    except HistoryUnavailable as error:
        return Unavailable(System.HISTORY, str(error))


def _read_slurm(slurm: SlurmClient) -> SlurmSnapshot | Unavailable:
    try:
        return slurm.read()
    except SlurmError as error:
        return Unavailable(System.SLURM, str(error))


def _read_compute(compute: ComputeClient, cluster_id: str) -> ComputeSnapshot | Unavailable:
    try:
        return compute.read(cluster_id)
    except ComputeError as error:
        return Unavailable(System.COMPUTE, str(error))


def _read_templates(compute: ComputeClient, cluster_id: str) -> tuple[Template, ...]:
    """None where they cannot be read: templates are only ever looked at to remove old ones."""
    try:
        return compute.read_templates(cluster_id)
    except ComputeError as error:
        log_event(LOG, logging.WARNING, "instance templates not read", error=error)
        return ()


def _read_workload_policies(compute: ComputeClient, cluster_id: str) -> tuple[WorkloadPolicy, ...]:
    """None where they cannot be read, as with templates."""
    try:
        return compute.read_workload_policies(cluster_id)
    except ComputeError as error:
        log_event(LOG, logging.WARNING, "workload policies not read", error=error)
        return ()
