"""The pool's startup script: run at each boot, its output on the console, within a time.

Processes that it leaves in the background live on. One that is not done in time ends with all of
its process group, and so does the boot.
"""

from __future__ import annotations

import os
import pwd
import select
import signal
import time
from typing import TYPE_CHECKING

from slurm_hooks.boot.console import Console
from slurm_hooks.boot.machine import BootError, Machine
from slurm_hooks.health.children import PATH

if TYPE_CHECKING:
    import subprocess

DEFAULT_SECONDS = 900
PREFIX = b"startup-script: "
"""Begins each line of its output, which so cannot pass for one of ours."""

_MOST_OUTPUT_BYTES = 256 * 1024
"""Compute Engine keeps the newest MiB of a console; our own lines must stay in it."""
_READ_BYTES = 16 * 1024
_LONGEST_LINE_BYTES = 1024


def run_startup_script(machine: Machine, console: Console, script: str, seconds: int) -> str:
    """Run a script to its end; returns what to tell. Raises BootError and OSError."""
    path = _write(machine, script)
    began = time.monotonic()
    status = _run(_command(path, script), machine.root, _Output(console), began + seconds)
    if status is None:
        raise BootError(f"not done after {seconds} s")
    if status != 0:
        how = f"status {status}" if status > 0 else f"signal {-status}"
        raise BootError(f"ended with {how} after {time.monotonic() - began:.0f} s")
    return f"after {time.monotonic() - began:.0f} s"


def _write(machine: Machine, script: str) -> str:
    directory = machine.path("var", "lib", "slurm-hooks", "boot")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = os.path.join(directory, "startup-script")
    temporary = f"{path}.new"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
        os.fchmod(file.fileno(), 0o700)
        file.write(script)
    os.replace(temporary, path)
    return path


def _command(path: str, script: str) -> tuple[str, ...]:
    return (path,) if script.startswith("#!") else ("/bin/bash", path)


def _run(command: tuple[str, ...], directory: str, output: _Output, deadline: float) -> int | None:
    """The exit status, minus the signal's number, or None at the deadline. Raises OSError."""
    import subprocess  # most boots have no script

    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            cwd=directory,
            env={
                "PATH": f"/usr/local/sbin:/usr/local/bin:{PATH}",
                "HOME": _home(),
            },
            start_new_session=True,
        )
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    os.set_blocking(reader, False)
    ended = os.pidfd_open(child.pid)
    try:
        return _follow(child, reader, ended, output, deadline)
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    finally:
        os.close(ended)
        os.close(reader)


def _home() -> str:
    """The home of whom we run as; `/` for a user whom nobody has entered."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"


def _follow(
    child: subprocess.Popen[bytes], reader: int, ended: int, output: _Output, deadline: float
) -> int | None:
    """Pass the output on until the child has ended, whoever of its children still holds it."""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    poll.register(ended, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        ready = dict(poll.poll(left * 1000))
        is_over = ended in ready
        if reader in ready and not output.take(_available(reader)):
            poll.unregister(reader)
        if is_over:
            while output.take(_available(reader)):
                pass
            output.end()
            return child.wait()
    os.killpg(child.pid, signal.SIGKILL)
    output.end()
    return None


def _available(reader: int) -> bytes:
    try:
        return os.read(reader, _READ_BYTES)
    except BlockingIOError:
        return b""


class _Output:
    """The script's output as whole lines on the console, up to a limit."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._line = b""
        self._left_bytes = _MOST_OUTPUT_BYTES

    def take(self, data: bytes) -> bool:
        """Add what was read; whether that was anything."""
        *whole, self._line = (self._line + data).replace(b"\r", b"\n").split(b"\n")
        self._say([line for line in whole if line])
        if len(self._line) > _LONGEST_LINE_BYTES:
            self.end()
        return bool(data)

    def end(self) -> None:
        """What was begun is a line, too."""
        self._say([self._line] if self._line else [])
        self._line = b""

    def _say(self, lines: list[bytes]) -> None:
        text = b"".join(PREFIX + line[:_LONGEST_LINE_BYTES] + b"\n" for line in lines)
        if not text or self._left_bytes <= 0:
            return
        self._left_bytes -= len(text)
        if self._left_bytes <= 0:
            text = PREFIX + b"(more output is not shown)\n"
        self._console.write(text)
