"""Running one command with a deadline: the only place of this package that starts a process.

Invariant: `run` returns or raises within the deadline plus a moment, whatever the command does;
at the deadline the command's whole process group is killed. Output beyond a limit is an error,
never a shorter answer, since half a list of nodes reads as "the others are gone". For the same
reason output goes to memory, not to a disk that may be full: Slurm's commands ignore that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

MAX_OUTPUT_BYTES = 512 * 1024 * 1024


class CommandFailure(Exception):
    """The command could not be started, passed its deadline or wrote too much."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a finished command left. A signal's death has a negative exit status."""

    exit_status: int
    stdout: str
    stderr: str


class CommandRunner(Protocol):
    """Runs a command to its end."""

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], timeout_seconds: float
    ) -> CommandResult:
        """Run the command with exactly this environment. Raises CommandFailure."""


class SubprocessRunner:
    """Runs commands as child processes in a session of their own, without a shell."""

    def __init__(self, max_output_bytes: int = MAX_OUTPUT_BYTES) -> None:
        self._max_output_bytes = max_output_bytes

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], timeout_seconds: float
    ) -> CommandResult:
        """Run the command; its group is killed at the deadline. Raises CommandFailure."""
        with _memory_file("stdout") as stdout, _memory_file("stderr") as stderr:
            exit_status = _run_to_files(command, environment, timeout_seconds, stdout, stderr)
            return CommandResult(
                exit_status,
                self._text_of(stdout, command[0]),
                self._text_of(stderr, command[0]),
            )

    def _text_of(self, output: IO[bytes], program: str) -> str:
        output.seek(0)
        content = output.read(self._max_output_bytes + 1)
        if len(content) > self._max_output_bytes:
            raise CommandFailure(f"{program} wrote more than {self._max_output_bytes} bytes")
        return content.decode("utf-8", "replace")


def _memory_file(name: str) -> IO[bytes]:
    return os.fdopen(os.memfd_create(name), "w+b")


def _run_to_files(
    command: Sequence[str],
    environment: Mapping[str, str],
    timeout_seconds: float,
    stdout: IO[bytes],
    stderr: IO[bytes],
) -> int:
    """Files rather than pipes: a grandchild that keeps a pipe open cannot hold us."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with _stops_held_back():
            process = subprocess.Popen(
                list(command),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        return process.wait(timeout_seconds)
    except subprocess.TimeoutExpired as error:
        raise CommandFailure(f"no answer within {timeout_seconds:g} s") from error
    except (OSError, ValueError) as error:
        raise CommandFailure(f"cannot start {command[0]}: {error}") from error
    finally:
        if process is not None:
            _end_group(process)


@contextlib.contextmanager
def _stops_held_back() -> Iterator[None]:
    """A stop that came between the fork and our knowing the child would leave the child behind.

    The child keeps these signals blocked; it is only ever ended by SIGKILL.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
