"""Telling the story: live on a terminal, plain lines elsewhere, the same words in both."""

from __future__ import annotations

import enum
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table


class Outcome(enum.StrEnum):
    """Whether a step was observed."""

    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did not happen"
    NOT_REACHED = "not reached"


@dataclass(frozen=True, slots=True)
class Result:
    """One step of the story: what was seen, and after how many seconds."""

    title: str
    outcome: Outcome
    seconds: float = 0.0
    detail: str = ""


_STYLES = {
    Outcome.HAPPENED: "green",
    Outcome.DID_NOT_HAPPEN: "bold red",
    Outcome.NOT_REACHED: "yellow",
}


class Narrator:
    """Prints the story. Text from outside is never read as markup."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """A sentence of the story, with the seconds since its beginning."""
        stamp = f"{time.monotonic() - self._start:6.1f} s"
        self._console.print(f"[dim]{stamp}[/dim]  {escape(text)}", highlight=False, soft_wrap=True)

    def quote(self, text: str) -> None:
        """What a program printed, indented."""
        for line in text.rstrip().splitlines():
            self._console.print(
                f"            [cyan]{escape(line)}[/cyan]", highlight=False, soft_wrap=True
            )

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show that something is being waited for."""
        if not self._console.is_terminal:
            yield
            return
        with self._console.status(escape(text)):
            yield

    def table(self, results: Sequence[Result]) -> None:
        """All steps with their times."""
        table = Table("", "step", "seconds", "outcome", title="What happened")
        table.columns[2].justify = "right"
        for number, result in enumerate(results, 1):
            seconds = "" if result.outcome is Outcome.NOT_REACHED else f"{result.seconds:.1f}"
            style = _STYLES[result.outcome]
            table.add_row(
                str(number), escape(result.title), seconds, f"[{style}]{result.outcome}[/{style}]"
            )
        self._console.print()
        self._console.print(table)
