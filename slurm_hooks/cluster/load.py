"""From a cluster file to the cluster that the controller works with.

Four steps, each of which only adds mistakes to the list: read the text (document), bring names
into one spelling (spelling), give values their types (spec), compare the parts (checks). Only a
file without any mistake becomes a Cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from slurm_hooks.cluster import resource_names as names
from slurm_hooks.cluster.cluster_checks import check_cluster
from slurm_hooks.cluster.document import Mapping, read_document
from slurm_hooks.cluster.errors import ClusterFileError, FieldError
from slurm_hooks.cluster.fields import MAXIMUM_RUN_DURATION_SECONDS
from slurm_hooks.cluster.machine_types import MachineCatalogue, catalogue_beside
from slurm_hooks.cluster.node_boot import NodeBoot
from slurm_hooks.cluster.parts import Parts, read_parts, typed
from slurm_hooks.cluster.policy import Policy
from slurm_hooks.cluster.pool_checks import provisioning_model_of
from slurm_hooks.cluster.pool_resources import reservations_of
from slurm_hooks.cluster.slurm_checks import global_settings_of
from slurm_hooks.cluster.slurm_config import Settings, settings_of
from slurm_hooks.cluster.slurm_parameters import Place
from slurm_hooks.cluster.spec import ClusterSpec, NodeBootSpec, NodePoolSpec, SlurmSpec
from slurm_hooks.cluster.spelling import spell
from slurm_hooks.cluster.topology import (
    Cluster,
    ConfidentialInstanceType,
    NodePool,
    ProvisioningModel,
)

DEFAULT_IMAGES = {
    "X86_64": "projects/debian-cloud/global/images/family/debian-12",
    "ARM64": "projects/debian-cloud/global/images/family/debian-12-arm64",
}
"""What a pool without node_image boots, by architecture. It has no GPU driver: GPU pools should
name an image of their own."""


_OF_NODES = set(NodeBootSpec.model_fields)


def load_cluster(path: Path, cluster_id: str = "") -> Cluster:
    """Read a cluster file (JSON or YAML).

    The cluster id is the argument, else the end of `name`, else `display_name`. Raises
    ClusterFileError with everything that is wrong.
    """
    return build_cluster(read_document(path), catalogue_beside(path), cluster_id)


def build_cluster(document: Mapping, catalogue: MachineCatalogue, cluster_id: str = "") -> Cluster:
    """Check a parsed document and fill in every default. Raises ClusterFileError."""
    spelled = spell(document, ClusterSpec)
    spec, type_errors = typed(spelled.tree, ClusterSpec)
    parts = read_parts(spelled.tree)
    errors = _first_per_path(
        [*spelled.errors, *type_errors, *check_cluster(parts, catalogue, cluster_id)]
    )
    if errors or spec is None:
        raise ClusterFileError(errors)
    return _cluster(spec, parts, catalogue, parts.cluster_id(cluster_id))


def _first_per_path(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """One mistake per field: the first says it best, later steps only stumble over it again."""
    first: dict[str, FieldError] = {}
    for error in errors:
        if not any(path in first for path in _around(error.path)):
            first[error.path] = error
    return tuple(first.values())


def _around(path: str) -> Iterator[str]:
    """A path and the paths of everything that it lies in."""
    yield path
    for end, character in enumerate(path):
        if character in ".[":
            yield path[:end]


def _cluster(
    spec: ClusterSpec, parts: Parts, catalogue: MachineCatalogue, cluster_id: str
) -> Cluster:
    slurm = spec.orchestrator_spec.slurm_spec
    region = names.region_of(spec.node_pools[0].zone)
    return Cluster(
        cluster_id=cluster_id,
        project=parts.project,
        region=region,
        network=_network(spec, parts.project),
        subnetwork=_subnetwork(spec, parts.project, region),
        pools={pool.id: _pool(pool, spec, catalogue) for pool in spec.node_pools},
        partitions={part.id: tuple(part.node_pool_ids) for part in slurm.partitions},
        default_partition=slurm.default_partition_id or slurm.partitions[0].id,
        service_account=spec.runtime_spec.service_account,
        home_directory_storage=slurm.home_directory_storage,
        policy=Policy(**spec.slurm_hooks.model_dump(exclude=_OF_NODES)),
        node_boot=_node_boot(spec.slurm_hooks),
        prolog_scripts=tuple(slurm.prolog_bash_scripts),
        epilog_scripts=tuple(slurm.epilog_bash_scripts),
        slurm_config=global_settings_of(slurm),
        partition_config={
            part.id: settings_of(Place.PARTITION, part.config)
            for part in slurm.partitions
            if part.config
        },
    )


def _node_boot(extension: NodeBootSpec) -> NodeBoot:
    return NodeBoot(
        controllers=tuple(extension.controllers),
        authentication=extension.authentication,
        key_secret=extension.key_secret,
        mount_sources=tuple(sorted(extension.mount_sources.items())),
        nfs_mount_options=extension.nfs_mount_options,
        lustre_mount_options=extension.lustre_mount_options,
        startup_script_timeout_seconds=extension.startup_script_timeout_seconds,
    )


def _network(spec: ClusterSpec, project: str) -> str:
    network = names.partial_url(spec.network.network)
    return network if "/" in network else f"projects/{project}/global/networks/{network}"


def _subnetwork(spec: ClusterSpec, project: str, region: str) -> str:
    subnetwork = names.partial_url(spec.network.subnetwork)
    if not subnetwork or "/" in subnetwork:
        return subnetwork
    return f"projects/{project}/regions/{region}/subnetworks/{subnetwork}"


def _pool(pool: NodePoolSpec, spec: ClusterSpec, catalogue: MachineCatalogue) -> NodePool:
    machine = catalogue.machine_types[pool.machine_spec.machine_type]
    model = provisioning_model_of(pool, machine) or ProvisioningModel.ON_DEMAND
    is_flex_start = model is ProvisioningModel.FLEX_START
    duration_seconds = pool.flex_start_max_duration or MAXIMUM_RUN_DURATION_SECONDS
    return NodePool(
        pool_id=pool.id,
        machine_type=machine.name,
        provisioning_model=model,
        min_node_count=pool.scaling_spec.min_node_count,
        max_node_count=pool.scaling_spec.max_node_count,
        region=names.region_of(pool.zone),
        zones=(pool.zone,),
        accelerator_type=machine.accelerator_type,
        accelerator_count=machine.accelerator_count,
        run_duration_seconds=duration_seconds if is_flex_start else None,
        is_login=pool.id == spec.orchestrator_spec.slurm_spec.login_node_pool_id,
        boot_disk_type=pool.boot_disk.boot_disk_type or machine.boot_disk_types[0],
        boot_disk_size_gb=pool.boot_disk.boot_disk_size_gb,
        public_ip=pool.enable_public_ips,
        source_image=pool.node_image or DEFAULT_IMAGES[machine.architecture],
        labels=tuple(sorted((k, str(v)) for k, v in {**spec.labels, **pool.labels}.items())),
        startup_script=pool.startup_script,
        reservations=reservations_of(pool, machine),
        filestores=tuple(pool.filestores),
        lustres=tuple(pool.lustres),
        confidential_instance_type=_confidential_type(pool),
        slurm_config=_node_settings(pool.id, spec.orchestrator_spec.slurm_spec),
        **pool.slurm_hooks.model_dump(),
    )


def _confidential_type(pool: NodePoolSpec) -> ConfidentialInstanceType | None:
    config = pool.confidential_instance_config
    return config.confidential_instance_type if config else None


def _node_settings(pool_id: str, slurm: SlurmSpec) -> Settings:
    entries = (entry for entry in slurm.node_sets if entry.node_pool_id == pool_id)
    return tuple(pair for entry in entries for pair in settings_of(Place.NODE, entry.config))
