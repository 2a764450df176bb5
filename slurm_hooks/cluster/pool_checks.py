"""What must hold inside one node pool: sizes, place, machine type, accelerator, model, disk.

Pure: values in, mistakes out. Facts: the managed service's rules for provisioning models, and
Compute Engine's for machine types (the catalogue).
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.cluster import resource_names as names
from slurm_hooks.cluster.errors import FieldError
from slurm_hooks.cluster.fields import shown
from slurm_hooks.cluster.machine_types import EXAMPLE, FILE_NAME, MachineCatalogue, MachineType
from slurm_hooks.cluster.pool_resources import (
    check_confidential,
    check_labels,
    check_reservation,
    check_storage,
)
from slurm_hooks.cluster.spec import NodePoolSpec
from slurm_hooks.cluster.topology import ProvisioningModel

MAXIMUM_NODE_COUNT = 65_536
"""Slurm expands no range of node names beyond this."""

MAXIMUM_METADATA_BYTES = 256 * 1024
"""Of one value; Compute Engine's documented limit."""

BOOT_DISK_SIZES_GB = range(10, 65_537)


def check_pool(path: str, pool: NodePoolSpec, catalogue: MachineCatalogue) -> Iterator[FieldError]:
    """Every mistake inside one pool. `path` is the pool's own, such as `node_pools[1]`."""
    if not names.POOL_ID.fullmatch(pool.id):
        remedy = "use lower-case letters, digits and hyphens, no hyphen at either end"
        yield FieldError(f"{path}.id", f"{shown(pool.id)} cannot be part of a VM name", remedy)
    if not names.ZONE.fullmatch(pool.zone):
        problem = f"{shown(pool.zone)} is no zone"
        yield FieldError(f"{path}.zone", problem, "write one such as us-central1-a")
    if pool.node_image and not names.IMAGE.fullmatch(names.partial_url(pool.node_image)):
        remedy = "write projects/P/global/images/I or projects/P/global/images/family/F"
        yield FieldError(f"{path}.node_image", f"{shown(pool.node_image)} is no image", remedy)
    yield from _check_scaling(f"{path}.scaling_spec", pool)
    yield from check_storage(path, pool)
    yield from check_labels(f"{path}.labels", pool.labels)
    yield from _check_startup_script(f"{path}.startup_script", pool.startup_script)
    machine = catalogue.get(pool.machine_spec.machine_type)
    if machine is None:
        yield _unknown_machine_type(path, pool.machine_spec.machine_type, catalogue)
        return
    yield from _check_accelerator(f"{path}.machine_spec", pool, machine)
    yield from _check_model(path, pool, machine)
    yield from check_reservation(f"{path}.machine_spec", pool, provisioning_model_of(pool, machine))
    yield from check_confidential(f"{path}.confidential_instance_config", pool, machine)
    yield from _check_boot_disk(f"{path}.boot_disk", pool, machine)
    yield from _check_extension(f"{path}.slurm_hooks", pool, machine)


def provisioning_model_of(pool: NodePoolSpec, machine: MachineType) -> ProvisioningModel | None:
    """The model in force; None where a GPU pool does not say it, which the service refuses."""
    if pool.provisioning_model is not None:
        return pool.provisioning_model
    if not machine.accelerator_count:
        return ProvisioningModel.ON_DEMAND
    return ProvisioningModel.RESERVATION if pool.machine_spec.reservation_affinity else None


def _check_scaling(path: str, pool: NodePoolSpec) -> Iterator[FieldError]:
    low, high = pool.scaling_spec.min_node_count, pool.scaling_spec.max_node_count
    if low < 0:
        yield FieldError(f"{path}.min_node_count", f"{shown(low)} is below 0", "write 0 or more")
    if high < low:
        problem = f"{shown(high)} is below min_node_count {shown(low)}"
        yield FieldError(f"{path}.max_node_count", problem, "raise it, or lower min_node_count")
    if high > MAXIMUM_NODE_COUNT:
        remedy = f"write {MAXIMUM_NODE_COUNT} at most, or use several pools"
        yield FieldError(f"{path}.max_node_count", f"{shown(high)} is too many for Slurm", remedy)


