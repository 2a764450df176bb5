"""Slurm's answers for any number of nodes: recorded records of a real 22.05, multiplied.

It stands where the processes would be (CommandRunner), so all of our parsing is measured, and
Slurm's own time is not. It counts the commands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slurm_hooks.slurm.process import CommandResult

RECORDED = Path(__file__).resolve().parents[1] / "data" / "slurm" / "22.05"
STARTING = "ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP"
REGISTERED = "ALLOCATED+CLOUD"


@dataclass
class RecordedSlurm:
    """Nodes in jobs of one size, all starting or all running."""

    nodes: Sequence[str]
    nodes_a_job: int
    node_state: str = STARTING
    job_state: str = "CONFIGURING"
    commands: list[str] = field(default_factory=list)
    _answers: dict[str, str] = field(default_factory=dict)

    def run_jobs(self) -> None:
        """All nodes have registered and all jobs run."""
        self.node_state, self.job_state = REGISTERED, "RUNNING"
        self._answers.clear()

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], timeout_seconds: float
    ) -> CommandResult:
        """Answer one command, see CommandRunner."""
        text = " ".join(command)
        self.commands.append(text)
        if text not in self._answers:
            self._answers[text] = self._answer(text)
        return CommandResult(0, self._answers[text], "")

    def _answer(self, text: str) -> str:
        if "--version" in text:
            return (RECORDED / "version.txt").read_text()
        if text.startswith("squeue"):
            return self._jobs()
        if "show nodes" in text:
            return self._nodes()
        if "show partitions" in text:
            return (RECORDED / "partitions.txt").read_text()
        if "show reservations" in text:
            return "No reservations in the system\n"
        return ""

    def _nodes(self) -> str:
        record = (RECORDED / "nodes.txt").read_text().splitlines()[0]
        record = re.sub(r"\bState=\S+", f"State={self.node_state}", record)
        return "".join(
            re.sub(r"^NodeName=\S+", f"NodeName={name}", record) + "\n" for name in self.nodes
        )

    def _jobs(self) -> str:
        answer = json.loads((RECORDED / "jobs.json").read_text())
        recorded = answer["jobs"][0]
        answer["jobs"] = [
            {
                **recorded,
                "job_id": number + 1,
                "job_state": self.job_state,
                "nodes": ",".join(self.nodes[start : start + self.nodes_a_job]),
                "admin_comment": "",
            }
            for number, start in enumerate(range(0, len(self.nodes), self.nodes_a_job))
        ]
        return json.dumps(answer)
