"""How the cluster stands, as the last step of an apply asks it."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_hooks.status.model import ClusterState
from slurm_hooks.status.read import read_status


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """Whether the cluster runs, and what holds it up."""

    is_running: bool
    lines: tuple[str, ...]


def standing_of(settings_file: str) -> ClusterStanding:
    """Read it once. Raises SettingsError or ClusterFileError."""
    status = read_status(settings_file)
    lines = status.held_up_by or ((status.detail,) if status.detail else ())
    return ClusterStanding(
        status.state is ClusterState.RUNNING, (f"the cluster is {status.state}", *lines)
    )
