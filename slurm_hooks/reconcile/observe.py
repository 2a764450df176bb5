"""Observe: read Slurm first, then Compute Engine, and the calls in the spool.

What cannot be read becomes `Unavailable`; nothing here raises for a system that is down.
"""

from __future__ import annotations

from datetime import datetime

from slurm_hooks.compute.classify import classify_operation
from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import ComputeSnapshot
from slurm_hooks.reconcile.memory import Reading, settle
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory, Snapshot, System, Unavailable
from slurm_hooks.slurm.client import SlurmClient, SlurmError
from slurm_hooks.slurm.model import SlurmSnapshot


def observe(
    slurm: SlurmClient,
    compute: ComputeClient,
    calls: CallsDirectory,
    cluster_id: str,
    memory: Memory,
) -> Snapshot:
    """Read everything once.

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
    )


def poll_operations(compute: ComputeClient, memory: Memory, now: datetime) -> Memory:
    """Read every operation in flight again and take in what it has become."""
    readings = []
    for subject, operation in memory.in_flight.items():
        try:
            readings.append(Reading(subject, compute.get_operation(operation)))
        except ComputeError as error:
            # An error while reading says nothing about the operation, unless it is unknown there.
            if error.kind is ErrorKind.GONE:
                readings.append(Reading(subject, None))
    kinds = {
        reading.subject: kind
        for reading in readings
        if reading.operation is not None
        and (kind := classify_operation(reading.operation)) is not None
    }
    return settle(memory, readings, kinds, now)


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
