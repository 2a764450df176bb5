"""Puts a controller together from its settings: clients, spool, cluster file, passes."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from slurm_hooks import settings
from slurm_hooks.cluster.errors import ClusterFileError
from slurm_hooks.cluster.load import load_cluster
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.history import metrics
from slurm_hooks.history.conditions import FILE_NAME as CONDITIONS_FILE
from slurm_hooks.history.conditions import ConditionsFile
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.history.events import FILE_NAME as HISTORY_FILE
from slurm_hooks.history.events import EventHistory
from slurm_hooks.history.reports import FILE_NAME as REPORTS_FILE
from slurm_hooks.history.reports import FaultReports
from slurm_hooks.reconcile import deleting
from slurm_hooks.reconcile.passes import Passes
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.service_manager import notify
from slurm_hooks.reconcile.watched_file import WatchedFile
from slurm_hooks.slurm.client import SlurmError
from slurm_hooks.slurm.controllers import Charge, charge_of_this_host
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.scontrol import ScontrolClient

ERRORS = (settings.SettingsError, ClusterFileError, SlurmError, OSError, ValueError)
"""What can be wrong with what the operator gave us; each text says what to mend."""


@dataclass(frozen=True, slots=True)
class Controller:
    """Everything that runs passes over one cluster. `cluster_file` is as it was when it was read,
    or when it was last found to be wrong."""

    settings_file: str
    spool_directory: Path
    cluster: Cluster
    passes: Passes
    interval_seconds: float
    cluster_file: WatchedFile


def find_settings() -> str:
    """The settings file that belongs to SLURM_CONF. Raises SettingsError."""
    return settings.find(os.environ.get("SLURM_CONF"))


def prepare_spool(values: dict[str, str]) -> Path:
    """Create the spool for this user alone, or check that it is. Raises SettingsError."""
    directory = Path(values["SpoolDir"])
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise settings.SettingsError(
            f"SpoolDir {directory} cannot be created: {error.strerror}; as root, run "
            f"install -d -m 0700 -o slurm -g slurm {directory}, with your Slurm user for slurm"
        ) from None
    status = directory.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise settings.SettingsError(
            f"SpoolDir {directory} must belong to the Slurm user and be writable by nobody else: "
            f"chown it and chmod 0700"
        )
    return directory


def assemble(settings_file: str) -> Controller:
    """Read settings and cluster file and connect the clients. Raises one of ERRORS."""
    values = settings.read(settings_file)
    cluster_file = WatchedFile.look_at(Path(values["ClusterConfig"]))
    cluster = load_cluster(cluster_file.path, values["ClusterId"])
    spool_directory = prepare_spool(values)
    slurm_conf = slurm_conf_of(settings_file)
    slurm = ScontrolClient(slurm_conf, values["SlurmBinDir"])
    compute = GoogleComputeClient(
        values["Project"] or cluster.project, values["ApiEndpoint"], values["ApiCredentials"]
    )
    calls = CallsDirectory(spool_directory, expand)
    consoles = ConsolesDirectory(spool_directory / "consoles")
    passes = Passes(
        cluster,
        slurm,
        compute,
        calls,
        consoles,
        lambda: datetime.now(UTC),
        lambda: (
            Charge.NOBODY
            if deleting.obey(spool_directory)
            else charge_of_this_host(slurm_conf, slurm.responding_controller)
        ),
        lambda: notify("WATCHDOG=1"),
        history=EventHistory(spool_directory / HISTORY_FILE),
        reports=FaultReports(spool_directory / REPORTS_FILE),
        conditions=ConditionsFile(spool_directory / CONDITIONS_FILE),
    )
    interval = _interval_seconds(values)
    return Controller(settings_file, spool_directory, cluster, passes, interval, cluster_file)


def serve_metrics(values: dict[str, str]) -> None:
    """Serve metrics if the settings say where. Raises OSError, ValueError."""
    if not values["MetricsListen"]:
        return
    # The server's threads inherit the mask: signals are the main thread's alone.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        metrics.serve(values["MetricsListen"])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def slurm_conf_of(settings_file: str) -> Path:
    """SLURM_CONF, else a slurm.conf beside the settings, else Slurm's own default."""
    given = os.environ.get("SLURM_CONF")
    if given:
        return Path(given)
    beside = Path(settings_file).parent / "slurm.conf"
    return beside if beside.exists() else Path(settings.DEFAULT_SLURM_CONF)


def _interval_seconds(values: dict[str, str]) -> float:
    text = values["PassIntervalSeconds"]
    try:
        interval = float(text)
    except ValueError:
        interval = 0.0
    if not 0.1 <= interval <= 300:
        raise settings.SettingsError(
            f"PassIntervalSeconds={text}: expected a number of seconds from 0.1 to 300"
        )
    return interval
