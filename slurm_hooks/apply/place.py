"""Where a cluster is applied: settings, paths, and what the steps leave there for the next run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from slurm_hooks import settings
from slurm_hooks.apply.rendered_files import replace_file
from slurm_hooks.reconcile.assembly import find_settings, prepare_spool, slurm_conf_of

TAKEN_FILE = "taken_configuration"
"""In the spool: the digest of what slurmctld took last. Without it, it is told once more."""


@dataclass(frozen=True, slots=True)
class Place:
    """The settings of a controller and where its files are. `is_new`: no settings are there yet."""

    settings_file: str
    values: dict[str, str]
    slurm_conf: Path
    spool: Path
    is_new: bool = False

    @property
    def cluster_file(self) -> Path:
        """The cluster file that is in force."""
        return Path(self.values["ClusterConfig"])

    @property
    def directory(self) -> Path:
        """Where what slurmctld reads is rendered: beside slurm.conf."""
        return self.slurm_conf.parent

    def taken_digest(self) -> str:
        """What `remember_taken` was told last; empty when that is not known."""
        try:
            return (self.spool / TAKEN_FILE).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def remember_taken(self, digest: str) -> None:
        """Keep the digest of what slurmctld has taken. Raises OSError."""
        replace_file(self.spool / TAKEN_FILE, f"{digest}\n")


def find_place(settings_file: str) -> Place:
    """The place of these settings, else of those that belong to SLURM_CONF, else a new one.

    Raises SettingsError for settings that are wrong, and for a spool that cannot be used.
    """
    if settings_file:
        return _place_of(settings_file)
    try:
        found = find_settings()
    except settings.SettingsError:
        return _new_place()
    return _place_of(found)


def _place_of(settings_file: str) -> Place:
    values = settings.read(settings_file)
    return Place(settings_file, values, slurm_conf_of(settings_file), _spool_of(values))


def _new_place() -> Place:
    slurm_conf = Path(os.environ.get("SLURM_CONF") or settings.DEFAULT_SLURM_CONF)
    values = dict(settings.DEFAULTS)
    path = slurm_conf.parent / settings.FILE_NAME
    return Place(str(path), values, slurm_conf, _spool_of(values), is_new=True)


def _spool_of(values: dict[str, str]) -> Path:
    """The spool, which is the Slurm user's; root may use it, and makes none."""
    directory = Path(values["SpoolDir"])
    if os.geteuid() == 0 and directory.is_dir():
        return directory
    return prepare_spool(values)
