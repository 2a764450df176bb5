"""Reads the calls that hook programs left in the spool.

A file that we cannot trust (another owner, writable by others) or cannot read is set aside with
one line of log; it is only a hint, and Slurm's node states say the rest. So a spool that cannot
be read or changed costs hints and a line of log, never a pass.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from slurm_hooks.history.log import log_event
from slurm_hooks.programs import spool
from slurm_hooks.reconcile.snapshot import JobShare, ResumeCall

LOG = logging.getLogger("slurm-hooksd")
LARGEST_CALL_BYTES = 80 * 1024 * 1024
RESUME = "resume"

UNFINISHED_KEPT_SECONDS = 3600
"""How long a file that is still being written may lie there: far longer than any program lives.
One killed at its work never comes back for it."""

Expand = Callable[[str], list[str]]


class CallsDirectory:
    """The spool's calls. `expand` turns a hostlist into names and raises ValueError."""

    def __init__(self, spool_directory: Path, expand: Expand) -> None:
        self._directory = Path(spool.requests_directory(str(spool_directory)))
        self._expand = expand
        self._known: dict[str, ResumeCall] = {}
        self._spent: set[str] = set()
        self._unfinished: tuple[str, ...] = ()
        self._trouble = ""

    def read(self) -> tuple[ResumeCall, ...]:
        """All ResumeProgram calls that are still open, oldest first. Changes nothing.

        Calls of the other programs, which only wake the daemon, and unusable ones are spent.
        """
        calls = []
        for name in self._names():
            if name in self._spent:
                continue
            call = self._known.get(name) or self._take(name)
            if call is None:
                self._spent.add(name)
            else:
                self._known[name] = call
                calls.append(call)
        return tuple(calls)

    def remove_spent(self) -> None:
        """Remove the files that were read and say nothing more, and those never finished."""
        for name in sorted(self._spent):
            self.forget(name)
        for name in self._unfinished:
            if self._is_given_up(name):
                self.forget(name)

    def forget(self, call_id: str) -> None:
        """Remove a call; one that is already gone is no error.

        One that cannot be removed is spent all the same, and tried again with the other ones.
        """
        self._known.pop(call_id, None)
        try:
            (self._directory / call_id).unlink(missing_ok=True)
        except OSError as error:
            self._spent.add(call_id)
            self._report("call in spool not removed", error)
        else:
            self._spent.discard(call_id)

    def _report(self, message: str, error: OSError) -> None:
        """Say once what is wrong with the spool, until it is something else."""
        trouble = f"{message}: {error.strerror}"
        if trouble != self._trouble:
            self._trouble = trouble
            log_event(LOG, logging.WARNING, message, error=error)

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self._directory)  # noqa: PTH208
        except FileNotFoundError:
            return []
        except OSError as error:
            self._report("spool not read", error)
            return []
        calls = sorted(name for name in names if name.endswith(spool.SUFFIX))
        self._unfinished = tuple(name for name in calls if name.startswith("."))
        return [name for name in calls if not name.startswith(".")]

    def _is_given_up(self, unfinished: str) -> bool:
        """Whether nobody writes this file any more. A program that still did would get an error
        when it renames it, and leave no call."""
        try:
            written = (self._directory / unfinished).lstat().st_mtime
        except OSError:
            return False
        return time.time() - written > UNFINISHED_KEPT_SECONDS

    def _take(self, name: str) -> ResumeCall | None:
        path = self._directory / name
        try:
            return self._parse(name, _read_trusted(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            log_event(LOG, logging.WARNING, "call in spool not usable", call=name, error=error)
            return None

    def _parse(self, name: str, text: str) -> ResumeCall | None:
        content = json.loads(text)
        if content["version"] != spool.FORMAT_VERSION:
            raise ValueError(f"version {content['version']} is not {spool.FORMAT_VERSION}")
        if content["program"] != RESUME:
            return None
        nodes = tuple(self._expand(content["hostlist"]))
        when = datetime.fromtimestamp(float(content["time"]), UTC)
        jobs = self._job_shares(name, content["resume_file"], frozenset(nodes))
        return ResumeCall(name, when, nodes, jobs)

    def _job_shares(
        self, name: str, resume_file: str | None, nodes: frozenset[str]
    ) -> tuple[JobShare, ...]:
        """The jobs of a resume file, cut down to the call's own nodes: Slurm 26.05 lists all
        jobs of a pass in each call's file."""
        if resume_file is None:
            return ()
        try:
            jobs = json.loads(resume_file).get("jobs") or []
            shares = [self._job_share(job, nodes) for job in jobs]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            log_event(LOG, logging.WARNING, "resume file not usable", call=name, error=error)
            return ()
        return tuple(share for share in shares if share.nodes)

    def _job_share(self, job: Mapping[str, object], nodes: frozenset[str]) -> JobShare:
        """`nodes_resume` from Slurm 23.02 on, `nodes` before."""
        hostlist = job.get("nodes_resume") or job.get("nodes") or ""
        names = tuple(n for n in self._expand(str(hostlist)) if n in nodes)
        return JobShare(int(str(job["job_id"])), names)


def _read_trusted(path: Path) -> str:
    """The text of a file that nobody but us could have written. Raises OSError, ValueError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise ValueError("not a file of the daemon's own user")
        if status.st_mode & 0o022:
            raise ValueError("writable by others")
        return file.read(LARGEST_CALL_BYTES).decode()
