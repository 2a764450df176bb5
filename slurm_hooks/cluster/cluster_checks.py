"""What must hold between the parts of a cluster file: places, names, identity.

Works on whatever parts could be read, so that a mistake in one pool does not hide one in the
partitions. Pure: values in, mistakes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from slurm_hooks.cluster import resource_names as names
from slurm_hooks.cluster.errors import FieldError
from slurm_hooks.cluster.fields import shown
from slurm_hooks.cluster.machine_types import MachineCatalogue
from slurm_hooks.cluster.parts import Parts
from slurm_hooks.cluster.pool_checks import check_pool
from slurm_hooks.cluster.pool_resources import check_labels
from slurm_hooks.cluster.slurm_checks import SLURM, check_slurm, repeated
from slurm_hooks.cluster.spec import NodePoolSpec

LONGEST_DISPLAY_NAME = 128


def check_cluster(
    parts: Parts, catalogue: MachineCatalogue, wanted_id: str
) -> Iterator[FieldError]:
    """Every mistake between and inside the parts."""
    yield from _check_identity(parts, wanted_id)
    yield from _check_display_name(parts)
    yield from _check_service_account(parts)
    yield from _check_network(parts)
    for index, pool in enumerate(parts.pools):
        yield from check_pool(f"node_pools[{index}]", pool, catalogue)
        yield from _check_name_length(f"node_pools[{index}]", pool, parts.cluster_id(wanted_id))
    yield from _check_regions(parts)
    yield from repeated("node_pools[{}].id", parts.pool_ids)
    yield from check_labels("labels", parts.labels)
    yield from check_slurm(parts)
    yield from _check_holds(parts)
    yield from _check_startup_time(parts)


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


def _check_display_name(parts: Parts) -> Iterator[FieldError]:
    length = len(parts.display_name)
    if length > LONGEST_DISPLAY_NAME:
        remedy = f"write {LONGEST_DISPLAY_NAME} characters at most"
        yield FieldError("display_name", f"has {length} characters", remedy)


def _check_service_account(parts: Parts) -> Iterator[FieldError]:
    account = parts.service_account
    if account and not names.SERVICE_ACCOUNT.fullmatch(account):
        problem = f"{shown(account)} is no service account"
        remedy = "write its address, NAME@PROJECT.iam.gserviceaccount.com"
        yield FieldError("runtime_spec.service_account", problem, remedy)


def _check_holds(parts: Parts) -> Iterator[FieldError]:
    first, longest = parts.extension.hold_seconds, parts.extension.longest_hold_seconds
    if longest < first:
        problem = f"{longest} is below hold_seconds {first}"
        remedy = "raise it, or lower hold_seconds"
        yield FieldError("slurm_hooks.longest_hold_seconds", problem, remedy)


def _check_startup_time(parts: Parts) -> Iterator[FieldError]:
    script = parts.extension.startup_script_timeout_seconds
    boot = parts.extension.boot_timeout_seconds
    if script >= boot and any(pool.startup_script for pool in parts.pools):
        problem = f"{script} is not below boot_timeout_seconds {boot}"
        remedy = "lower it, or raise boot_timeout_seconds: it ends the boot as a whole"
        yield FieldError("slurm_hooks.startup_script_timeout_seconds", problem, remedy)


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
    places += _storage_places(parts)
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


def _storage_places(parts: Parts) -> Iterator[tuple[str, str]]:
    """Storage with its region, which must be that of the nodes that mount it."""
    instances = [(f"{SLURM}.home_directory_storage", parts.slurm.home_directory_storage)]
    for index, pool in enumerate(parts.pools):
        for kind, texts in (("filestores", pool.filestores), ("lustres", pool.lustres)):
            path = f"node_pools[{index}].{kind}"
            instances += [(f"{path}[{number}]", text) for number, text in enumerate(texts)]
    for path, text in instances:
        match = names.STORAGE.fullmatch(text)
        yield path, names.location_region(match.group("zone")) if match else ""


def _region(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.fullmatch(text)
    return (match.group("region") or "") if match else ""
