"""NodeName lines and gres.conf: what each pool's VMs offer to jobs.

Only pools that run jobs become Slurm nodes; login VMs run no slurmd. Static and dynamic nodes of
a pool stand on lines of their own, since they differ in features and weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slurm_hooks.cluster.machine_types import MachineType
from slurm_hooks.cluster.slurm_parameters import Place
from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.slurm.render.lines import Line
from slurm_hooks.slurm.render.operator_words import THEIRS, check_versions, with_words
from slurm_hooks.slurm.render.options import RenderError, RenderOptions

MEMORY_SHARE = 0.97
SYSTEM_MEMORY_MIB = 512
MAXIMUM_PORT = 65_535


@dataclass(frozen=True, slots=True)
class NodeRange:
    """Neighbouring nodes of one pool, `first` to `last` inclusive, all static or all dynamic."""

    pool: NodePool
    prefix: str
    first: int
    last: int
    is_static: bool

    @property
    def hostlist(self) -> str:
        """The names as Slurm writes them."""
        return hostlist(self.prefix, self.first, self.last)

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return self.last - self.first + 1


def hostlist(prefix: str, first: int, last: int) -> str:
    """The name of one node, or the bracketed range of several."""
    return f"{prefix}{first}" if first == last else f"{prefix}[{first}-{last}]"


def compute_pools(cluster: Cluster) -> tuple[NodePool, ...]:
    """The pools whose VMs are Slurm nodes: not the login pool, and not empty."""
    return tuple(
        pool for pool in cluster.pools.values() if not pool.is_login and pool.max_node_count
    )


def pool_hostlist(cluster: Cluster, pool: NodePool) -> str:
    """All nodes of a pool that has some."""
    return hostlist(f"{cluster.cluster_id}-{pool.pool_id}-", 0, pool.max_node_count - 1)


def node_ranges(cluster: Cluster) -> tuple[NodeRange, ...]:
    """All Slurm nodes of the cluster, in the order in which they are written."""
    return tuple(node for pool in compute_pools(cluster) for node in _ranges(cluster, pool))


def _ranges(cluster: Cluster, pool: NodePool) -> Iterator[NodeRange]:
    prefix = f"{cluster.cluster_id}-{pool.pool_id}-"
    if pool.min_node_count:
        yield NodeRange(pool, prefix, 0, pool.min_node_count - 1, is_static=True)
    if pool.min_node_count < pool.max_node_count:
        last = pool.max_node_count - 1
        yield NodeRange(pool, prefix, pool.min_node_count, last, is_static=False)


def machine_of(pool: NodePool, options: RenderOptions) -> MachineType:
    """The pool's machine type. Raises RenderError when the catalogue does not know it."""
    machine = options.catalogue.get(pool.machine_type)
    if machine is None:
        raise RenderError(f"machine type {pool.machine_type} of pool {pool.pool_id} is not known")
    return machine


def real_memory_mib(machine: MachineType) -> int:
    """What slurmd will find at least: firmware and kernel keep some of a VM's memory."""
    return int(machine.memory_gb * 1024 * MEMORY_SHARE) - SYSTEM_MEMORY_MIB


def gres_type(pool: NodePool) -> str:
    """The GPU type in Slurm: the cluster file's word in lower case, as users must type it."""
    return pool.accelerator_type.lower()


def node_lines(cluster: Cluster, options: RenderOptions) -> tuple[Line, ...]:
    """One NodeName line per range of nodes."""
    port, lines = options.one_machine_first_port, []
    for pool in compute_pools(cluster):
        check_versions(Place.NODE, pool.slurm_config, options.slurm_version)
    for nodes in node_ranges(cluster):
        words = [f"NodeName={nodes.hostlist}", *_hardware(nodes.pool, options)]
        words += [
            f"Features={','.join(_features(nodes))}",
            f"Weight={1 if nodes.is_static else 10}",
        ]
        words = with_words(words, nodes.pool.slurm_config)
        if port is not None:
            words += ["NodeHostName=localhost", "NodeAddr=127.0.0.1", _ports(port, nodes.count)]
            port += nodes.count
        lines.append(Line(" ".join([*words, "State=CLOUD"]), _node_reasons(nodes)))
    return tuple(lines)


def gres_lines(cluster: Cluster, options: RenderOptions) -> tuple[Line, ...]:
    """One gres.conf line per pool with GPUs."""
    lines = []
    for pool in compute_pools(cluster):
        if pool.accelerator_count:
            last = pool.accelerator_count - 1
            devices = hostlist(options.gpu_device_prefix, 0, last)
            names = pool_hostlist(cluster, pool)
            text = f"NodeName={names} Name=gpu Type={gres_type(pool)} File={devices}"
            lines.append(
                Line(text, (f"{pool.accelerator_count} GPUs of each {pool.machine_type}.",))
            )
    return tuple(lines)


def _hardware(pool: NodePool, options: RenderOptions) -> Sequence[str]:
    machine = machine_of(pool, options)
    cores = machine.cpus // (machine.sockets * machine.threads_per_core)
    words = [
        f"CPUs={machine.cpus}",
        f"Sockets={machine.sockets}",
        f"CoresPerSocket={cores}",
        f"ThreadsPerCore={machine.threads_per_core}",
        f"RealMemory={real_memory_mib(machine)}",
    ]
    if pool.accelerator_count:
        words.append(f"Gres=gpu:{gres_type(pool)}:{pool.accelerator_count}")
    return words


def _features(nodes: NodeRange) -> tuple[str, ...]:
    pool = nodes.pool
    life = "static" if nodes.is_static else "dynamic"
    return pool.machine_type, pool.provisioning_model.lower(), *pool.zones, life


def _node_reasons(nodes: NodeRange) -> tuple[str, ...]:
    pool = nodes.pool
    if nodes.is_static:
        life = "always there (below min_node_count), and filled first: lowest weight"
    else:
        life = "created when a job needs them"
    about = f"Pool {pool.pool_id}: {pool.machine_type}, {pool.provisioning_model}, {life}."
    return (about, THEIRS) if pool.slurm_config else (about,)


def _ports(first: int, count: int) -> str:
    last = first + count - 1
    if first < 1 or last > MAXIMUM_PORT:
        raise RenderError(f"ports {first} to {last} are needed, beyond {MAXIMUM_PORT}")
    return f"Port={first}" if count == 1 else f"Port={first}-{last}"
