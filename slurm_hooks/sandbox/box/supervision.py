"""Talking to a box's supervisor, starting it, and taking a box down with or without it.

Nothing is signalled by pid alone: only processes whose start time is the recorded one.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from slurm_hooks.sandbox.box.daemons import box_environment
from slurm_hooks.sandbox.box.layout import BoxError, Layout, remove_directory
from slurm_hooks.sandbox.box.processes import ProcessIdentity
from slurm_hooks.sandbox.box.state import BoxState, DaemonName
from slurm_hooks.sandbox.box.waiting import wait_until

_SUPERVISOR = "slurm_hooks.sandbox.box.supervisor"
_REQUEST_SECONDS = 10.0
_SUPERVISOR_START_SECONDS = 20.0
_DOWN_SECONDS = 60.0
_KILL_SECONDS = 5.0


def start_supervisor(state: BoxState) -> None:
    """Start the supervisor; the box lives as long as this process until `release`."""
    layout = Layout(state.directory)
    owner = str(os.getpid())
    with layout.log("supervisor").open("ab") as output:
        process = subprocess.Popen(
            [state.python, "-m", _SUPERVISOR, "--dir", str(state.directory), "--owner", owner],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=layout.directory,
            env=box_environment(layout, state.python, os.environ),
            start_new_session=True,
        )

    def answers() -> bool:
        if process.poll() is not None:
            raise BoxError(f"the supervisor ended at once: see {layout.log('supervisor')}")
        return is_answering(layout.supervisor_socket)

    wait_until("the supervisor answers", answers, _SUPERVISOR_START_SECONDS)


def is_answering(path: Path) -> bool:
    """Whether something accepts connections on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_REQUEST_SECONDS)
        try:
            connection.connect(str(path))
        except OSError:
            return False
        return True


def request_start(layout: Layout, daemon: DaemonName) -> None:
    """Have the supervisor start a daemon. Raises BoxError when it runs already or cannot."""
    _request(layout, f"start {daemon}")


def request_release(layout: Layout) -> None:
    """Let the box outlive the process that made it. Raises BoxError."""
    _request(layout, "release")


def take_down(layout: Layout, state: BoxState, *, keep_logs: bool) -> None:
    """End everything of the box, then remove its directory; with `keep_logs` all but the logs.

    Raises BoxError when a process of the box survives even SIGKILL.
    """
    supervisor = state.supervisor
    if supervisor is not None and supervisor.is_alive():
        _ask_down(layout, supervisor, keep_logs=keep_logs)
        if supervisor.wait_until_gone(_DOWN_SECONDS):
            _remove(layout, keep_logs=keep_logs)
            return
        supervisor.send_signal(signal.SIGKILL)
    _end_recorded(layout, state)
    _remove(layout, keep_logs=keep_logs)


def _ask_down(layout: Layout, supervisor: ProcessIdentity, *, keep_logs: bool) -> None:
    try:
        _request(layout, "down keep-logs" if keep_logs else "down")
    except BoxError:
        supervisor.send_signal(signal.SIGTERM)


def _end_recorded(layout: Layout, state: BoxState) -> None:
    """Without a supervisor: the guests, then the daemons, as far as they still run."""
    recorded = [*_guests(layout), *(daemon.process for daemon in state.daemons.values())]
    left = [process for process in recorded if process is not None and process.is_alive()]
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            process.send_signal(signal_number)
        left = [process for process in left if not process.wait_until_gone(_KILL_SECONDS)]
    if left:
        raise BoxError(f"processes {[process.pid for process in left]} cannot be ended")


def _guests(layout: Layout) -> list[ProcessIdentity]:
    adapter = TypeAdapter(ProcessIdentity)
    found = []
    for path in layout.guests.glob("*.json"):
        try:
            found.append(adapter.validate_json(path.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValidationError):
            continue  # the VM has just gone, or was written half: its guest dies by itself
    return found


def _remove(layout: Layout, *, keep_logs: bool) -> None:
    if layout.directory.exists():
        remove_directory(layout, keep_logs=keep_logs)


def _request(layout: Layout, text: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_REQUEST_SECONDS)
        try:
            connection.connect(str(layout.supervisor_socket))
            connection.sendall(text.encode())
            answer = connection.recv(4096).decode()
        except OSError as error:
            raise BoxError(f"the supervisor does not answer: {error}") from None
    if answer != "ok":
        raise BoxError(answer or "the supervisor ended")
