"""From a cluster file to the cluster that the controller works with.

Four steps, each of which only adds mistakes to the list: read the text (document), bring names
into one spelling (spelling), give values their types (spec), compare the parts (checks). Only a
file without any mistake becomes a Cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from slurm_hooks.cluster import resource_names as names
from slurm_hooks.cluster.cluster_checks import Parts, check_cluster
from slurm_hooks.cluster.document import Mapping, read_document
from slurm_hooks.cluster.errors import ClusterFileError, FieldError
from slurm_hooks.cluster.fields import MAXIMUM_RUN_DURATION_SECONDS, shown
from slurm_hooks.cluster.machine_types import MachineCatalogue, catalogue_beside
from slurm_hooks.cluster.pool_checks import provisioning_model_of
from slurm_hooks.cluster.spec import ClusterSpec, NodePoolSpec, SlurmSpec, Spec
from slurm_hooks.cluster.spelling import join, spell
from slurm_hooks.cluster.topology import Cluster, NodePool, ProvisioningModel

_S = TypeVar("_S", bound=Spec)

DEFAULT_IMAGES = {
    "X86_64": "projects/debian-cloud/global/images/family/debian-12",
    "ARM64": "projects/debian-cloud/global/images/family/debian-12-arm64",
}
"""What a pool without node_image boots, by architecture. It has no GPU driver: GPU pools should
name an image of their own."""


def load_cluster(path: Path, cluster_id: str = "") -> Cluster:
    """Read a cluster file (JSON or YAML).

    The cluster id is the argument, else the end of `name`, else `display_name`. Raises
    ClusterFileError with everything that is wrong.
    """
    return build_cluster(read_document(path), catalogue_beside(path), cluster_id)


def build_cluster(document: Mapping, catalogue: MachineCatalogue, cluster_id: str = "") -> Cluster:
    """Check a parsed document and fill in every default. Raises ClusterFileError."""
    spelled = spell(document, ClusterSpec)
    spec, type_errors = _typed(spelled.tree, ClusterSpec)
    parts = _parts(spelled.tree)
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
        first.setdefault(error.path, error)
    return tuple(first.values())


def _typed(tree: object, model: type[_S]) -> tuple[_S | None, list[FieldError]]:
    try:
        return model.model_validate(tree), []
    except ValidationError as error:
        return None, [_field_error(detail) for detail in error.errors(include_url=False)]


def _field_error(detail: ErrorDetails) -> FieldError:
    path = ""
    for part in detail["loc"]:
        path = f"{path}[{part}]" if isinstance(part, int) else join(path, part)
    value, context = detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "cluster_field":
            return FieldError(path, context["problem"], context["remedy"])
        case "missing":
            return FieldError(path, "is required and missing", "add it")
        case "string_type" | "string_unicode":
            return FieldError(path, f"{shown(value)} is no text", "write it in quotes")
        case "string_too_short" | "too_short":
            return FieldError(path, "is empty", "give it a value")
        case "list_type":
            return FieldError(path, f"{shown(value)} is no list", "write it in [ ... ]")
        case "model_type" | "model_attributes_type" | "dict_type":
            return FieldError(path, f"{shown(value)} is no mapping", "write it as { ... }")
        case _:
            return FieldError(path, detail["msg"], "compare with the example")


def _parts(tree: dict[str, object]) -> Parts:
    raw_pools = tree.get("node_pools")
    pools = list(raw_pools) if isinstance(raw_pools, list) else []
    typed = ((index, _typed(pool, NodePoolSpec)[0]) for index, pool in enumerate(pools))
    slurm = _inside(tree, "orchestrator_spec", "slurm_spec")
    return Parts(
        pools=tuple((index, pool) for index, pool in typed if pool is not None),
        pool_ids=tuple(_text(pool, "id") for pool in pools),
        slurm=_typed(slurm, SlurmSpec)[0],
        name=_text(tree, "name"),
        display_name=_text(tree, "display_name"),
        network=_text(tree, "network", "network"),
        subnetwork=_text(tree, "network", "subnetwork"),
        home_directory_storage=_text(slurm, "home_directory_storage"),
    )


def _inside(tree: object, *path: str) -> object:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _text(tree: object, *path: str) -> str:
    value = _inside(tree, *path)
    return value if isinstance(value, str) else ""


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
        labels=tuple(sorted({**spec.labels, **pool.labels}.items())),
        startup_script=pool.startup_script,
    )
