"""A CommandRunner that answers from a list and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slurm_hooks.slurm.process import CommandFailure, CommandResult


@dataclass(frozen=True)
class RanCommand:
    """A command as it was run."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    timeout_seconds: float


@dataclass
class CannedRunner:
    """Answers the command that begins with the longest matching key; others fail to start.

    Keys are the beginnings of commands, words joined by blanks. Values are results, or the text
    of a CommandFailure.
    """

    answers: dict[str, CommandResult | str]
    ran: list[RanCommand] = field(default_factory=list)

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], timeout_seconds: float
    ) -> CommandResult:
        """The canned answer. Raises CommandFailure if that is a text or there is none."""
        self.ran.append(RanCommand(tuple(command), dict(environment), timeout_seconds))
        text = " ".join(command)
        keys = [key for key in self.answers if text.startswith(key)]
        if not keys:
            raise CommandFailure(f"no canned answer for {text[:200]}")
        answer = self.answers[max(keys, key=len)]
        if isinstance(answer, str):
            raise CommandFailure(answer)
        return answer
