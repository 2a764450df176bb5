"""RebootProgram: slurmd calls it on the node that is to reboot.

A task that hangs in the kernel, as after many a fault of a GPU, can hold up an orderly shutdown for
ever. So a process that is kept out of the shutdown's reach forces the node down a minute later.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence

from slurm_hooks.health.children import PATH, run_program
from slurm_hooks.health.drains import remember_reboot
from slurm_hooks.health.host import Host
from slurm_hooks.health.slurmd import UsageError, host_of
from slurm_hooks.programs import node_log, surroundings

NAME = "slurm-hooks-reboot"
USAGE = """usage: slurm-hooks-reboot [--root DIR] [--node NAME] [--patience SECONDS]

Slurm's RebootProgram: reboots this node, by force where it is not down a minute later.
Log: /var/log/slurm-hooks/health.log.
In slurm.conf: RebootProgram=/path/to/slurm-hooks-reboot
"""

_PATIENCE_SECONDS = 60.0
_LONGEST_PATIENCE_SECONDS = 600.0
_SYNC_SECONDS = 20.0
_SYSTEMCTL_SECONDS = 20.0
_FORCED_STEPS = "sub"
"""To the kernel's own keys: sync, mount read-only, boot."""
_STEP_SECONDS = 2.0


def main() -> int:
    """Entry point of `slurm-hooks-reboot`: exit status 0 when the node is told to go down."""
    surroundings.mend()
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(USAGE)
        return 0
    log_file = Host().log_file
    try:
        host, patience_seconds = _understood(arguments)
        log_file = host.log_file
        node_log.write(log_file, NAME, "WARNING", "reboot asked for", node=host.name)
        _watch(host, patience_seconds)
        remember_reboot(host)
        return _reboot(host)
    except UsageError as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        node_log.write(log_file, NAME, "ERROR", "called wrongly", why=error)
    except OSError as error:
        node_log.write(log_file, NAME, "ERROR", "reboot failed", why=error)
    return 1


def _understood(arguments: Sequence[str]) -> tuple[Host, float]:
    """The node, and how long its shutdown may take. Raises UsageError."""
    others, patience_seconds = list(arguments), _PATIENCE_SECONDS
    if "--patience" in others:
        place = others.index("--patience")
        text = "".join(others[place + 1 : place + 2])
        del others[place : place + 2]
        try:
            patience_seconds = float(text)
        except ValueError:
            patience_seconds = -1.0
        if not 0 <= patience_seconds <= _LONGEST_PATIENCE_SECONDS:
            raise UsageError(f"--patience {text}: write seconds up to 600")
    return host_of(others, os.environ), patience_seconds


def _reboot(host: Host) -> int:
    """Ask for an orderly shutdown, with what is written so far on disk whatever comes of it."""
    for path, words, seconds in (
        (host.path("usr", "bin", "sync"), (), _SYNC_SECONDS),
        (host.path("usr", "bin", "systemctl"), ("reboot",), _SYSTEMCTL_SECONDS),
    ):
        name = os.path.basename(path)
        try:
            ended = run_program((path, *words), seconds, {"PATH": PATH})
        except OSError as error:
            node_log.write(host.log_file, NAME, "ERROR", "not run", command=name, why=error)
            continue
        if not ended.is_good:
            why = ended.output or f"exit status {ended.status}"
            node_log.write(host.log_file, NAME, "ERROR", "failed", command=name, why=why)
    return 0


def _watch(host: Host, patience_seconds: float) -> None:
    """Leave a process behind that forces the node down if it is still up then."""
    if os.fork():
        return
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        _leave_the_service(host)
        time.sleep(patience_seconds)
        _force(host, min(_STEP_SECONDS, patience_seconds))
    finally:
        os._exit(0)


def _leave_the_service(host: Host) -> None:
    """Leave slurmd's control group, whose processes end with slurmd."""
    try:
        _append(host.path("sys", "fs", "cgroup", "cgroup.procs"), str(os.getpid()))
    except OSError:
        return


def _force(host: Host, step_seconds: float) -> None:
    node_log.write(host.log_file, NAME, "ERROR", "still up, reboot is forced", node=host.name)
    for step in _FORCED_STEPS:
        _append(host.path("proc", "sysrq-trigger"), step)
        time.sleep(step_seconds)


def _append(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
