"""The supervisor of a box: parent of its daemons, so that none can outlive it.

Invariant: every process of a box descends from this one. It is a subreaper, so orphans stay below
it; the kernel ends the daemons when it dies; it ends all of them when the command that made the
box dies before letting go of it. It decides nothing: it starts, stops and tells, over a Unix
socket with one line of words a request.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from slurm_hooks.sandbox.box import processes
from slurm_hooks.sandbox.box.daemons import box_environment, daemon_command
from slurm_hooks.sandbox.box.layout import BoxError, Layout, remove_directory
from slurm_hooks.sandbox.box.state import (
    BoxState,
    DaemonName,
    DaemonState,
    read_state,
    write_state,
)

_LOG = logging.getLogger("supervisor")

_STOP_SECONDS = {
    DaemonName.HOOKSD: 5.0,
    DaemonName.EMULATOR: 10.0,
    DaemonName.SLURMCTLD: 8.0,
    DaemonName.MUNGED: 3.0,
}
"""How long a daemon may take to end, in the order in which they are stopped: slurm-hooksd first,
so that it does not take the end of the VMs for one of their deaths, then the VMs."""

_REQUEST_SECONDS = 5.0


class Supervisor:
    """The daemons of one box. `run` returns when the box is down."""

    def __init__(self, state: BoxState) -> None:
        self._state = state
        self._layout = Layout(state.directory)
        self._names: dict[int, DaemonName] = {}
        self._keep_logs = False
        self._stopping = False

    def run(self, owner_pid: int) -> None:
        """Serve until told to stop, by request or signal, or until the owner has died."""
        wakeup_read, wakeup_write = socket.socketpair()
        wakeup_write.setblocking(False)
        signal.set_wakeup_fd(wakeup_write.fileno())
        owner = self._open_owner(owner_pid)
        listener = self._listen()
        selector = selectors.DefaultSelector()
        for source in (wakeup_read, listener, owner):
            selector.register(source, selectors.EVENT_READ)
        self._update(supervisor=processes.identify_self())
        try:
            while not self._stopping:
                ready = {key.fileobj for key, _ in selector.select()}
                if wakeup_read in ready:
                    wakeup_read.recv(4096)
                    self._reap()
                if listener in ready:
                    self._serve(listener, selector, owner)
                if owner in ready:
                    _LOG.warning("the command that made the box is gone")
                    self._stopping = True
        finally:
            listener.close()
            self._take_down()

    def stop(self, *_: object) -> None:
        """Signal handler: end the loop, and with it the box."""
        self._stopping = True

    def _open_owner(self, pid: int) -> int:
        """A descriptor that becomes readable at the owner's end; stop if it has ended already."""
        if os.getppid() != pid:
            self._stopping = True
            return os.pidfd_open(os.getpid())
        return os.pidfd_open(pid)

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._layout.supervisor_socket))
        listener.listen()
        return listener

    def _serve(self, listener: socket.socket, selector: selectors.BaseSelector, owner: int) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(_REQUEST_SECONDS)
            try:
                words = connection.recv(256).decode().split()
                if not words:
                    return  # only asked whether we are there
                answer = self._answer(words)
                if words == ["release"] and owner in selector.get_map():
                    selector.unregister(owner)
                connection.sendall(answer.encode())
            except (OSError, UnicodeDecodeError) as error:
                _LOG.warning("request failed: %s", error)

    def _answer(self, words: list[str]) -> str:
        match words:
            case ["start", name] if name in DaemonName.__members__.values():
                return self._start(DaemonName(name))
            case ["release"]:
                return "ok"
            case ["down"] | ["down", "keep-logs"]:
                self._keep_logs = len(words) > 1
                self._stopping = True
                return "ok"
        return f"unknown request: {' '.join(words)}"

    def _start(self, name: DaemonName) -> str:
        self._reap()
        if name in self._names.values():
            return f"{name} runs already"
        try:
            command = daemon_command(self._state, name)
            with command.output.open("ab") as output:
                process = processes.start(
                    command.arguments,
                    output=output,
                    directory=self._layout.logs,
                    environment=box_environment(self._layout, self._state.python, os.environ),
                    death_signal=_death_signal(name),
                )
        except (OSError, BoxError, subprocess.SubprocessError) as error:
            return f"{name} did not start: {error}"
        _LOG.info("%s started, pid %d", name, process.pid)
        self._names[process.pid] = name
        self._update_daemon(name, DaemonState(process=process))
        return "ok"

    def _reap(self) -> None:
        for pid, status in processes.reap_children():
            name = self._names.pop(pid, None)
            if name is not None:
                exit_status = os.waitstatus_to_exitcode(status)
                _LOG.info("%s ended with status %d", name, exit_status)
                self._update_daemon(name, DaemonState(exit_status=exit_status))

    def _update_daemon(self, name: DaemonName, daemon: DaemonState) -> None:
        self._update(daemons={**self._state.daemons, name: daemon})

    def _update(self, **changes: object) -> None:
        self._state = self._state.model_copy(update=changes)
        write_state(self._state)

    def _take_down(self) -> None:
        for name, seconds in _STOP_SECONDS.items():
            self._stop_daemon(name, seconds)
        left = processes.kill_descendants(deadline_seconds=10)
        if left:
            _LOG.error("could not end the processes %s", left)
        _LOG.info("the box is down")
        if self._keep_logs:
            self._update(supervisor=None)
        remove_directory(self._layout, keep_logs=self._keep_logs)

    def _stop_daemon(self, name: DaemonName, seconds: float) -> None:
        pid = next((pid for pid, running in self._names.items() if running == name), None)
        if pid is None:
            return
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal_number)
            end = time.monotonic() + seconds
            while pid in self._names and time.monotonic() < end:
                time.sleep(0.02)
                self._reap()


def _death_signal(name: DaemonName) -> signal.Signals:
    # The emulator ends its VMs; the others have nothing to tidy that outlives the directory.
    return signal.SIGTERM if name is DaemonName.EMULATOR else signal.SIGKILL


def main() -> int:
    """Supervise the box in --dir until it is down."""
    parser = argparse.ArgumentParser(prog="slurm_hooks.sandbox.box.supervisor")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--owner", type=int, required=True)
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    state = read_state(Layout(arguments.dir))
    if state is None:
        parser.error(f"no box in {arguments.dir}")
    processes.become_subreaper()
    supervisor = Supervisor(state)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, supervisor.stop)
    # A handler of any kind makes the wakeup descriptor readable when a child ends.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    supervisor.run(arguments.owner)
    return 0


if __name__ == "__main__":
    sys.exit(main())
