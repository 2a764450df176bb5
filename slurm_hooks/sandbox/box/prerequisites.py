"""Gives an emulated project what a cluster file names and no controller makes: `slurm-hooks check`
then finds nothing missing."""

from __future__ import annotations

from slurm_hooks.cluster.resource_names import location_region
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites.commands import last, part, reservation_name
from slurm_hooks.prerequisites.rules.reservations import reservations_of
from slurm_hooks.prerequisites.rules.secrets import READ_ROLE, secret_of
from slurm_hooks.prerequisites.rules.storage import filestores_of, lustres_of
from slurm_hooks.sandbox.emulator.control import EmulatorControl


def provide_prerequisites(control: EmulatorControl, cluster: Cluster, key: bytes = b"") -> None:
    """Make the network, service account, storage, reservations and the secret with the `key`.

    What is there already is kept or replaced. Raises EmulatorControlError.
    """
    _provide_network(control, cluster)
    if cluster.service_account:
        control.project.put_service_account(cluster.service_account)
    for number, name in enumerate(filestores_of(cluster), 2):
        control.project.put_filestore(
            part(name, "locations"),
            last(name),
            network=last(cluster.network),
            address=f"10.0.0.{number}",
            share="share",
        )
    for number, name in enumerate(lustres_of(cluster), 2):
        control.project.put_lustre(
            part(name, "locations"),
            last(name),
            network=cluster.network,
            address=f"10.0.1.{number}",
        )
    _provide_reservations(control, cluster)
    _provide_secret(control, cluster, key)


def _provide_network(control: EmulatorControl, cluster: Cluster) -> None:
    network = last(cluster.network)
    control.project.put_network(network, auto_create_subnetworks=not cluster.subnetwork)
    if cluster.subnetwork:
        region = location_region(part(cluster.subnetwork, "regions"))
        control.project.put_subnetwork(region, last(cluster.subnetwork), network)


def _provide_reservations(control: EmulatorControl, cluster: Cluster) -> None:
    for pool in cluster.pools.values():
        for name in reservations_of(pool):
            control.project.put_reservation(
                part(name, "zones"),
                reservation_name(name),
                pool.machine_type,
                count=pool.max_node_count,
            )


def _provide_secret(control: EmulatorControl, cluster: Cluster, key: bytes) -> None:
    version = cluster.node_boot.key_secret
    if not version:
        return
    name = last(secret_of(version))
    if not last(version).isdigit():
        control.project.put_secret(name, key)
    for _ in range(int(last(version)) if last(version).isdigit() else 0):
        control.project.put_secret(name, key)
    if cluster.service_account:
        member = f"serviceAccount:{cluster.service_account}"
        control.project.grant(READ_ROLE, member, resource=f"secrets/{name}")
