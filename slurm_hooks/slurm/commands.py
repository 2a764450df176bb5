"""Running Slurm's commands: environment, deadlines, and what their error texts mean.

Invariant: a command sees only the environment that is set here, so that times are UTC and words
are not translated, and every failure is a SlurmError that names the command and its answer.
Exit statuses are not enough: 22.05 exits 0 with errors on stderr. Source: `slurm_errno.c` of
Slurm 22.05 to 26.05 for the texts; 22.05.8 as measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from slurm_hooks.slurm.client import SlurmRefused, SlurmUnavailable
from slurm_hooks.slurm.process import CommandFailure, CommandResult, CommandRunner

_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
_SHOWN_CHARACTERS = 400
_ERROR_TEXT = re.compile(r"\b(?:error|fatal)\b", re.IGNORECASE)
_NO_CONTACT = re.compile(
    r"unable to (?:contact|establish)|standby mode|timed out|connection (?:failure|refused)"
    r"|shutdown failure|message (?:send|receive) failure|authentication|zero bytes|munge"
    r"|incompatible versions|temporarily (?:unavailable|unable)|transport endpoint|fatal",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"(?:slurm|scontrol)_\w+ error:|\binvalid\b|\bdenied\b|not permitted|not found|\bduplicate\b"
    r"|already completing",
    re.IGNORECASE,
)


class SlurmCommands:
    """Slurm's commands of one cluster, found in `bin_directory` or the system's PATH."""

    def __init__(
        self,
        slurm_conf: Path,
        bin_directory: str,
        runner: CommandRunner,
        read_timeout_seconds: float,
        write_timeout_seconds: float,
    ) -> None:
        self._bin_directory = bin_directory
        self._runner = runner
        self._read_timeout_seconds = read_timeout_seconds
        self._write_timeout_seconds = write_timeout_seconds
        self._environment = {
            "SLURM_CONF": str(slurm_conf),
            "PATH": f"{bin_directory}:{_SYSTEM_PATH}" if bin_directory else _SYSTEM_PATH,
            "LC_ALL": "C",
            "TZ": "UTC",
        }

    def read(self, program: str, *arguments: str) -> str:
        """The command's standard output. Raises SlurmUnavailable for any sign of an error."""
        result = self.run_read(program, *arguments)
        if result.exit_status != 0 or _ERROR_TEXT.search(result.stderr):
            raise SlurmUnavailable(_describe([program, *arguments], result))
        return result.stdout

    def run_read(self, program: str, *arguments: str) -> CommandResult:
        """The command's result, whatever it says. Raises SlurmUnavailable if there is none."""
        return self._run([program, *arguments], self._read_timeout_seconds)

    def write(self, program: str, *arguments: str) -> None:
        """Run a command that changes something. Raises SlurmRefused or SlurmUnavailable."""
        command = [program, *arguments]
        result = self._run(command, self._write_timeout_seconds)
        if result.exit_status == 0 and not _ERROR_TEXT.search(result.stderr):
            return
        answer = f"{result.stderr}\n{result.stdout}"
        if _REFUSAL.search(answer) and not _NO_CONTACT.search(answer):
            raise SlurmRefused(_describe(command, result))
        raise SlurmUnavailable(_describe(command, result))

    def _run(self, command: Sequence[str], timeout_seconds: float) -> CommandResult:
        program = f"{self._bin_directory}/{command[0]}" if self._bin_directory else command[0]
        try:
            return self._runner.run([program, *command[1:]], self._environment, timeout_seconds)
        except CommandFailure as failure:
            raise SlurmUnavailable(f"{_shown(command)}: {failure}") from failure


def _describe(command: Sequence[str], result: CommandResult) -> str:
    answer = result.stderr.strip() or result.stdout.strip() or "no output"
    return (
        f"{_shown(command)}: exit status {result.exit_status}:"
        f" {' '.join(answer[:_SHOWN_CHARACTERS].split())}"
    )


def _shown(command: Sequence[str]) -> str:
    return " ".join(command)[:_SHOWN_CHARACTERS]
