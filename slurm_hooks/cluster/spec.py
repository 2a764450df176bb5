"""The cluster_config.json model: the managed service's fields, and ours under `slurm_hooks`.

Shape and types only; what fields must be to each other is in cluster_checks.py, pool_checks.py
and slurm_checks.py. Field names are the service's snake_case ones (camelCase is turned into them
before, in spelling.py). A field of the service that is not honoured stands in `not_read` with the
reason, so that it is refused by its name instead of being taken for a spelling mistake; nothing is
ever dropped silently. docs/cluster_config.md says of every field what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from slurm_hooks.cluster.boot_fields import (
    AuthenticationWord,
    ControllerAddress,
    MountOptions,
    MountSources,
    SecretVersion,
)
from slurm_hooks.cluster.fields import (
    Boolean,
    ConfidentialType,
    Config,
    Count,
    Days,
    DurationSeconds,
    Integer,
    Labels,
    Model,
    Percent,
    Positive,
    ReservationType,
    Signal,
    Text,
    WindowSeconds,
)
from slurm_hooks.cluster.node_boot import STARTUP_SCRIPT_SECONDS, Authentication
from slurm_hooks.cluster.policy import Policy


class Spec(BaseModel):
    """Base of all parts of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    not_read: ClassVar[Mapping[str, str]] = {}
    """Fields of the service that are refused, and why."""
    literal: ClassVar[frozenset[str]] = frozenset()
    """Fields whose text may look like a placeholder (`<x>`, UPPER_CASE) and still be meant."""


OUTPUT_ONLY = "a field that the service only answers with"
NO_LUSTRE_EXPORT = "this version does not export Lustre instances to buckets"


class NetworkSpec(Spec):
    """The VPC, by name or by partial URL."""

    network: Text = "default"
    subnetwork: str = ""


class ReservationAffinitySpec(Spec):
    """Which reservation the VMs of a pool use. A key may be left to the service's usual one."""

    literal = frozenset({"reservation_affinity_type"})

    reservation_affinity_type: ReservationType
    key: str = ""
    values: list[Text] = Field(default_factory=list)


class MachineSpec(Spec):
    """What each VM of a pool is made of. The accelerators may be left to the machine type."""

    literal = frozenset({"accelerator_type"})

    machine_type: Text
    accelerator_type: str | None = None
    accelerator_count: Integer | None = None
    reservation_affinity: ReservationAffinitySpec | None = None


class ScalingSpec(Spec):
    """How many VMs exist at all times, and at most."""

    min_node_count: Integer
    max_node_count: Integer


class BootDisk(Spec):
    """The boot disk of each VM. Its type may be left to the machine type."""

    boot_disk_type: str | None = None
    boot_disk_size_gb: Integer = 100


class ConfidentialInstanceSpec(Spec):
    """How the memory of each VM is encrypted."""

    literal = frozenset({"confidential_instance_type"})

    confidential_instance_type: ConfidentialType


_DEFAULTS = Policy()

MOST_SCRIPTS = 99
"""They run in the order of their names, which are numbers of two digits."""


class PoolExtensionSpec(Spec):
    """Our own settings of a pool, under the key `slurm_hooks`."""

    run_duration_follows_job: Boolean = False
    compact_placement: Boolean = False
    capacity_wait_limit_seconds: Integer | None = None


class NodeBootSpec(Spec):
    """Those of our own settings that nodes are told; see cluster/node_boot.py."""

    controllers: list[ControllerAddress] = Field(default_factory=list)
    authentication: AuthenticationWord = Authentication.MUNGE
    key_secret: SecretVersion = ""
    mount_sources: MountSources = Field(default_factory=dict)
    nfs_mount_options: MountOptions = ""
    lustre_mount_options: MountOptions = ""
    startup_script_timeout_seconds: Positive = STARTUP_SCRIPT_SECONDS


