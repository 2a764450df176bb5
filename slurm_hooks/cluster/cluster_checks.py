"""What must hold between the parts of a cluster file: references, places, names, identity.

Works on whatever parts could be read, so that a mistake in one pool does not hide one in the
partitions. Pure: values in, mistakes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from slurm_hooks.cluster import resource_names as names
from slurm_hooks.cluster.errors import FieldError
from slurm_hooks.cluster.fields import shown
from slurm_hooks.cluster.machine_types import MachineCatalogue
from slurm_hooks.cluster.parts import NEUTRAL, Parts
from slurm_hooks.cluster.pool_checks import check_pool
from slurm_hooks.cluster.spec import NodePoolSpec, SlurmSpec

SLURM = "orchestrator_spec.slurm_spec"


def check_cluster(
    parts: Parts, catalogue: MachineCatalogue, wanted_id: str
) -> Iterator[FieldError]:
    """Every mistake between and inside the parts."""
    yield from _check_identity(parts, wanted_id)
    yield from _check_service_account(parts)
    yield from _check_network(parts)
    for index, pool in enumerate(parts.pools):
        yield from check_pool(f"node_pools[{index}]", pool, catalogue)
        yield from _check_name_length(f"node_pools[{index}]", pool, parts.cluster_id(wanted_id))
    yield from _check_regions(parts)
    yield from _repeated("node_pools[{}].id", parts.pool_ids)
    yield from _check_slurm(parts, parts.slurm)


def _check_identity(parts: Parts, wanted_id: str) -> Iterator[FieldError]:
    cluster_id = parts.cluster_id(wanted_id)
    path = "cluster id" if wanted_id else "name"
    if not cluster_id:
        remedy = "pass the cluster id, or end name with it, or make it the display_name"
        yield FieldError(path, "gives no cluster id", remedy)
    elif not names.CLUSTER_ID.fullmatch(cluster_id):
        remedy = "use 1 to 10 lower-case letters and digits, a letter first, no hyphen"
        yield FieldError(path, f"{shown(cluster_id)} is no cluster id", remedy)
    if parts.name and not names.CLUSTER.fullmatch(parts.name):
        remedy = "write projects/P/locations/REGION/modelDevelopmentClusters/ID"
        yield FieldError("name", f"{shown(parts.name)} is no cluster name", remedy)
    elif not parts.project:
        remedy = "write name as projects/P/locations/REGION/modelDevelopmentClusters/ID"
        yield FieldError("name", "no field names the project", remedy)


def _check_service_account(parts: Parts) -> Iterator[FieldError]:
    account = parts.service_account
    if account and not names.SERVICE_ACCOUNT.fullmatch(account):
        problem = f"{shown(account)} is no service account"
        remedy = "write its address, NAME@PROJECT.iam.gserviceaccount.com"
        yield FieldError("runtime_spec.service_account", problem, remedy)


def _check_network(parts: Parts) -> Iterator[FieldError]:
    if parts.network and not names.NETWORK.fullmatch(names.partial_url(parts.network)):
        remedy = "write a name, or projects/P/global/networks/NAME"
        yield FieldError("network.network", f"{shown(parts.network)} is no network", remedy)
    if parts.subnetwork and not names.SUBNETWORK.fullmatch(names.partial_url(parts.subnetwork)):
        remedy = "write a name, or projects/P/regions/REGION/subnetworks/NAME"
        problem = f"{shown(parts.subnetwork)} is no subnetwork"
        yield FieldError("network.subnetwork", problem, remedy)
    storage = parts.slurm.home_directory_storage
    if not names.STORAGE.fullmatch(storage):
        remedy = "write projects/P/locations/ZONE/instances/NAME"
        problem = f"{shown(storage)} is no Filestore instance"
        yield FieldError(f"{SLURM}.home_directory_storage", problem, remedy)


def _check_name_length(path: str, pool: NodePoolSpec, cluster_id: str) -> Iterator[FieldError]:
    longest = f"{cluster_id}-{pool.id}-{max(pool.scaling_spec.max_node_count - 1, 0)}"
    if len(longest) > names.MAXIMUM_NAME_LENGTH:
        problem = f"makes node names of {len(longest)} characters"
        remedy = f"shorten it: CLUSTER-POOL-INDEX has {names.MAXIMUM_NAME_LENGTH} at most"
        yield FieldError(f"{path}.id", problem, remedy)


def _check_regions(parts: Parts) -> Iterator[FieldError]:
    places = [
        (f"node_pools[{index}].zone", names.region_of(pool.zone))
        for index, pool in enumerate(parts.pools)
    ]
    for path, pattern, text in (
        ("name", names.CLUSTER, parts.name),
        ("network.subnetwork", names.SUBNETWORK, names.partial_url(parts.subnetwork)),
    ):
        places.append((path, _region(pattern, text)))
    known = [(path, region) for path, region in places if region]
    for path, region in known[1:]:
        if region != known[0][1]:
            problem = f"is in {region}, but {known[0][0]} is in {known[0][1]}"
            yield FieldError(path, problem, "keep a cluster in one region")


def _region(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.fullmatch(text)
    return (match.group("region") or "") if match else ""


def _repeated(path: str, ids: Sequence[str]) -> Iterator[FieldError]:
    """Mistakes for ids that stood earlier in the list; `path` holds `{}` for the list's index."""
    first: dict[str, int] = {}
    for index, text in enumerate(ids):
        if first.setdefault(text, index) != index:
            problem = f"{shown(text)} stands in entry {first[text]} too"
            yield FieldError(path.format(index), problem, "rename or remove one of them")


