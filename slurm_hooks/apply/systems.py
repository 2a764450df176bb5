"""What an apply asks of the world: Slurm, Compute Engine, and whoever can restart slurmctld."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from slurm_hooks.apply.impact import ours_of
from slurm_hooks.apply.place import Place
from slurm_hooks.apply.taking import Running
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.slurm.client import SlurmClient, SlurmUnavailable
from slurm_hooks.slurm.controllers import Charge, Controller, charge_of_this_host
from slurm_hooks.slurm.model import SlurmSnapshot
from slurm_hooks.slurm.process import CommandFailure, SubprocessRunner
from slurm_hooks.slurm.scontrol import ScontrolClient
from slurm_hooks.slurm.versions import SlurmVersion, rules_for

RESTART_SECONDS = 180.0
_INCLUDE = re.compile(r"^\s*include\s+(\S+)", re.IGNORECASE | re.MULTILINE)
_SHOWN_CHARACTERS = 400


class RestartFailed(Exception):
    """The command that restarts slurmctld cannot be run or failed; the text says how."""


class Slurm(SlurmClient, Protocol):
    """A SlurmClient that can also tell and renew the configuration."""

    def responding_controller(self) -> Controller | None:
        """The first slurmctld that answers a ping. Raises SlurmUnavailable."""

    def parameters(self) -> dict[str, str]:
        """The parameters that slurmctld runs with. Raises SlurmUnavailable."""

    def reconfigure(self) -> None:
        """Have slurmctld read its configuration. Raises SlurmError."""


@dataclass(frozen=True, slots=True)
class Systems:
    """The outside of one apply. `restart` raises RestartFailed."""

    slurm_conf: Path
    slurm: Slurm
    compute: ComputeClient
    restarts_for_nodes: bool
    restart: Callable[[], None]


def connect(place: Place, project: str, slurm_version: str) -> Systems:
    """The systems of a place. Raises ValueError for settings that cannot be used."""
    values = place.values
    return Systems(
        slurm_conf=place.slurm_conf,
        slurm=ScontrolClient(place.slurm_conf, values["SlurmBinDir"]),
        compute=GoogleComputeClient(
            values["Project"] or project, values["ApiEndpoint"], values["ApiCredentials"]
        ),
        restarts_for_nodes=rules_for(SlurmVersion.parse(slurm_version)).restarts_for_nodes,
        restart=lambda: restart_slurmctld(values["RestartSlurmctld"]),
    )


def restart_slurmctld(command: str) -> None:
    """Run the command of the settings. Raises RestartFailed."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise RestartFailed(f"RestartSlurmctld={command}: {error}") from None
    if not words:
        raise RestartFailed("RestartSlurmctld is empty: set it, or restart slurmctld yourself")
    try:
        answer = SubprocessRunner().run(words, os.environ, RESTART_SECONDS)
    except CommandFailure as failure:
        raise RestartFailed(f"{command}: {failure}") from None
    if answer.exit_status != 0:
        said = " ".join((answer.stderr or answer.stdout).split())[:_SHOWN_CHARACTERS]
        raise RestartFailed(f"{command}: exit status {answer.exit_status}: {said}")


def read_slurm(systems: Systems) -> SlurmSnapshot | None:
    """All that Slurm has; None when slurmctld does not answer."""
    if not _answers(systems):
        return None
    try:
        return systems.slurm.read()
    except SlurmUnavailable:
        return None


def read_running(systems: Systems, cluster: Cluster) -> Running | None:
    """What slurmctld runs with; None when it does not answer."""
    snapshot = read_slurm(systems)
    if snapshot is None:
        return None
    try:
        parameters = systems.slurm.parameters()
    except SlurmUnavailable:
        return None
    return Running(ours_of(snapshot.nodes, cluster.cluster_id), parameters)


def is_elsewhere(systems: Systems) -> bool:
    """Whether the slurmctld that is in charge runs on another host, whose files count."""
    if not _answers(systems):
        return False
    ping = systems.slurm.responding_controller
    return charge_of_this_host(systems.slurm_conf, ping) is Charge.ELSEWHERE


def _answers(systems: Systems) -> bool:
    """Asked first, and soon: other commands wait long for a slurmctld that does not run.

    Without a file that slurm.conf includes, as before the first apply, any command waits for it.
    """
    try:
        text = systems.slurm_conf.read_text(encoding="utf-8", errors="replace")
        included = [systems.slurm_conf.parent / path for path in _INCLUDE.findall(text)]
        if not all(path.exists() for path in included):
            return False
        return systems.slurm.responding_controller() is not None
    except (OSError, SlurmUnavailable):
        return False


def missing_includes(slurm_conf: Path, wanted: Sequence[str]) -> tuple[str, ...]:
    """The Include lines that slurm.conf lacks; all of them when it cannot be read."""
    try:
        text = slurm_conf.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    there = {Path(path).name for path in _INCLUDE.findall(text)}
    return tuple(line for line in wanted if Path(line.split()[1]).name not in there)
