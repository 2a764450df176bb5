"""Other programs, run with a deadline and never waited for beyond it.

`subprocess.run(timeout=...)` kills a late child and then waits for it without limit, which for a
child that hangs in the kernel is for ever. And a child that inherits slurmd's descriptors keeps a
prolog running until slurmd's own timeout.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_READ_BYTES = 64 * 1024
_MOST_OUTPUT_BYTES = 1024 * 1024
"""What DCGM tells of eight GPUs must be whole, or nobody can read it."""


class Ended(NamedTuple):
    """How a program ended. `status` is its exit status, minus the signal's number, or None when
    it had not ended at its deadline; `output` what it wrote, stdout and stderr together."""

    status: int | None
    output: str

    @property
    def is_good(self) -> bool:
        """Whether it ended by itself and with status 0."""
        return self.status == 0


def run_program(arguments: Sequence[str], seconds: float, environment: Mapping[str, str]) -> Ended:
    """Run a program in a session of its own, with empty input. Raises OSError if it cannot start.

    At the deadline it and all of its group are killed, and nobody waits for them.
    """
    deadline = time.monotonic() + seconds
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        child = os.posix_spawn(
            arguments[0],
            list(arguments),
            dict(environment),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, writer, 1),
                (os.POSIX_SPAWN_DUP2, writer, 2),
            ],
            setsid=True,
        )
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    try:
        return _listen(child, reader, deadline)
    finally:
        os.close(reader)


def _listen(child: int, reader: int, deadline: float) -> Ended:
    """Take in what the program writes until it has ended, whoever still holds its output."""
    output = b""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    poll.register(ended := os.pidfd_open(child), select.POLLIN)
    try:
        while (left := deadline - time.monotonic()) > 0:
            ready = dict(poll.poll(left * 1000))
            if reader in ready:
                data = os.read(reader, _READ_BYTES)
                output = (output + data)[-_MOST_OUTPUT_BYTES:]
                if not data:
                    poll.unregister(reader)
            elif ended in ready:
                _, status = os.waitpid(child, 0)
                return Ended(os.waitstatus_to_exitcode(status), _text(output))
    finally:
        os.close(ended)
    _kill_group(child)
    return Ended(None, _text(output))


def _kill_group(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:
        return


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace").strip()
