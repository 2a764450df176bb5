"""The Filestore and Lustre instances that nodes mount."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.commands import Command
from slurm_hooks.prerequisites.facts import Answer, FileSystem, ProjectFacts, Unread
from slurm_hooks.prerequisites.holding import holding
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.rules.findings import Subject
from slurm_hooks.prerequisites.rules.networks import is_same_network


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is particular to Filestore or to Lustre."""

    check: str
    gcloud: str
    ready: str
    look_role: str
    read_roles: tuple[str, ...]

    def create(self, name: str, network: str) -> Command:
        """The command that makes an instance in a network."""
        if self.gcloud == "filestore":
            return commands.create_filestore(name, commands.last(network))
        return commands.create_lustre(name, network)


_BASIC_ROLES = ("roles/viewer", "roles/editor", "roles/owner")
_FILESTORE = _Kind(
    "Filestore instance",
    "filestore",
    "READY",
    "roles/file.viewer",
    ("roles/file.viewer", "roles/file.editor", *_BASIC_ROLES),
)
_LUSTRE = _Kind(
    "Lustre instance",
    "lustre",
    "ACTIVE",
    "roles/lustre.viewer",
    ("roles/lustre.viewer", "roles/lustre.admin", *_BASIC_ROLES),
)


def filestores_of(cluster: Cluster) -> tuple[str, ...]:
    """The Filestore instances of a cluster, that of /home first."""
    pools = cluster.pools.values()
    named = [cluster.home_directory_storage, *(one for pool in pools for one in pool.filestores)]
    return tuple(dict.fromkeys(name for name in named if name))


def lustres_of(cluster: Cluster) -> tuple[str, ...]:
    """The Lustre instances of a cluster."""
    return tuple(dict.fromkeys(one for pool in cluster.pools.values() for one in pool.lustres))


def check_storage(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Each is there, ready, and in the cluster's network. That it is in the cluster's region,
    the cluster file is refused without."""
    yield from _all(_FILESTORE, facts.filestores, cluster, facts)
    yield from _all(_LUSTRE, facts.lustres, cluster, facts)


def check_node_reads(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Nodes ask for the address of what they mount, unless the cluster file says it."""
    told = {name for name, _ in cluster.node_boot.mount_sources}
    for kind, names in ((_FILESTORE, facts.filestores), (_LUSTRE, facts.lustres)):
        asked = [name for name in names if name not in told]
        for owner in dict.fromkeys(commands.part(name, "projects") for name in asked):
            yield _node_reads(kind, owner, facts)


def _node_reads(kind: _Kind, owner: str, facts: ProjectFacts) -> Finding:
    subject = Subject("node service account", f"may read {kind.check}s of {owner}")
    member = f"serviceAccount:{facts.account}"
    fix = commands.grant(owner, member, kind.look_role)
    if not facts.account:
        return subject.unknown("its name is not known")
    if owner != facts.project:
        return subject.unknown("the policy of another project is not read", fix)
    if isinstance(facts.policy, Unread):
        return subject.unread(facts.policy)
    held = holding((facts.policy, facts.ancestors), member, kind.read_roles)
    missing = f"{facts.account} may not: give it the role, or set slurm_hooks.mount_sources"
    return subject.held(held, missing, fix)


def _all(
    kind: _Kind, found: Mapping[str, Answer[FileSystem]], cluster: Cluster, facts: ProjectFacts
) -> Iterator[Finding]:
    for name, answer in found.items():
        subject = Subject(kind.check, name)
        if isinstance(answer, Unread):
            owner = commands.part(name, "projects")
            yield subject.unread(answer, commands.grant(owner, facts.caller, kind.look_role))
        elif answer is None:
            yield subject.fails("does not exist", kind.create(name, cluster.network))
        else:
            yield _one(subject, kind, answer, cluster, facts)


def _one(
    subject: Subject, kind: _Kind, found: FileSystem, cluster: Cluster, facts: ProjectFacts
) -> Finding:
    look = commands.describe_file_system(kind.gcloud, subject.name)
    if not is_same_network(found.network, cluster.network, facts):
        detail = f"is in {found.network}, the cluster in {cluster.network}: nodes cannot mount it"
        return subject.fails(detail, look)
    if found.state != kind.ready:
        return subject.fails(f"is {found.state}, not {kind.ready}", look)
    return subject.passes()
