"""A scontrol of a node: a real program that answers from files and writes down what it is told."""

from __future__ import annotations

import json
from pathlib import Path

_PROGRAM = """#!/usr/bin/python3
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "calls"), "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
answer = json.load(open(os.path.join(here, "answers.json"))).get(sys.argv[1], {})
time.sleep(answer.get("sleeps", 0))
sys.stdout.write(answer.get("says", ""))
sys.exit(answer.get("status", 0))
"""


class NodesScontrol:
    """What slurmctld knows of the node, and what it was asked to change."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        program = directory / "scontrol"
        program.write_text(_PROGRAM, encoding="utf-8")
        program.chmod(0o755)
        self._answers: dict[str, dict[str, object]] = {}
        self.knows("IDLE+CLOUD")

    def knows(self, state: str, reason: str = "") -> None:
        """The node's state and reason as `scontrol show node` tells them."""
        told = f"NodeName=n1 Arch=x86_64\n   State={state} ThreadsPerCore=1\n"
        if reason:
            told += f"   Reason={reason} [root@2026-12-01T10:00:00]\n"
        self.answers("show", says=told)

    def answers(self, command: str, says: str = "", status: int = 0, sleeps: float = 0.0) -> None:
        """How one command of scontrol is answered from now on."""
        self._answers[command] = {"says": says, "status": status, "sleeps": sleeps}
        text = json.dumps(self._answers)
        (self.directory / "answers.json").write_text(text, encoding="utf-8")

    @property
    def calls(self) -> list[list[str]]:
        """Every call with its arguments, in order."""
        try:
            lines = (self.directory / "calls").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    @property
    def changes(self) -> list[list[str]]:
        """The calls that change something."""
        return [call for call in self.calls if call[0] != "show"]
