"""Which Slurm runs here, and the one table of what differs between versions for the client.

Invariant: code asks for a rule by name, never for a version number. A version newer than all we
know follows the newest rules; one older than 22.05 follows those of 22.05. Sources: Slurm's
release notes for the data_parser plugins that each version ships, and 22.05.8 and 24.11.5 as
measured.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass

from slurm_hooks.slurm.process import CommandFailure, CommandRunner, SubprocessRunner

VERSION_DEADLINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, order=True)
class SlurmVersion:
    """A version such as 22.05.8; `patch` is 0 when it was not given."""

    year: int
    month: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> SlurmVersion:
        """Read `slurm-wlm 22.05.8`, `slurm 24.11.5`, `25.11.6-pre1`. Raises ValueError."""
        found = re.search(r"\b(\d{2})\.(\d{2})(?:\.(\d+))?", text)
        if not found:
            raise ValueError(f"no Slurm version in {text[:80]!r}")
        year, month, patch = found.groups()
        return cls(int(year), int(month), int(patch or 0))

    def __str__(self) -> str:
        return f"{self.year:02}.{self.month:02}.{self.patch}"


@dataclass(frozen=True, slots=True)
class ClientRules:
    """How to ask this version for JSON, empty where it has none, and what it does otherwise."""

    scontrol_json_flag: str
    jobs_json_command: tuple[str, ...] = ()
    """For a version whose scontrol has no JSON: the command that has it for jobs."""
    keeps_lone_reason: bool = False
    """Whether a node in service keeps a reason that comes without a state. Where it does not, the
    one that it had is lost, too. Measured: 24.11.5 keeps it, 22.05.8 and 26.05.5 drop it; of the
    others it is not known, and so not relied on."""
    restarts_for_nodes: bool = True
    """Whether slurmctld must be restarted for nodes, and for what it loads at its start. From
    23.11 on `scontrol reconfigure` starts it anew by itself."""


_RULES_SINCE: tuple[tuple[SlurmVersion, ClientRules], ...] = (
    (
        SlurmVersion(22, 5),
        ClientRules(scontrol_json_flag="", jobs_json_command=("squeue", "--json")),
    ),
    (SlurmVersion(23, 2), ClientRules(scontrol_json_flag="--json")),
    (
        SlurmVersion(23, 11),
        ClientRules(scontrol_json_flag="--json=v0.0.40", restarts_for_nodes=False),
    ),
    (
        SlurmVersion(24, 11),
        ClientRules(
            scontrol_json_flag="--json=v0.0.42",
            keeps_lone_reason=True,
            restarts_for_nodes=False,
        ),
    ),
    (
        SlurmVersion(25, 5),
        ClientRules(scontrol_json_flag="--json=v0.0.42", restarts_for_nodes=False),
    ),
    (
        SlurmVersion(26, 11),
        ClientRules(scontrol_json_flag="--json=v0.0.45", restarts_for_nodes=False),
    ),
)
"""v0.0.42 is common to 24.11 up to 26.05; v0.0.45 is the newest known, which later ones keep
longest. 23.02 takes no parser's name."""


def rules_for(version: SlurmVersion) -> ClientRules:
    """The newest rules that are not newer than the version."""
    rules = _RULES_SINCE[0][1]
    for since, candidate in _RULES_SINCE:
        if version >= since:
            rules = candidate
    return rules


def installed_version_text(runner: CommandRunner | None = None) -> str:
    """What the slurmctld of this machine says of its version, which it tells without a slurm.conf.

    Raises CommandFailure when there is none.
    """
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    slurmctld = shutil.which("slurmctld", path=path) or "slurmctld"
    answer = (runner or SubprocessRunner()).run(
        [slurmctld, "-V"], {"PATH": path, "LC_ALL": "C"}, VERSION_DEADLINE_SECONDS
    )
    if answer.exit_status != 0:
        raise CommandFailure(f"{slurmctld} -V: exit status {answer.exit_status}")
    return answer.stdout
