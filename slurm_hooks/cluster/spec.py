"""The cluster_config.json model: the managed service's fields, as far as this version reads them.

Shape and types only; what fields must be to each other is in checks.py. Field names are the
service's snake_case ones (camelCase is turned into them before, in spelling.py). A field of the
service that is not read yet stands in `not_read`, so that it is refused by its name instead of
being taken for a spelling mistake; nothing is ever dropped silently.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from slurm_hooks.cluster.fields import (
    Boolean,
    Days,
    DurationSeconds,
    Integer,
    Labels,
    Model,
    Signal,
    Text,
)
from slurm_hooks.cluster.policy import Policy


class Spec(BaseModel):
    """Base of all parts of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    not_read: ClassVar[frozenset[str]] = frozenset()
    literal: ClassVar[frozenset[str]] = frozenset()
    """Fields whose text may look like a placeholder (`<x>`, UPPER_CASE) and still be meant."""


class NetworkSpec(Spec):
    """The VPC, by name or by partial URL."""

    network: Text = "default"
    subnetwork: str = ""


class MachineSpec(Spec):
    """What each VM of a pool is made of. The accelerators may be left to the machine type."""

    not_read = frozenset({"reservation_affinity"})
    literal = frozenset({"accelerator_type"})

    machine_type: Text
    accelerator_type: str | None = None
    accelerator_count: Integer | None = None


class ScalingSpec(Spec):
    """How many VMs exist at all times, and at most."""

    min_node_count: Integer
    max_node_count: Integer


class BootDisk(Spec):
    """The boot disk of each VM. Its type may be left to the machine type."""

    boot_disk_type: str | None = None
    boot_disk_size_gb: Integer = 100


_DEFAULTS = Policy()

MOST_SCRIPTS = 99
"""They run in the order of their names, which are numbers of two digits."""


class PoolExtensionSpec(Spec):
    """Our own settings of a pool, under the key `slurm_hooks`."""

    run_duration_follows_job: Boolean = False
    compact_placement: Boolean = False
    capacity_wait_limit_seconds: Integer | None = None


class ExtensionSpec(Spec):
    """Our own settings of the cluster, under the key `slurm_hooks`; see cluster/policy.py."""

    boot_timeout_seconds: Integer = _DEFAULTS.boot_timeout_seconds
    end_of_life_notice_seconds: Integer = _DEFAULTS.end_of_life_notice_seconds
    end_of_life_signal: Signal = _DEFAULTS.end_of_life_signal
    hold_after_failures: Integer = _DEFAULTS.hold_after_failures
    hold_seconds: Integer = _DEFAULTS.hold_seconds
    longest_hold_seconds: Integer = _DEFAULTS.longest_hold_seconds
    reap_grace_seconds: Integer = _DEFAULTS.reap_grace_seconds
    most_kills_a_pass: Integer = _DEFAULTS.most_kills_a_pass
    most_kills_percent: Integer = _DEFAULTS.most_kills_percent
    job_duration_margin_seconds: Integer = _DEFAULTS.job_duration_margin_seconds
    most_job_restarts: Integer = _DEFAULTS.most_job_restarts
    most_repairs_a_node: Integer = _DEFAULTS.most_repairs_a_node
    repair_days: Days = _DEFAULTS.repair_days
    stop_repairs_percent: Integer = _DEFAULTS.stop_repairs_percent
    stop_repairs_least: Integer = _DEFAULTS.stop_repairs_least
    stop_repairs_seconds: Integer = _DEFAULTS.stop_repairs_seconds


class NodePoolSpec(Spec):
    """One pool of like VMs."""

    not_read = frozenset(
        {
            "confidential_instance_config",
            "effective_flex_start_max_duration",
            "filestores",
            "lustres",
        }
    )
    literal = frozenset({"provisioning_model", "startup_script"})

    id: Text
    machine_spec: MachineSpec
    scaling_spec: ScalingSpec
    zone: Text
    provisioning_model: Model | None = None
    flex_start_max_duration: DurationSeconds | None = None
    enable_public_ips: Boolean = False
    boot_disk: BootDisk = BootDisk()
    labels: Labels = Field(default_factory=dict)
    node_image: str = ""
    startup_script: str = ""
    slurm_hooks: PoolExtensionSpec = PoolExtensionSpec()


class PartitionSpec(Spec):
    """One Slurm partition over whole pools."""

    not_read = frozenset({"config"})

    id: Text
    node_pool_ids: list[Text] = Field(min_length=1)


class SlurmSpec(Spec):
    """What Slurm is told about the pools."""

    not_read = frozenset(
        {
            "accounting",
            "config",
            "node_sets",
            "scheduling",
        }
    )

    literal = frozenset({"prolog_bash_scripts", "epilog_bash_scripts"})

    home_directory_storage: Text
    login_node_pool_id: Text
    partitions: list[PartitionSpec] = Field(min_length=1)
    default_partition_id: str = ""
    prolog_bash_scripts: list[Text] = Field(default_factory=list, max_length=MOST_SCRIPTS)
    epilog_bash_scripts: list[Text] = Field(default_factory=list, max_length=MOST_SCRIPTS)


class OrchestratorSpec(Spec):
    """Slurm is the only orchestrator."""

    slurm_spec: SlurmSpec


class RuntimeSpec(Spec):
    """What the workloads run as."""

    service_account: str = ""


class ClusterSpec(Spec):
    """The whole file."""

    not_read = frozenset(
        {
            "cluster_events",
            "cluster_status",
            "create_time",
            "lustre_export_config",
            "runtime",
            "start_time",
            "update_time",
        }
    )

    display_name: str = ""
    name: str = ""
    labels: Labels = Field(default_factory=dict)
    network: NetworkSpec = NetworkSpec()
    node_pools: list[NodePoolSpec] = Field(min_length=1)
    orchestrator_spec: OrchestratorSpec
    runtime_spec: RuntimeSpec = RuntimeSpec()
    slurm_hooks: ExtensionSpec = ExtensionSpec()
