"""The node's tasks: stuck ones, too many dead ones, too much load."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from slurm_hooks.health import files
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, Verdict

_SIGKILL_BIT = 1 << 8
_SECOND_LOOK_SECONDS = 1.0
_DRIVER_TOOLS = frozenset({"nvidia-smi", "nv-hostengine", "nvidia-persiste"})
_ZOMBIE_SHARE = 0.5
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Task:
    process_id: int
    name: str
    state: str
    start: str


class StuckTasksCheck:
    """Whether a task hangs in the kernel and cannot be killed."""

    name = "stuck_tasks"
    contexts = frozenset({Context.EPILOG, Context.BACKGROUND})
    summary = "no task hangs in the kernel beyond SIGKILL"
    explanation = (
        "Looks twice, a second apart, for tasks in uninterruptible sleep (D) that have SIGKILL"
        " pending, or that are the driver's own tools. They hold what they hold until a REBOOT."
        " Zombies beyond half of pid_max are a WARN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Look for them."""
        tasks = list(_tasks(evidence.host))
        stuck = {task for task in tasks if _is_stuck(evidence.host, task)}
        if stuck:
            time.sleep(_SECOND_LOOK_SECONDS)
            again = {task for task in _tasks(evidence.host) if task in stuck}
            stuck = {task for task in again if _is_stuck(evidence.host, task)}
        if stuck:
            ordered = sorted(stuck, key=lambda task: task.process_id)[:_MOST_NAMED]
            named = ", ".join(f"{task.name} ({task.process_id})" for task in ordered)
            yield Finding(self.name, Verdict.REBOOT, f"{len(stuck)} tasks hang: {named}")
        zombies = sum(task.state == "Z" for task in tasks)
        most = _number(files.read_text(evidence.host.path("proc", "sys", "kernel", "pid_max")))
        if most and zombies > most * _ZOMBIE_SHARE:
            yield Finding(self.name, Verdict.WARN, f"{zombies} zombies of {most} processes")


class LoadCheck:
    """Whether the node was busy before the job came."""

    name = "load"
    contexts = frozenset({Context.PROLOG, Context.BACKGROUND})
    summary = "the load average is not far beyond the node's cores"
    explanation = (
        "Compares the load average of one minute with the number of cores. More than"
        " load_per_core_warn for each core is a WARN, never more: load alone breaks nothing."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Read the load."""
        text = files.read_text(evidence.host.path("proc", "loadavg"))
        try:
            load = float(text.split()[0])
        except (ValueError, IndexError):
            return
        cores = os.cpu_count() or 1
        if load > evidence.policy.thresholds.load_per_core_warn * cores:
            yield Finding(self.name, Verdict.WARN, f"load {load:g} on {cores} cores")


def _tasks(host: Host) -> Iterator[_Task]:
    directory = host.path("proc")
    try:
        names = [name for name in os.listdir(directory) if name.isascii() and name.isdigit()]
    except OSError:
        return
    for name in names:
        head, _, rest = files.read_text(os.path.join(directory, name, "stat")).rpartition(")")
        fields = rest.split()
        if len(fields) > 19:
            yield _Task(int(name), head.partition("(")[2], fields[0], fields[19])


def _is_stuck(host: Host, task: _Task) -> bool:
    if task.state != "D":
        return False
    if task.name in _DRIVER_TOOLS:
        return True
    status = files.read_text(host.path("proc", str(task.process_id), "status"))
    pending = 0
    for line in status.splitlines():
        key, _, value = line.partition(":")
        if key in ("ShdPnd", "SigPnd"):
            pending |= _number(value, 16) or 0
    return bool(pending & _SIGKILL_BIT)


def _number(text: str, base: int = 10) -> int | None:
    try:
        return int(text.strip(), base)
    except ValueError:
        return None
