"""Reservations made and deleted, jobs warned: what is asked of Slurm before VMs end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from slurm_hooks.history.log import log_event
from slurm_hooks.reconcile.actions import CreateReservation, DeleteReservation, WarnJob
from slurm_hooks.reconcile.comments import end_of_life_comment
from slurm_hooks.reconcile.end_of_life import DURATION_SECONDS
from slurm_hooks.reconcile.outcome import Outcome
from slurm_hooks.reconcile.turns import not_done
from slurm_hooks.slurm.client import (
    ReservationSpecification,
    SlurmClient,
    SlurmError,
)

LOG = logging.getLogger("slurm-hooksd")


def change_reservation(
    slurm: SlurmClient, action: CreateReservation | DeleteReservation
) -> Outcome:
    """Make or delete a reservation."""
    match action:
        case CreateReservation():
            specification = ReservationSpecification(
                action.name, action.nodes, action.start_time_utc, DURATION_SECONDS
            )
            return _asked(action, lambda: slurm.create_reservation(specification))
        case DeleteReservation():
            return _asked(action, lambda: slurm.delete_reservation(action.name))


def warn_job(slurm: SlurmClient, action: WarnJob) -> Outcome:
    """Signal the job, then write that down.

    In this order, since a signal that comes twice harms less than one that never comes.
    """
    is_signalled = action.was_signalled
    try:
        if action.signal and not is_signalled:
            slurm.signal_job(action.job_id, action.signal, action.part)
            is_signalled = True
        if not action.keeps_comment:
            slurm.set_admin_comment(action.job_id, end_of_life_comment(action), action.part)
    except SlurmError as error:
        # The job may have ended meanwhile; the next pass warns it if it has not.
        log_event(LOG, logging.DEBUG, "job not warned", job=action.job_id, error=error)
        return replace(not_done(action, error), is_signalled=is_signalled)
    log_event(
        LOG,
        logging.INFO,
        "job warned of its node's end",
        job=action.job_id,
        node=action.node,
        end=action.end_time_utc.isoformat(),
        signal=action.signal,
    )
    return Outcome(action, is_signalled=is_signalled)


def _asked(action: CreateReservation | DeleteReservation, call: Callable[[], None]) -> Outcome:
    try:
        call()
    except SlurmError as error:
        log_event(LOG, logging.DEBUG, f"failed: {action.subject}", error=error)
        return not_done(action, error)
    log_event(LOG, logging.INFO, action.subject)
    return Outcome(action)
