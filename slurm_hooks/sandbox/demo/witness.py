"""What the demo has seen with its own eyes: Slurm's commands and the emulated project's API.

It never asks our daemon, so the story it tells cannot be made up by the thing it is about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.box.layout import BoxError
from slurm_hooks.sandbox.box.project import EmulatedProject
from slurm_hooks.sandbox.box.status import read_nodes

_SHOWN_LINES = re.compile(r"^ *((?:JobState|AdminComment|NodeList)=.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as `scontrol show job` prints it: `text` is all of it."""

    state: str
    admin_comment: str
    text: str

    @property
    def shown(self) -> str:
        """The lines that matter here, as printed."""
        return "\n".join(_SHOWN_LINES.findall(self.text))


class Witness:
    """Questions to Slurm and to the emulator. All raise BoxError when they do not answer."""

    def __init__(self, box: Box, nodes: tuple[str, ...]) -> None:
        self.box = box
        self.nodes = nodes
        self.project = EmulatedProject(box.emulator_url, box.state.project)

    def submit(self, script: str, *options: str) -> int:
        """Submit a batch script with these options of sbatch; the job's id."""
        path = self.box.layout.jobs / "job.sh"
        path.write_text(script, encoding="utf-8")
        answer = self._slurm("sbatch", "--parsable", *options, str(path))
        return int(answer.strip().partition(";")[0])

    def job(self, job_id: int) -> JobView:
        """Look at a job."""
        text = self._slurm("scontrol", "show", "job", str(job_id))
        return JobView(
            state=_field(text, r"\bJobState=(\S+)"),
            admin_comment=_field(text, r"^ *AdminComment=(.*)$"),
            text=text,
        )

    def job_output(self, job_id: int) -> str:
        """What the job has written so far."""
        path = self.box.layout.jobs / f"slurm-{job_id}.out"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def node_states(self) -> dict[str, str]:
        """The states of the story's nodes, as sinfo abbreviates them."""
        states = read_nodes(self.box)
        return {node: states.get(node, "missing") for node in self.nodes}

    def all_nodes_are(self, *states: str) -> str | None:
        """The nodes' states if every one of them is among `states`, else None."""
        found = self.node_states()
        if all(state in states for state in found.values()):
            return ", ".join(f"{node} {state}" for node, state in found.items())
        return None

    def _slurm(self, *arguments: str) -> str:
        answer = self.box.run(arguments)
        if answer.returncode != 0:
            raise BoxError(f"{' '.join(arguments)}: {answer.stderr.strip()}")
        return answer.stdout


def _field(text: str, pattern: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1).strip() if match else ""