def _unknown_machine_type(path: str, name: str, catalogue: MachineCatalogue) -> FieldError:
    nearest = catalogue.nearest(name)
    guess = f"did you mean {nearest}? Else " if nearest else ""
    return FieldError(
        f"{path}.machine_spec.machine_type",
        f"{shown(name)} is no machine type of the catalogue",
        f"{guess}declare it in {FILE_NAME} beside this file: {EXAMPLE}",
    )


def _check_accelerator(path: str, pool: NodePoolSpec, machine: MachineType) -> Iterator[FieldError]:
    kind, count = pool.machine_spec.accelerator_type, pool.machine_spec.accelerator_count
    has = f"{machine.name} has {machine.accelerator_count} {machine.accelerator_type}".rstrip()
    if not machine.accelerator_count:
        has = f"{machine.name} has no accelerator"
    if kind is not None and kind != machine.accelerator_type:
        problem = f"{shown(kind)} does not fit: {has}"
        remedy = f"write {machine.accelerator_type}" if machine.accelerator_type else "remove it"
        yield FieldError(f"{path}.accelerator_type", problem, remedy)
    if count is not None and count != machine.accelerator_count:
        problem = f"{shown(count)} does not fit: {has}"
        remedy = f"write {machine.accelerator_count}"
        yield FieldError(f"{path}.accelerator_count", problem, remedy)


def _check_startup_script(path: str, script: str) -> Iterator[FieldError]:
    size_bytes = len(script.encode(errors="surrogatepass"))
    if size_bytes > MAXIMUM_METADATA_BYTES:
        problem = f"has {size_bytes} bytes, more than a VM's metadata takes"
        remedy = f"keep it below {MAXIMUM_METADATA_BYTES}, or have it fetch the rest"
        yield FieldError(path, problem, remedy)


def _check_model(path: str, pool: NodePoolSpec, machine: MachineType) -> Iterator[FieldError]:
    model, field = provisioning_model_of(pool, machine), f"{path}.provisioning_model"
    offered = ", ".join(machine.provisioning_models)
    if model is None:
        yield FieldError(field, "a GPU pool must say its model", f"write one of {offered}")
    elif model not in machine.provisioning_models:
        problem = f"{machine.name} is not offered as {model}"
        yield FieldError(field, problem, f"write one of {offered}")
    if pool.flex_start_max_duration is not None and model is not ProvisioningModel.FLEX_START:
        problem = "has a meaning only for FLEX_START"
        yield FieldError(f"{path}.flex_start_max_duration", problem, "remove it, or set the model")


def _check_boot_disk(path: str, pool: NodePoolSpec, machine: MachineType) -> Iterator[FieldError]:
    kind, size_gb = pool.boot_disk.boot_disk_type, pool.boot_disk.boot_disk_size_gb
    if kind is not None and kind not in machine.boot_disk_types:
        problem = f"{machine.name} does not boot from {shown(kind)}"
        remedy = f"write one of {', '.join(machine.boot_disk_types)}"
        yield FieldError(f"{path}.boot_disk_type", problem, remedy)
    if size_gb not in BOOT_DISK_SIZES_GB:
        problem, remedy = f"{shown(size_gb)} GB is no disk size", "write 10 to 65536"
        yield FieldError(f"{path}.boot_disk_size_gb", problem, remedy)


def _check_extension(path: str, pool: NodePoolSpec, machine: MachineType) -> Iterator[FieldError]:
    limit = pool.slurm_hooks.capacity_wait_limit_seconds
    if limit is not None and limit < 1:
        problem, remedy = f"{shown(limit)} is no time to wait", "write 1 or more, or remove it"
        yield FieldError(f"{path}.capacity_wait_limit_seconds", problem, remedy)
    if provisioning_model_of(pool, machine) is ProvisioningModel.FLEX_START:
        return
    for field in sorted(pool.slurm_hooks.model_fields_set):
        problem = "has a meaning only for FLEX_START"
        yield FieldError(f"{path}.{field}", problem, "remove it, or set the model")
