"""What must hold inside orchestrator_spec.slurm_spec: references, the login pool, config maps.

Pure: values in, mistakes out. Facts: the managed service's rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from slurm_hooks.cluster import resource_names as names
from slurm_hooks.cluster.errors import FieldError
from slurm_hooks.cluster.fields import shown
from slurm_hooks.cluster.parts import NEUTRAL, Parts
from slurm_hooks.cluster.slurm_config import Settings, check_config, settings_of
from slurm_hooks.cluster.slurm_parameters import Place
from slurm_hooks.cluster.spec import (
    AccountingSpec,
    NodePoolSpec,
    PartitionSpec,
    SchedulingSpec,
    SlurmSpec,
)
from slurm_hooks.cluster.topology import ProvisioningModel

SLURM = "orchestrator_spec.slurm_spec"

MAXIMUM_LOGIN_NODES = 1000
"""The VMs of one managed instance group: login nodes have a single one."""


def check_slurm(parts: Parts) -> Iterator[FieldError]:
    """Every mistake of the Slurm part."""
    slurm = parts.slurm
    partition_ids = tuple(partition.id for partition in slurm.partitions)
    yield from repeated(f"{SLURM}.partitions[{{}}].id", partition_ids)
    if slurm.default_partition_id and _is_dangling(slurm.default_partition_id, partition_ids):
        path = f"{SLURM}.default_partition_id"
        yield _dangling(path, "partition", slurm.default_partition_id, partition_ids)
    for index, partition in enumerate(slurm.partitions):
        yield from _check_partition(f"{SLURM}.partitions[{index}]", partition, parts)
    yield from _check_login(parts)
    yield from _check_node_sets(parts)
    yield from check_config(f"{SLURM}.config", Place.GLOBAL, slurm.config)
    yield from _check_superseded(slurm)


def global_settings_of(slurm: SlurmSpec) -> Settings:
    """The global settings of a Slurm part that has been checked, from whichever of its fields."""
    older = {**_given(slurm.scheduling), **_given(slurm.accounting)}
    return settings_of(Place.GLOBAL, {**older, **slurm.config})


def repeated(path: str, ids: Sequence[str]) -> Iterator[FieldError]:
    """Mistakes for ids that stood earlier in the list; `path` holds `{}` for the list's index."""
    first: dict[str, int] = {}
    for index, text in enumerate(ids):
        if first.setdefault(text, index) != index and text != NEUTRAL:
            problem = f"{shown(text)} stands in entry {first[text]} too"
            yield FieldError(path.format(index), problem, "rename or remove one of them")


def _check_partition(path: str, partition: PartitionSpec, parts: Parts) -> Iterator[FieldError]:
    if not names.PARTITION_ID.fullmatch(partition.id) or partition.id.upper() == "DEFAULT":
        remedy = "use letters, digits, _, - and ., and not the word default"
        problem = f"{shown(partition.id)} cannot be a Slurm partition"
        yield FieldError(f"{path}.id", problem, remedy)
    yield from repeated(f"{path}.node_pool_ids[{{}}]", partition.node_pool_ids)
    for index, pool_id in enumerate(partition.node_pool_ids):
        yield from _check_compute_pool(f"{path}.node_pool_ids[{index}]", pool_id, parts)
    yield from check_config(f"{path}.config", Place.PARTITION, partition.config)


def _check_compute_pool(path: str, pool_id: str, parts: Parts) -> Iterator[FieldError]:
    if _is_dangling(pool_id, parts.pool_ids):
        yield _dangling(path, "node pool", pool_id, parts.pool_ids)
    elif pool_id == parts.slurm.login_node_pool_id:
        problem = f"{shown(pool_id)} is the login pool, which runs no jobs"
        yield FieldError(path, problem, "name a compute pool")


def _check_node_sets(parts: Parts) -> Iterator[FieldError]:
    entries = parts.slurm.node_sets
    pool_ids = [entry.node_pool_id for entry in entries]
    yield from repeated(f"{SLURM}.node_sets[{{}}].node_pool_id", pool_ids)
    for index, entry in enumerate(entries):
        path = f"{SLURM}.node_sets[{index}]"
        yield from _check_compute_pool(f"{path}.node_pool_id", entry.node_pool_id, parts)
        yield from check_config(f"{path}.config", Place.NODE, entry.config)


def _check_superseded(slurm: SlurmSpec) -> Iterator[FieldError]:
    for field, section in (("scheduling", slurm.scheduling), ("accounting", slurm.accounting)):
        given = _given(section)
        yield from check_config(f"{SLURM}.{field}", Place.GLOBAL, given)
        if given and slurm.config:
            problem = "may not stand beside config, which supersedes it"
            yield FieldError(f"{SLURM}.{field}", problem, "move its settings into config")


def _given(section: SchedulingSpec | AccountingSpec | None) -> dict[str, str]:
    values = section.model_dump(exclude_none=True) if section is not None else {}
    return {key: str(value) for key, value in values.items()}


def _check_login(parts: Parts) -> Iterator[FieldError]:
    login = parts.slurm.login_node_pool_id
    if _is_dangling(login, parts.pool_ids):
        yield _dangling(f"{SLURM}.login_node_pool_id", "node pool", login, parts.pool_ids)
    for index, pool in enumerate(parts.pools):
        if pool.id == login:
            yield from _check_login_pool(f"node_pools[{index}]", pool)


def _check_login_pool(path: str, pool: NodePoolSpec) -> Iterator[FieldError]:
    low, high = pool.scaling_spec.min_node_count, pool.scaling_spec.max_node_count
    if low != high:
        problem = "the login pool must have min_node_count = max_node_count"
        remedy = "make them equal: login nodes are always there"
        yield FieldError(f"{path}.scaling_spec", problem, remedy)
    if high > MAXIMUM_LOGIN_NODES:
        problem = f"{shown(high)} login nodes do not fit into one group"
        remedy = f"write {MAXIMUM_LOGIN_NODES} at most"
        yield FieldError(f"{path}.scaling_spec.max_node_count", problem, remedy)
    if pool.provisioning_model is ProvisioningModel.FLEX_START:
        problem = "a login node would wait for capacity and end when its time is over"
        remedy = "leave it out, or write ON_DEMAND, SPOT or RESERVATION"
        yield FieldError(f"{path}.provisioning_model", problem, remedy)


def _is_dangling(wanted: str, known: tuple[str, ...]) -> bool:
    """Whether no entry has the id; an unreadable entry might be the one that is meant."""
    return bool(known) and NEUTRAL not in known and wanted not in known


def _dangling(path: str, kind: str, wanted: str, known: tuple[str, ...]) -> FieldError:
    listed = ", ".join(shown(name) for name in known[:10])
    return FieldError(path, f"no {kind} has the id {shown(wanted)}", f"known: {listed}")
