"""What a VM is told by its instance metadata, so that it can boot by itself (boot/keys.py)."""

from __future__ import annotations

from slurm_hooks.boot import keys
from slurm_hooks.boot.keys import Role
from slurm_hooks.cluster.node_boot import STARTUP_SCRIPT_SECONDS, Authentication
from slurm_hooks.cluster.topology import Cluster, NodePool


def metadata_of(cluster: Cluster, pool: NodePool) -> tuple[tuple[str, str], ...]:
    """The metadata of a pool's VMs. What has its usual value is left out, so that a setting that
    is not used makes no new generation of the template."""
    boot = cluster.node_boot
    authentication, seconds = boot.authentication, boot.startup_script_timeout_seconds
    has_script = bool(pool.startup_script)
    items = (
        (keys.CLUSTER, cluster.cluster_id),
        (keys.POOL, pool.pool_id),
        (keys.ROLE, Role.LOGIN.value if pool.is_login else ""),
        (keys.CONTROLLERS, ",".join(boot.controllers)),
        (keys.AUTHENTICATION, _unless(authentication.value, Authentication.MUNGE.value)),
        (keys.KEY_SECRET, boot.key_secret),
        (keys.HOME, cluster.home_directory_storage),
        (keys.FILESTORES, ",".join(pool.filestores)),
        (keys.LUSTRES, ",".join(pool.lustres)),
        (keys.MOUNT_SOURCES, _mount_sources(cluster, pool)),
        (keys.NFS_OPTIONS, boot.nfs_mount_options),
        (keys.LUSTRE_OPTIONS, boot.lustre_mount_options if pool.lustres else ""),
        (keys.STARTUP_SCRIPT, pool.startup_script),
        (
            keys.STARTUP_SCRIPT_SECONDS,
            _unless(str(seconds), str(STARTUP_SCRIPT_SECONDS)) if has_script else "",
        ),
        (keys.GPUS, _unless(str(pool.accelerator_count), "0")),
    )
    return tuple((key, value) for key, value in items if value)


def _unless(text: str, usual: str) -> str:
    return "" if text == usual else text


def _mount_sources(cluster: Cluster, pool: NodePool) -> str:
    """The addresses of what the pool mounts, as far as the cluster file gives them."""
    mounted = {cluster.home_directory_storage, *pool.filestores, *pool.lustres}
    given = cluster.node_boot.mount_sources
    return ",".join(f"{name}={source}" for name, source in given if name in mounted)
