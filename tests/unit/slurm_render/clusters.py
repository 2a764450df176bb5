"""Clusters for the rendering tests, built from only what a test cares about."""

from __future__ import annotations

from pathlib import Path

from slurm_hooks.cluster.machine_types import standard_catalogue
from slurm_hooks.cluster.topology import Cluster, NodePool, ProvisioningModel

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLE = REPOSITORY / "etc" / "slurm-hooks" / "cluster_config.json"


def pool(
    pool_id: str,
    *,
    machine_type: str = "n2-standard-8",
    minimum: int = 0,
    maximum: int = 2,
    life_seconds: int | None = None,
    is_login: bool = False,
) -> NodePool:
    """A pool; one with a life is a Flex-start pool."""
    machine = standard_catalogue().machine_types[machine_type]
    model = ProvisioningModel.ON_DEMAND if life_seconds is None else ProvisioningModel.FLEX_START
    return NodePool(
        pool_id=pool_id,
        machine_type=machine_type,
        provisioning_model=model,
        min_node_count=minimum,
        max_node_count=maximum,
        region="us-central1",
        zones=("us-central1-a",),
        accelerator_type=machine.accelerator_type,
        accelerator_count=machine.accelerator_count,
        run_duration_seconds=life_seconds,
        is_login=is_login,
    )


def cluster_of(*pools: NodePool, partitions: dict[str, tuple[str, ...]] | None = None) -> Cluster:
    """A cluster `c` of these pools; without partitions given, each pool has one of its own."""
    own: dict[str, tuple[str, ...]] = {
        pool.pool_id: (pool.pool_id,) for pool in pools if not pool.is_login
    }
    chosen = own if partitions is None else partitions
    return Cluster(
        cluster_id="c",
        project="example-project",
        region="us-central1",
        network="projects/example-project/global/networks/default",
        subnetwork="",
        pools={pool.pool_id: pool for pool in pools},
        partitions=chosen,
        default_partition=next(iter(chosen), ""),
    )
