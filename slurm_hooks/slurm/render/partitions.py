"""PartitionName lines: the cluster's partitions over whole pools, and how long jobs may run.

On a Flex-start VM no job can outlive the VM, so the shortest life among a partition's pools is
the limit of its jobs.
"""

from __future__ import annotations

from slurm_hooks.cluster.slurm_parameters import Place
from slurm_hooks.cluster.topology import Cluster, NodePool, ProvisioningModel
from slurm_hooks.slurm.render.lines import Line
from slurm_hooks.slurm.render.nodes import machine_of, pool_hostlist, real_memory_mib
from slurm_hooks.slurm.render.operator_words import THEIRS, check_versions, with_words
from slurm_hooks.slurm.render.options import RenderOptions


def partition_lines(cluster: Cluster, options: RenderOptions) -> tuple[Line, ...]:
    """One PartitionName line per partition of the cluster."""
    return tuple(_partition(name, cluster, options) for name in cluster.partitions)


def slurm_time(seconds: int) -> str:
    """Days and clock time as Slurm writes limits, which it keeps in whole minutes."""
    minutes = max(seconds // 60, 1)
    days, rest = divmod(minutes, 24 * 60)
    return f"{days}-{rest // 60:02}:{rest % 60:02}:00"


def limit_seconds(text: str) -> int | None:
    """A limit in one of Slurm's forms, checked before; None for one without end."""
    days, dash, clock = text.rpartition("-")
    if not clock.replace(":", "").isdigit():
        return None
    numbers = [int(number) for number in clock.split(":")]
    if dash:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, [*numbers, 0][:2]
    return int(days or 0) * 86_400 + hours * 3600 + minutes * 60 + seconds


def _partition(name: str, cluster: Cluster, options: RenderOptions) -> Line:
    pools = [cluster.pools[pool_id] for pool_id in cluster.partitions[name]]
    pools = [pool for pool in pools if pool.max_node_count and not pool.is_login]
    settings = cluster.partition_config.get(name, ())
    check_versions(Place.PARTITION, settings, options.slurm_version)
    theirs = dict(settings)
    words = [f"PartitionName={name}"]
    if pools:
        words.append(f"Nodes={','.join(pool_hostlist(cluster, pool) for pool in pools)}")
    words.append(f"Default={'YES' if name == cluster.default_partition else 'NO'}")
    life_seconds = _shortest_life_seconds(pools)
    if life_seconds is not None:
        default_seconds = min(
            life_seconds // 2,
            options.default_job_time_seconds,
            limit_seconds(theirs.get("MaxTime", "UNLIMITED")) or life_seconds,
        )
        words += [
            f"DefaultTime={slurm_time(default_seconds)}",
            f"MaxTime={slurm_time(life_seconds)}",
        ]
    if pools:
        words.append(f"DefMemPerCPU={_memory_share_mib(pools, options)}")
    reasons = (*_reasons(name, life_seconds), THEIRS) if settings else _reasons(name, life_seconds)
    return Line(" ".join(with_words([*words, "State=UP"], settings)), reasons)


def _shortest_life_seconds(pools: list[NodePool]) -> int | None:
    lives = [
        pool.run_duration_seconds
        for pool in pools
        if pool.provisioning_model is ProvisioningModel.FLEX_START
        and pool.run_duration_seconds is not None
    ]
    return min(lives, default=None)


def _memory_share_mib(pools: list[NodePool], options: RenderOptions) -> int:
    machines = [machine_of(pool, options) for pool in pools]
    return max(min(real_memory_mib(machine) // machine.cpus for machine in machines), 1)


def _reasons(name: str, life_seconds: int | None) -> tuple[str, ...]:
    memory = (
        "DefMemPerCPU: a job that does not say how much memory it needs gets its CPUs' share,"
        " not the whole node."
    )
    if life_seconds is None:
        return f"Partition {name}.", memory
    return (
        f"Partition {name}.",
        f"MaxTime: Compute Engine deletes a VM {life_seconds} s after its start, so no longer job"
        " could end well.",
        "DefaultTime: a job that states no limit must still fit on a VM with part of its life"
        " behind it, so it is half of that at most.",
        memory,
    )
