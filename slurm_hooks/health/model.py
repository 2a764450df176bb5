"""The words of a health run: its context, what a check finds, and the one verdict it ends with."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple


class Context(enum.StrEnum):
    """When a check runs."""

    PROLOG = "prolog"
    EPILOG = "epilog"
    BACKGROUND = "background"


class Verdict(enum.StrEnum):
    """What a finding, or a whole run, comes to. Later members are graver.

    UNKNOWN says that something could not be judged, for a reason of ours and not of the device's.
    REQUEUE fails the job and keeps the node; RESET, REBOOT, REPLACE and MANUAL drain it.
    """

    OK = "OK"
    WARN = "WARN"
    UNKNOWN = "UNKNOWN"
    REQUEUE = "REQUEUE"
    RESET = "RESET"
    REBOOT = "REBOOT"
    REPLACE = "REPLACE"
    MANUAL = "MANUAL"

    @property
    def gravity(self) -> int:
        """The rank by which verdicts are compared; greater is graver."""
        return _GRAVITIES[self]

    @property
    def drains(self) -> bool:
        """Whether the node must take no more jobs."""
        return self.gravity >= Verdict.RESET.gravity

    @property
    def fails_job(self) -> bool:
        """Whether a job must not start on the node."""
        return self.gravity >= Verdict.REQUEUE.gravity


_GRAVITIES = {verdict: rank for rank, verdict in enumerate(Verdict)}


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """The gravest of some verdicts; OK where there is none."""
    return max(verdicts, key=lambda verdict: verdict.gravity, default=Verdict.OK)


class Finding(NamedTuple):
    """One thing that a check saw. A check that finds nothing wrong yields nothing.

    `check` is the check's name. `detail` is a short text for people, most important first, in one
    line. `gpu` is the GPU's minor number (`/dev/nvidiaN`), where the finding is about one.
    `of_job` says whether the hardware of the job at hand was at fault: then a failed job may run
    again.
    """

    check: str
    verdict: Verdict
    detail: str
    gpu: int | None = None
    xid: int | None = None
    of_job: bool = False


class JobOnNode(NamedTuple):
    """The job that a Prolog or Epilog is about, from Slurm's own variables.

    `gpus` are minor numbers. `exit_code` is known in the Epilog alone. `restart_count` is 0 on
    the job's first start.
    """

    job_id: int
    user_id: int | None = None
    gpus: tuple[int, ...] = ()
    restart_count: int = 0
    exit_code: int | None = None