class ExtensionSpec(NodeBootSpec):
    """Our own settings of the cluster, under the key `slurm_hooks`; see cluster/policy.py."""

    literal = frozenset({"end_of_life_signal", "key_secret"})

    boot_timeout_seconds: Positive = _DEFAULTS.boot_timeout_seconds
    end_of_life_notice_seconds: Count = _DEFAULTS.end_of_life_notice_seconds
    end_of_life_signal: Signal = _DEFAULTS.end_of_life_signal
    hold_after_failures: Positive = _DEFAULTS.hold_after_failures
    hold_seconds: Positive = _DEFAULTS.hold_seconds
    longest_hold_seconds: Positive = _DEFAULTS.longest_hold_seconds
    reap_grace_seconds: Count = _DEFAULTS.reap_grace_seconds
    most_kills_a_pass: Positive = _DEFAULTS.most_kills_a_pass
    most_kills_percent: Percent = _DEFAULTS.most_kills_percent
    job_duration_margin_seconds: Count = _DEFAULTS.job_duration_margin_seconds
    most_job_restarts: Count = _DEFAULTS.most_job_restarts
    most_repairs_a_node: Count = _DEFAULTS.most_repairs_a_node
    repair_days: Days = _DEFAULTS.repair_days
    stop_repairs_percent: Count = _DEFAULTS.stop_repairs_percent
    stop_repairs_least: Count = _DEFAULTS.stop_repairs_least
    stop_repairs_seconds: WindowSeconds = _DEFAULTS.stop_repairs_seconds


class NodePoolSpec(Spec):
    """One pool of like VMs."""

    not_read: ClassVar[Mapping[str, str]] = {"effective_flex_start_max_duration": OUTPUT_ONLY}
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
    filestores: list[Text] = Field(default_factory=list)
    lustres: list[Text] = Field(default_factory=list)
    confidential_instance_config: ConfidentialInstanceSpec | None = None
    slurm_hooks: PoolExtensionSpec = PoolExtensionSpec()


class PartitionSpec(Spec):
    """One Slurm partition over whole pools, and what its line says beside them."""

    id: Text
    node_pool_ids: list[Text] = Field(min_length=1)
    config: Config = Field(default_factory=dict)


class NodeSetSpec(Spec):
    """What the lines of a pool's nodes say beside what follows from the pool."""

    node_pool_id: Text
    config: Config = Field(default_factory=dict)


class AccountingSpec(Spec):
    """An older way to set AccountingStorageEnforce; `config` supersedes it."""

    literal = frozenset({"accounting_storage_enforce"})

    accounting_storage_enforce: Text | None = None


class SchedulingSpec(Spec):
    """An older way to set priorities and preemption; `config` supersedes it."""

    literal = frozenset({"preempt_type", "preempt_mode", "preempt_exempt_time", "priority_type"})

    priority_type: Text | None = None
    priority_weight_age: Integer | None = None
    priority_weight_assoc: Integer | None = None
    priority_weight_fairshare: Integer | None = None
    priority_weight_job_size: Integer | None = None
    priority_weight_partition: Integer | None = None
    priority_weight_qos: Integer | None = None
    priority_weight_tres: Text | None = None
    preempt_type: Text | None = None
    preempt_mode: Text | None = None
    preempt_exempt_time: Text | None = None


class SlurmSpec(Spec):
    """What Slurm is told about the pools."""

    literal = frozenset({"prolog_bash_scripts", "epilog_bash_scripts"})

    home_directory_storage: Text
    login_node_pool_id: Text
    partitions: list[PartitionSpec] = Field(min_length=1)
    default_partition_id: str = ""
    prolog_bash_scripts: list[Text] = Field(default_factory=list, max_length=MOST_SCRIPTS)
    epilog_bash_scripts: list[Text] = Field(default_factory=list, max_length=MOST_SCRIPTS)
    config: Config = Field(default_factory=dict)
    node_sets: list[NodeSetSpec] = Field(default_factory=list)
    accounting: AccountingSpec | None = None
    scheduling: SchedulingSpec | None = None


class OrchestratorSpec(Spec):
    """Slurm is the only orchestrator."""

    slurm_spec: SlurmSpec


class RuntimeSpec(Spec):
    """What the workloads run as."""

    service_account: str = ""


class ClusterSpec(Spec):
    """The whole file."""

    not_read: ClassVar[Mapping[str, str]] = {
        "cluster_events": OUTPUT_ONLY,
        "cluster_status": OUTPUT_ONLY,
        "create_time": OUTPUT_ONLY,
        "lustre_export_config": NO_LUSTRE_EXPORT,
        "runtime": OUTPUT_ONLY,
        "start_time": OUTPUT_ONLY,
        "update_time": OUTPUT_ONLY,
    }

    display_name: str = ""
    name: str = ""
    labels: Labels = Field(default_factory=dict)
    network: NetworkSpec = NetworkSpec()
    node_pools: list[NodePoolSpec] = Field(min_length=1)
    orchestrator_spec: OrchestratorSpec
    runtime_spec: RuntimeSpec = RuntimeSpec()
    slurm_hooks: ExtensionSpec = ExtensionSpec()
