"""One read of each system for a status, and the little that only the consoles tell.

A system that does not answer is told as unavailable, and soon: somebody waits at a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from slurm_hooks import settings
from slurm_hooks.boot.console import BootStep, last_boot_step
from slurm_hooks.cluster.load import load_cluster
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.errors import ComputeError
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import ComputeSnapshot, Instance, InstanceStatus
from slurm_hooks.compute.retry import RetryPolicy
from slurm_hooks.history.conditions import FILE_NAME as CONDITIONS_FILE
from slurm_hooks.history.conditions import ConditionsFile
from slurm_hooks.history.events import FILE_NAME as HISTORY_FILE
from slurm_hooks.history.events import EventHistory, HistoryUnavailable
from slurm_hooks.history.report import FaultReport
from slurm_hooks.history.reports import FILE_NAME as REPORTS_FILE
from slurm_hooks.history.reports import FaultReports
from slurm_hooks.reconcile.assembly import slurm_conf_of
from slurm_hooks.reconcile.bell import daemon_listens
from slurm_hooks.reconcile.deleting import is_marked
from slurm_hooks.reconcile.observe import read_repairs
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import System, Unavailable
from slurm_hooks.slurm.client import SlurmClient, SlurmError
from slurm_hooks.slurm.controllers import Charge, charge_of_this_host
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.model import NodeFlag, SlurmSnapshot
from slurm_hooks.slurm.scontrol import ScontrolClient
from slurm_hooks.status.derive import derive_status
from slurm_hooks.status.model import ClusterStatus, StatusInputs

MOST_CONSOLES = 8
"""How many serial consoles are read for one status: each is a call of its own."""

SLURM_TIMEOUT_SECONDS = 15.0
PATIENCE = RetryPolicy(request_timeout_seconds=10.0, attempts=2, total_seconds=15.0)


@dataclass(frozen=True, slots=True)
class StatusSources:
    """Where the parts of one cluster's status are read.

    `charge` tells whether the slurmctld of this host is in charge, of which its daemon acts.
    """

    cluster: Cluster
    slurm: SlurmClient
    compute: ComputeClient
    spool_directory: Path
    charge: Callable[[], Charge] = lambda: Charge.HERE


def read_status(settings_file: str) -> ClusterStatus:
    """Read everything once and say how the cluster stands.

    Raises SettingsError or ClusterFileError for a mistake of the operator's; systems that do not
    answer are part of the status.
    """
    return status_of(status_sources(settings_file), datetime.now(UTC))


def status_sources(settings_file: str) -> StatusSources:
    """Connect to what the settings name. Raises SettingsError or ClusterFileError."""
    values = settings.read(settings_file)
    cluster = load_cluster(Path(values["ClusterConfig"]), values["ClusterId"])
    slurm_conf = slurm_conf_of(settings_file)
    slurm = ScontrolClient(
        slurm_conf,
        values["SlurmBinDir"],
        read_timeout_seconds=SLURM_TIMEOUT_SECONDS,
    )
    project = values["Project"] or cluster.project
    try:
        compute = GoogleComputeClient(
            project, values["ApiEndpoint"], values["ApiCredentials"], PATIENCE
        )
    except ValueError as error:
        raise settings.SettingsError(f"{settings_file}: {error}") from None
    return StatusSources(
        cluster,
        slurm,
        compute,
        Path(values["SpoolDir"]),
        lambda: charge_of_this_host(slurm_conf, slurm.responding_controller),
    )


def status_of(sources: StatusSources, now: datetime) -> ClusterStatus:
    """One read of each system, joined; `now` is aware and in UTC."""
    slurm, compute = _read_slurm(sources.slurm), _read_compute(sources)
    since = now - timedelta(days=sources.cluster.policy.repair_days)
    history = EventHistory(sources.spool_directory / HISTORY_FILE)
    return derive_status(
        StatusInputs(
            sources.cluster,
            slurm,
            compute,
            now,
            repairs=read_repairs(history, since),
            resume_calls=CallsDirectory(sources.spool_directory, expand).read(),
            boot_steps=_boot_steps(sources, slurm, compute),
            report=_read_report(sources),
            conditions=ConditionsFile(sources.spool_directory / CONDITIONS_FILE).read(),
            is_deleting=is_marked(sources.spool_directory),
            daemon_runs=daemon_listens(sources.spool_directory),
        )
    )


def _read_report(sources: StatusSources) -> FaultReport | None:
    """The report that is open; none where that cannot be known, as the history then tells."""
    try:
        return FaultReports(sources.spool_directory / REPORTS_FILE).open()
    except HistoryUnavailable:
        return None


def _read_slurm(slurm: SlurmClient) -> SlurmSnapshot | Unavailable:
    try:
        return slurm.read()
    except SlurmError as error:
        return Unavailable(System.SLURM, str(error))


def _read_compute(sources: StatusSources) -> ComputeSnapshot | Unavailable:
    try:
        return sources.compute.read(sources.cluster.cluster_id)
    except ComputeError as error:
        return Unavailable(System.COMPUTE, str(error))


def _boot_steps(
    sources: StatusSources,
    slurm: SlurmSnapshot | Unavailable,
    compute: ComputeSnapshot | Unavailable,
) -> dict[str, BootStep]:
    """What the consoles say of VMs that run and have not registered; what cannot be read is left
    out."""
    if isinstance(slurm, Unavailable) or isinstance(compute, Unavailable):
        return {}
    steps: dict[str, BootStep] = {}
    booting = list(_booting(sources.cluster, slurm, compute))
    for vm in booting[:MOST_CONSOLES]:
        try:
            text = sources.compute.get_serial_port_output(vm.zone, vm.name)
        except ComputeError:
            continue
        step = last_boot_step(text)
        if step is not None:
            steps[vm.name] = step
    return steps


def _booting(
    cluster: Cluster, slurm: SlurmSnapshot, compute: ComputeSnapshot
) -> Iterator[Instance]:
    """VMs that run and that Slurm waits for, the oldest first; then those of login nodes, of
    which Slurm never tells whether they have booted."""
    running = [vm for vm in compute.instances.values() if vm.status is InstanceStatus.RUNNING]
    running.sort(key=lambda vm: (vm.creation_time_utc is None, vm.creation_time_utc, vm.name))
    for vm in running:
        node = slurm.nodes.get(vm.name)
        if node is not None and node.state.has(NodeFlag.POWERING_UP):
            yield vm
    for vm in running:
        pool = cluster.pool_of(vm.name)
        if pool is not None and pool.is_login:
            yield vm