def _check_slurm(parts: Parts, slurm: SlurmSpec) -> Iterator[FieldError]:
    partition_ids = tuple(partition.id for partition in slurm.partitions)
    yield from _repeated(f"{SLURM}.partitions[{{}}].id", partition_ids)
    if slurm.default_partition_id and _is_dangling(slurm.default_partition_id, partition_ids):
        path = f"{SLURM}.default_partition_id"
        yield _dangling(path, "partition", slurm.default_partition_id, partition_ids)
    for index, partition in enumerate(slurm.partitions):
        path = f"{SLURM}.partitions[{index}]"
        if not names.PARTITION_ID.fullmatch(partition.id) or partition.id.upper() == "DEFAULT":
            remedy = "use letters, digits, _, - and ., and not the word default"
            problem = f"{shown(partition.id)} cannot be a Slurm partition"
            yield FieldError(f"{path}.id", problem, remedy)
        yield from _check_pool_references(path, partition.node_pool_ids, parts, slurm)
    yield from _check_login(parts, slurm)


def _check_pool_references(
    path: str, pool_ids: list[str], parts: Parts, slurm: SlurmSpec
) -> Iterator[FieldError]:
    yield from _repeated(f"{path}.node_pool_ids[{{}}]", pool_ids)
    for index, pool_id in enumerate(pool_ids):
        place = f"{path}.node_pool_ids[{index}]"
        if _is_dangling(pool_id, parts.pool_ids):
            yield _dangling(place, "node pool", pool_id, parts.pool_ids)
        elif pool_id == slurm.login_node_pool_id:
            problem = f"{shown(pool_id)} is the login pool, which runs no jobs"
            yield FieldError(place, problem, "name a compute pool")


def _check_login(parts: Parts, slurm: SlurmSpec) -> Iterator[FieldError]:
    if _is_dangling(slurm.login_node_pool_id, parts.pool_ids):
        path = f"{SLURM}.login_node_pool_id"
        yield _dangling(path, "node pool", slurm.login_node_pool_id, parts.pool_ids)
    for index, pool in enumerate(parts.pools):
        scaling = pool.scaling_spec
        if pool.id == slurm.login_node_pool_id and (
            scaling.min_node_count != scaling.max_node_count
        ):
            problem = "the login pool must have min_node_count = max_node_count"
            path = f"node_pools[{index}].scaling_spec"
            yield FieldError(path, problem, "make them equal: login nodes are always there")


def _is_dangling(wanted: str, known: tuple[str, ...]) -> bool:
    """Whether no entry has the id; an unreadable entry might be the one that is meant."""
    return bool(known) and NEUTRAL not in known and wanted not in known


def _dangling(path: str, kind: str, wanted: str, known: tuple[str, ...]) -> FieldError:
    listed = ", ".join(shown(name) for name in known[:10])
    return FieldError(path, f"no {kind} has the id {shown(wanted)}", f"known: {listed}")
