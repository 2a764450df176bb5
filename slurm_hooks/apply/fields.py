"""What becomes of a cluster when a field of its file changes: one row a field.

A row tells the operator why a change is refused, or what it costs. Whether the VMs of a pool are
made anew follows from its template alone (`changes`); tests hold the rows against it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Rule(enum.StrEnum):
    """When a change of a field holds."""

    FIXED = "no"
    """Never: it is refused, with the way out."""
    NEW_VMS = "new VMs"
    """For the next VM of each node; the VMs that there are make way when they are free."""
    AT_ONCE = "yes"
    """At once, and no node is touched for it."""


class Part(enum.StrEnum):
    """Which part of a plan a field of the cluster belongs to."""

    CLUSTER = "cluster"
    SLURM = "slurm"


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A field: its attribute in `topology`, its path in the file, and when a change holds."""

    attribute: str
    path: str
    rule: Rule
    part: Part = Part.CLUSTER


SLURM_SPEC = "orchestrator_spec.slurm_spec"

POOL_FIELDS = (
    FieldRule("machine_type", "machine_spec.machine_type", Rule.FIXED),
    FieldRule("accelerator_type", "machine_spec.accelerator_type", Rule.FIXED),
    FieldRule("accelerator_count", "machine_spec.accelerator_count", Rule.FIXED),
    FieldRule("reservations", "machine_spec.reservation_affinity", Rule.FIXED),
    FieldRule("provisioning_model", "provisioning_model", Rule.FIXED),
    FieldRule(
        "confidential_instance_type",
        "confidential_instance_config.confidential_instance_type",
        Rule.FIXED,
    ),
    FieldRule("run_duration_seconds", "flex_start_max_duration", Rule.NEW_VMS),
    FieldRule("zones", "zone", Rule.NEW_VMS),
    FieldRule("public_ip", "enable_public_ips", Rule.NEW_VMS),
    FieldRule("boot_disk_type", "boot_disk.boot_disk_type", Rule.NEW_VMS),
    FieldRule("boot_disk_size_gb", "boot_disk.boot_disk_size_gb", Rule.NEW_VMS),
    FieldRule("labels", "labels", Rule.NEW_VMS),
    FieldRule("startup_script", "startup_script", Rule.NEW_VMS),
    FieldRule("source_image", "node_image", Rule.NEW_VMS),
    FieldRule("filestores", "filestores", Rule.NEW_VMS),
    FieldRule("lustres", "lustres", Rule.NEW_VMS),
    FieldRule("min_node_count", "scaling_spec.min_node_count", Rule.AT_ONCE),
    FieldRule("max_node_count", "scaling_spec.max_node_count", Rule.AT_ONCE),
    FieldRule("run_duration_follows_job", "slurm_hooks.run_duration_follows_job", Rule.AT_ONCE),
    FieldRule("compact_placement", "slurm_hooks.compact_placement", Rule.AT_ONCE),
    FieldRule(
        "capacity_wait_limit_seconds", "slurm_hooks.capacity_wait_limit_seconds", Rule.AT_ONCE
    ),
    FieldRule("slurm_config", "node_sets[].config", Rule.AT_ONCE),
)
"""Of a pool; paths are below the pool, but for that of node_sets. `region` follows from `zone`,
and `is_login` from the login pool's id, which has a rule of its own in `changes`."""

CLUSTER_FIELDS = (
    FieldRule("cluster_id", "name", Rule.FIXED),
    FieldRule("project", "name", Rule.FIXED),
    FieldRule("region", "node_pools[].zone", Rule.FIXED),
    FieldRule("network", "network.network", Rule.FIXED),
    FieldRule("subnetwork", "network.subnetwork", Rule.FIXED),
    FieldRule("service_account", "runtime_spec.service_account", Rule.FIXED),
    FieldRule("home_directory_storage", f"{SLURM_SPEC}.home_directory_storage", Rule.FIXED),
    FieldRule("partitions", f"{SLURM_SPEC}.partitions", Rule.AT_ONCE, Part.SLURM),
    FieldRule("partition_config", f"{SLURM_SPEC}.partitions[].config", Rule.AT_ONCE, Part.SLURM),
    FieldRule("default_partition", f"{SLURM_SPEC}.default_partition_id", Rule.AT_ONCE, Part.SLURM),
    FieldRule("prolog_scripts", f"{SLURM_SPEC}.prolog_bash_scripts", Rule.AT_ONCE, Part.SLURM),
    FieldRule("epilog_scripts", f"{SLURM_SPEC}.epilog_bash_scripts", Rule.AT_ONCE, Part.SLURM),
    FieldRule("slurm_config", f"{SLURM_SPEC}.config", Rule.AT_ONCE, Part.SLURM),
)
"""Of the cluster. `policy` and `node_boot` are compared field by field, under `slurm_hooks`."""
