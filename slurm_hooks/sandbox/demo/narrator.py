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

    def say(self, text: str, mark: str = " ") -> None:
        """A sentence of the story, with the seconds since its beginning."""
        stamp = f"{time.monotonic() - self._start:6.1f} s"
        self._print(f"[dim]{stamp}[/dim] {mark} {escape(text)}")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Show what is being waited for: in motion on a terminal, else as a line before."""
        if not self._console.is_terminal:
            self.say(title)
            yield
            return
        with self._console.status(escape(title)):
            yield

    def ended(self, result: Result) -> None:
        """How a step ended, and what was seen."""
        if self._console.is_terminal:
            style = _STYLES[result.outcome]
            sign = "✓" if result.outcome is Outcome.HAPPENED else "✗"
            self.say(result.title, f"[{style}]{sign}[/{style}]")
        for line in result.detail.rstrip().splitlines():
            self._print(f"             [cyan]{escape(line)}[/cyan]")

    def _print(self, markup: str) -> None:
        self._console.print(markup, highlight=False, soft_wrap=True)

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
