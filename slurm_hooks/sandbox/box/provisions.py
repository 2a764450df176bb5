"""What a box's project has before its first VM: all that the cluster file names and no controller
makes, such as storage, reservations and the key. `slurm-hooks check` finds nothing missing then.

A site makes these once, by hand. The emulator forgets them when it ends, so they are written down
and made again with each emulator.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites.rules.reservations import reservations_of
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from slurm_hooks.sandbox.emulator.project_control import ProjectControl

_VIEWER_ROLES = ("roles/file.viewer", "roles/lustre.viewer")


class ReservedVms(BaseModel):
    """A reservation by its partial URL."""

    model_config = ConfigDict(frozen=True)

    name: str
    machine_type: str
    count: int


class Provisions(BaseModel):
    """Storage instances and secret are partial URLs; `service_account` is empty for the default
    one of Compute Engine."""

    model_config = ConfigDict(frozen=True)

    filestores: tuple[str, ...]
    lustres: tuple[str, ...]
    network: str
    subnetwork: str
    reservations: tuple[ReservedVms, ...]
    service_account: str
    key_secret: str


def provisions_of(cluster: Cluster) -> Provisions:
    """What the cluster's nodes need beside VMs."""
    pools = cluster.pools.values()
    filestores = {cluster.home_directory_storage, *(name for p in pools for name in p.filestores)}
    return Provisions(
        filestores=tuple(sorted(filestores)),
        lustres=tuple(sorted({name for pool in pools for name in pool.lustres})),
        network=cluster.network,
        subnetwork=cluster.subnetwork,
        reservations=tuple(
            ReservedVms(name=name, machine_type=pool.machine_type, count=pool.max_node_count)
            for pool in pools
            for name in reservations_of(pool)
        ),
        service_account=cluster.service_account,
        key_secret=cluster.node_boot.key_secret,
    )


def provide(control: EmulatorControl, provisions: Provisions, munge_key: Path) -> None:
    """Make all of it in the emulated project, with an address each, and let nodes use it."""
    project = control.project
    account = provisions.service_account or (
        f"{control.status().project_number}-compute@developer.gserviceaccount.com"
    )
    member = f"serviceAccount:{account}"
    _provide_network(project, provisions)
    for one in provisions.reservations:
        zone, _, name = one.name.split("/")[-3:]
        project.put_reservation(zone, name, one.machine_type, count=one.count)
    project.put_service_account(account)
    for role in _VIEWER_ROLES:
        project.grant(role, member)
    for number, instance in enumerate(provisions.filestores, 2):
        location, name = _place(instance)
        project.put_filestore(
            location, name, network=provisions.network, address=f"10.0.0.{number}"
        )
    for number, instance in enumerate(provisions.lustres, 2):
        location, name = _place(instance)
        project.put_lustre(location, name, network=provisions.network, address=f"10.0.1.{number}")
    if provisions.key_secret:
        _, _, _, name, _, version = provisions.key_secret.split("/")
        for _ in range(int(version) if version.isdigit() else 1):
            project.put_secret(name, munge_key.read_bytes(), [member])


def _provide_network(project: ProjectControl, provisions: Provisions) -> None:
    network = provisions.network.rpartition("/")[2]
    project.put_network(network, auto_create_subnetworks=not provisions.subnetwork)
    if provisions.subnetwork:
        region, _, name = provisions.subnetwork.split("/")[-3:]
        project.put_subnetwork(region, name, network)


def _place(instance: str) -> tuple[str, str]:
    """Location and name of `projects/P/locations/L/instances/I`."""
    *_, location, _, name = instance.split("/")
    return location, name
