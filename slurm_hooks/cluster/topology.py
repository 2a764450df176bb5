"""The cluster as the controller needs it: pools, their places and the names of their nodes.

A node is named `CLUSTER-POOL-INDEX`, index from 0 without leading zeros. The cluster id has no
hyphen, so the first and the last hyphen split a name even when the pool id has hyphens itself.
A node is static if its index is below its pool's min_node_count, else dynamic.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from slurm_hooks.cluster.node_boot import NodeBoot
from slurm_hooks.cluster.policy import Policy


class ProvisioningModel(enum.StrEnum):
    """How Compute Engine provides a pool's VMs."""

    ON_DEMAND = "ON_DEMAND"
    SPOT = "SPOT"
    RESERVATION = "RESERVATION"
    FLEX_START = "FLEX_START"


class ReservationAffinityType(enum.StrEnum):
    """Which reservations a pool's VMs may use."""

    NO_RESERVATION = "NO_RESERVATION"
    ANY_RESERVATION = "ANY_RESERVATION"
    SPECIFIC_RESERVATION = "SPECIFIC_RESERVATION"


class ConfidentialInstanceType(enum.StrEnum):
    """How the memory of a VM is encrypted: AMD's two ways and Intel's."""

    SEV = "SEV"
    SEV_SNP = "SEV_SNP"
    TDX = "TDX"


@dataclass(frozen=True, slots=True)
class NodeName:
    """A node name in its three parts."""

    cluster: str
    pool: str
    index: int

    def __str__(self) -> str:
        return f"{self.cluster}-{self.pool}-{self.index}"


@functools.lru_cache(maxsize=65_536)
def parse_node_name(name: str) -> NodeName | None:
    """Split a node name; None when it does not have the form CLUSTER-POOL-INDEX."""
    cluster, hyphen, rest = name.partition("-")
    pool, last_hyphen, index = rest.rpartition("-")
    if not (cluster and hyphen and pool and last_hyphen):
        return None
    if not (index.isascii() and index.isdigit()) or (len(index) > 1 and index[0] == "0"):
        return None
    return NodeName(cluster, pool, int(index))


@dataclass(frozen=True, slots=True)
class Reservations:
    """The reservations that a pool's VMs use: any that fits, or those named in `values`.

    `bound` VMs belong to their reservation and end with it.
    """

    affinity: ReservationAffinityType
    key: str = ""
    values: tuple[str, ...] = ()
    bound: bool = False


@dataclass(frozen=True, slots=True)
class NodePool:
    """A pool of like VMs. One zone makes zonal groups, several a regional one.

    `is_login` pools stand outside the partitions. `run_duration_seconds` is the life of a
    FLEX_START VM and None for the other models.
    """

    pool_id: str
    machine_type: str
    provisioning_model: ProvisioningModel
    min_node_count: int
    max_node_count: int
    region: str
    zones: tuple[str, ...]
    accelerator_type: str = ""
    accelerator_count: int = 0
    run_duration_seconds: int | None = None
    is_login: bool = False
    boot_disk_type: str = "pd-ssd"
    boot_disk_size_gb: int = 100
    public_ip: bool = False
    source_image: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    startup_script: str = ""
    run_duration_follows_job: bool = False
    """A job's VMs live as long as its time limit and a margin, where it has one."""
    compact_placement: bool = False
    """A job's VMs stand close together: it gets groups of its own, each with its own place."""
    capacity_wait_limit_seconds: int | None = None
    """How long a request may wait for capacity before it is given up; None is without limit."""
    reservations: Reservations | None = None
    """Only of RESERVATION pools."""
    filestores: tuple[str, ...] = ()
    lustres: tuple[str, ...] = ()
    """Instances that the pool's nodes mount, as partial URLs."""
    confidential_instance_type: ConfidentialInstanceType | None = None
    slurm_config: tuple[tuple[str, str], ...] = ()
    """What the NodeName lines say in the operator's words, before which ours give way."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster: what the operator asked for, checked and with every default filled in.

    `network` and `subnetwork` are partial URLs, `partitions` maps partition to pool ids. An empty
    `subnetwork` is the one that an auto-mode network has in the region.
    """

    cluster_id: str
    project: str
    region: str
    network: str
    subnetwork: str
    pools: dict[str, NodePool]
    partitions: dict[str, tuple[str, ...]]
    default_partition: str = ""
    service_account: str = ""
    home_directory_storage: str = ""
    policy: Policy = field(default_factory=Policy)
    node_boot: NodeBoot = field(default_factory=NodeBoot)
    prolog_scripts: tuple[str, ...] = ()
    """The site's own bash scripts, whole, that each node of a job runs before it, in order."""
    epilog_scripts: tuple[str, ...] = ()
    """The same for after a job."""
    slurm_config: tuple[tuple[str, str], ...] = ()
    """Global settings of slurm.conf in the operator's words, before which ours give way."""
    partition_config: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """The same of PartitionName lines, by partition."""

    def pool_of(self, node: str) -> NodePool | None:
        """The pool that a node or VM name belongs to; None when it is not this cluster's."""
        parts = parse_node_name(node)
        if parts is None or parts.cluster != self.cluster_id:
            return None
        pool = self.pools.get(parts.pool)
        return pool if pool is not None and parts.index < pool.max_node_count else None

    def former_pool_of(self, node: str) -> NodePool | None:
        """The pool of a node of this cluster that is named no more, since its pool has shrunk, has
        become the login pool or is gone; None when the name is not this cluster's, or still is."""
        parts, pool = parse_node_name(node), self.pool_of(node)
        if parts is None or parts.cluster != self.cluster_id:
            return None
        if pool is not None:
            return pool if pool.is_login else None
        on_demand = ProvisioningModel.ON_DEMAND
        gone = NodePool(parts.pool, "", on_demand, 0, 0, self.region, ())
        return self.pools.get(parts.pool, gone)

    def is_static(self, node: str) -> bool:
        """Whether the node must always exist: its index is below the pool's min_node_count."""
        pool, parts = self.pool_of(node), parse_node_name(node)
        return pool is not None and parts is not None and parts.index < pool.min_node_count

    def node_names(self, pool_id: str) -> Iterator[str]:
        """All node names of a pool, by index."""
        pool = self.pools[pool_id]
        return (f"{self.cluster_id}-{pool_id}-{index}" for index in range(pool.max_node_count))
