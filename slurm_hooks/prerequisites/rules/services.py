"""The APIs that must be enabled in the project."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.facts import ProjectFacts, Unread
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.rules.findings import Subject

LOOK_ROLE = "roles/serviceusage.serviceUsageViewer"
COMPUTE, FILESTORE = "compute.googleapis.com", "file.googleapis.com"
LUSTRE, SECRET_MANAGER = "lustre.googleapis.com", "secretmanager.googleapis.com"
LOOKED_WITH = (
    "cloudquotas.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "iam.googleapis.com",
)
"""The controller does without them; the check sees less."""


def needed_services(cluster: Cluster) -> tuple[str, ...]:
    """The APIs without which this cluster does not work."""
    pools = cluster.pools.values()
    has_filestore = bool(cluster.home_directory_storage) or any(one.filestores for one in pools)
    wanted = {
        COMPUTE: True,
        FILESTORE: has_filestore,
        LUSTRE: any(pool.lustres for pool in pools),
        SECRET_MANAGER: bool(cluster.node_boot.key_secret),
    }
    return tuple(name for name, is_wanted in wanted.items() if is_wanted)


def check_services(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Those that the cluster needs, and those that this check looks with."""
    if facts.services is None or isinstance(facts.services, Unread):
        why = facts.services or Unread(f"there is no project {facts.project}")
        look = commands.grant(facts.project, facts.caller, LOOK_ROLE)
        yield Subject("enabled APIs", facts.project).unread(why, look)
        return
    for name in (*needed_services(cluster), *LOOKED_WITH):
        subject, fix = Subject("enabled API", name), commands.enable(facts.project, name)
        if name in facts.services:
            yield subject.passes()
        elif name in LOOKED_WITH:
            yield subject.warns("is not enabled: this check sees less without it", fix)
        else:
            yield subject.fails("is not enabled in the project", fix)
