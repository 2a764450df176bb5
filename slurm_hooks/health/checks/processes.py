"""Ghosts: what a job left running on its GPUs, or what still holds their memory."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

from slurm_hooks.health import files
from slurm_hooks.health.checks.gpus import each_gpu
from slurm_hooks.health.driver.model import DriverError, Gpu
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, JobOnNode, Verdict

_LOOKS = 3
_PAUSE_SECONDS = 3.0


class GhostProcessesCheck:
    """Whether anything of the job is left on its GPUs."""

    name = "ghost_processes"
    contexts = frozenset({Context.EPILOG})
    summary = "nothing of the job is left running on its GPUs or holds their memory"
    explanation = (
        "After a job, looks three times, three seconds apart, for live processes of that very job"
        " on its GPUs (by its cgroup, or by the user and SLURM_JOB_ID of the process), then kills"
        " them. What survives that, and memory that nobody seems to hold (ghost_memory_bytes), mean"
        " RESET. Processes of other jobs, and logins of the same user, are never touched; on the"
        " job's GPUs they are a WARN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Wait for ghosts to go, kill those that stay, and tell what is left."""
        job = evidence.job
        if job is None or not job.gpus:
            return
        if not _wait_for_end(evidence, job) and evidence.may_act:
            for process_id in _ghosts(evidence, job):
                _kill(evidence.host, process_id, job)
            _wait_for_end(evidence, job)

        def look(gpu: Gpu) -> Iterator[Finding]:
            if not evidence.is_of_job(gpu):
                return
            live = _live_processes(evidence, gpu)
            own = [process_id for process_id in live if _is_of_job(evidence.host, process_id, job)]
            if own:
                detail = f"process {own[0]} of the job cannot be ended"
                yield Finding(self.name, Verdict.RESET, detail, gpu=gpu.minor)
            elif live:
                detail = f"process {live[0]} on the GPU is not of the job that ended"
                yield Finding(self.name, Verdict.WARN, detail, gpu=gpu.minor)
            elif _is_memory_held_on(evidence, gpu):
                detail = "memory is still held, by no process"
                yield Finding(self.name, Verdict.RESET, detail, gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


def _wait_for_end(evidence: Evidence, job: JobOnNode) -> bool:
    """Look a few times; whether the job has left its GPUs."""
    for number in range(_LOOKS):
        if number:
            time.sleep(evidence.seconds_left(_PAUSE_SECONDS))
        if not _ghosts(evidence, job) and not _is_memory_held(evidence):
            return True
    return False


def _ghosts(evidence: Evidence, job: JobOnNode) -> set[int]:
    """Live processes of the job on its GPUs."""
    return {
        process_id
        for gpu in _gpus_that_answer(evidence)
        for process_id in _live_processes(evidence, gpu)
        if _is_of_job(evidence.host, process_id, job)
    }


def _is_memory_held(evidence: Evidence) -> bool:
    return any(
        not _live_processes(evidence, gpu) and _is_memory_held_on(evidence, gpu)
        for gpu in _gpus_that_answer(evidence)
    )


def _gpus_that_answer(evidence: Evidence) -> Iterator[Gpu]:
    """Of the job's: one that fails must not save the ghosts on the others."""
    for gpu in evidence.gpus():
        if not evidence.is_of_job(gpu):
            continue
        try:
            evidence.driver.process_ids(gpu)
            evidence.driver.memory(gpu)
        except DriverError:
            continue
        yield gpu


def _live_processes(evidence: Evidence, gpu: Gpu) -> list[int]:
    """The driver may list processes that have ended already."""
    listed = evidence.driver.process_ids(gpu) or ()
    return [process_id for process_id in listed if _is_alive(evidence.host, process_id)]


def _is_alive(host: Host, process_id: int) -> bool:
    stat = files.read_text(host.path("proc", str(process_id), "stat"))
    return stat.rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])


def _is_of_job(host: Host, process_id: int, job: JobOnNode) -> bool:
    """Whether a process is the job's own: Slurm's cgroup says so, or user and environment both.

    The environment alone is the user's to write, so it never makes another user's process a ghost.
    """
    place = host.path("proc", str(process_id))
    cgroups = files.read_text(os.path.join(place, "cgroup")).splitlines()
    if any(f"job_{job.job_id}" in line.split("/") for line in cgroups):
        return True
    if any(part.startswith("job_") for line in cgroups for part in line.split("/")):
        return False
    environment = files.read_text(os.path.join(place, "environ")).split("\0")
    is_users = job.user_id is not None and _owner(place) == job.user_id
    return is_users and f"SLURM_JOB_ID={job.job_id}" in environment


def _owner(place: str) -> int | None:
    for line in files.read_text(os.path.join(place, "status")).splitlines():
        if line.startswith("Uid:"):
            fields = line.split()
            return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None
    return None


def _kill(host: Host, process_id: int, job: JobOnNode) -> None:
    """End one process of the job. Its number may be another's by now, so it is held by a
    descriptor first and looked at again then."""
    try:
        descriptor = os.pidfd_open(process_id)
    except OSError:
        return
    try:
        if _is_of_job(host, process_id, job):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _is_memory_held_on(evidence: Evidence, gpu: Gpu) -> bool:
    """Where the driver lists no processes, another job's may well be what holds the memory."""
    if evidence.driver.process_ids(gpu) is None:
        return False
    memory = evidence.driver.memory(gpu)
    return memory is not None and memory.used > evidence.policy.thresholds.ghost_memory_bytes
