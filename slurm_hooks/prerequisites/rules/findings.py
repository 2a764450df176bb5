"""How rules say what they found, each in one line."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_hooks.prerequisites.commands import Command
from slurm_hooks.prerequisites.facts import Unread
from slurm_hooks.prerequisites.holding import Hold, Holding
from slurm_hooks.prerequisites.model import Finding, Outcome


@dataclass(frozen=True, slots=True)
class Subject:
    """What a finding is about: `check` is the kind of thing, `name` the thing."""

    check: str
    name: str

    def passes(self, detail: str = "") -> Finding:
        """It is right."""
        return Finding(self.check, self.name, Outcome.PASS, detail)

    def warns(self, detail: str, fix: Command = ()) -> Finding:
        """It works, but not as far as the cluster file goes."""
        return Finding(self.check, self.name, Outcome.WARN, detail, fix)

    def fails(self, detail: str, fix: Command = ()) -> Finding:
        """It is wrong."""
        return Finding(self.check, self.name, Outcome.FAIL, detail, fix)

    def unknown(self, detail: str, fix: Command = ()) -> Finding:
        """It cannot be told."""
        return Finding(self.check, self.name, Outcome.UNKNOWN, f"could not confirm: {detail}", fix)

    def unread(self, reason: Unread, look: Command = ()) -> Finding:
        """It could not be read; `look` grants what lets the caller read it."""
        return self.unknown(reason.why, look if reason.denied else ())

    def held(self, found: Holding, missing: str, fix: Command) -> Finding:
        """Whether a role is held. Granting it is what helps in doubt, too."""
        if found.hold is Hold.YES:
            return self.passes(found.detail)
        if found.hold is Hold.NO:
            return self.fails(missing, fix)
        return self.unknown(found.detail, fix)
