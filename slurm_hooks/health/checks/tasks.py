"""The node's tasks: stuck ones, too many dead ones, too much load."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, Verdict

_SIGKILL_BIT = 1 << 8
_SECOND_LOOK_SECONDS = 5.0
_DRIVER_TOOLS = frozenset({"nvidia-smi", "nv-hostengine", "nvidia-persiste"})
"""By the names that the kernel keeps, of 15 characters at most."""
_LAST_SYSTEM_USER = 999
"""Any user can name a program so, and have it sleep as long as it likes (vfork). One of a user's
that hangs in the driver is seen when its job ends it."""
_ZOMBIE_SHARE = 0.5
_MOST_NAMED = 3
_START_FIELD = 19
"""Of /proc/PID/stat, counted after the name."""


class _Task(NamedTuple):
    """`place` is its directory below /proc."""

    place: str
    name: str
    state: str
    start: str


class _Sleep(NamedTuple):
    """One sleep of one task: a task that ran in between has switched."""

    task: _Task
    switches: int


class StuckTasksCheck:
    """Whether a task hangs in the kernel and cannot be killed."""

    name = "stuck_tasks"
    contexts = frozenset({Context.EPILOG, Context.BACKGROUND})
    summary = "no task hangs in the kernel beyond SIGKILL"
    explanation = (
        "Looks for tasks in uninterruptible sleep (D) that have SIGKILL pending, or that are the"
        " driver's own tools and no user's, also for threads whose process is dead. Those that are"
        " in the very same sleep five seconds later hold what they hold until a REBOOT. Zombies"
        " beyond half of pid_max are a WARN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Look for them."""
        tasks = list(_tasks(evidence.host))
        stuck = {sleep for task in tasks if (sleep := _stuck_sleep(task)) is not None}
        pause = evidence.seconds_left(_SECOND_LOOK_SECONDS)
        if stuck and pause > 0:
            time.sleep(pause)
            again = {_stuck_sleep(task) for task in _tasks(evidence.host)}
            yield from self._judge(sleep.task for sleep in stuck if sleep in again)
        zombies = sum(task.state == "Z" for task in tasks)
        most = _number(files.read_text(evidence.host.path("proc", "sys", "kernel", "pid_max")))
        if most and zombies > most * _ZOMBIE_SHARE:
            yield Finding(self.name, Verdict.WARN, f"{zombies} zombies of {most} processes")

    def _judge(self, stuck: Iterator[_Task]) -> Iterator[Finding]:
        named = sorted(f"{task.name} ({os.path.basename(task.place)})" for task in stuck)
        if named:
            detail = f"{len(named)} tasks hang: {', '.join(named[:_MOST_NAMED])}"
            yield Finding(self.name, Verdict.REBOOT, detail)


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
    """Every process, and the threads of those that are dead: a process that was killed leaves only
    the threads that cannot end."""
    for task in _tasks_in(host.path("proc")):
        yield task
        if task.state == "Z":
            yield from (
                thread
                for thread in _tasks_in(os.path.join(task.place, "task"))
                if os.path.basename(thread.place) != os.path.basename(task.place)
            )


def _tasks_in(directory: str) -> Iterator[_Task]:
    try:
        names = [name for name in os.listdir(directory) if name.isascii() and name.isdigit()]
    except OSError:
        return
    for name in names:
        place = os.path.join(directory, name)
        head, _, rest = files.read_text(os.path.join(place, "stat")).rpartition(")")
        fields = rest.split()
        if len(fields) > _START_FIELD:
            yield _Task(place, head.partition("(")[2], fields[0], fields[_START_FIELD])


def _stuck_sleep(task: _Task) -> _Sleep | None:
    """The sleep that a task cannot be woken from, if it is in one."""
    if task.state != "D":
        return None
    pending = switches = 0
    is_systems = False
    for line in files.read_text(os.path.join(task.place, "status")).splitlines():
        key, _, value = line.partition(":")
        if key in ("ShdPnd", "SigPnd"):
            pending |= _number(value, 16) or 0
        elif key in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"):
            switches += _number(value) or 0
        elif key == "Uid":
            user_id = _number(value.split()[0]) if value.split() else None
            is_systems = user_id is not None and user_id <= _LAST_SYSTEM_USER
    is_stuck = bool(pending & _SIGKILL_BIT) or (is_systems and task.name in _DRIVER_TOOLS)
    return _Sleep(task, switches) if is_stuck else None


def _number(text: str, base: int = 10) -> int | None:
    try:
        return int(text.strip(), base)
    except ValueError:
        return None
